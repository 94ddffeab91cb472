/* SPDX-License-Identifier: BSD-3-Clause */
#include "harness/instruction.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

/* 0 where it is not known how. */
static uintptr_t instruction_of(const void *context)
{
    const ucontext_t *at = context;
#if defined __x86_64__
    return (uintptr_t)at->uc_mcontext.gregs[REG_RIP];
#elif defined __i386__
    return (uintptr_t)at->uc_mcontext.gregs[REG_EIP];
#elif defined __aarch64__
    return at->uc_mcontext.pc;
#else
    (void)at;
    return 0;
#endif
}

struct search {
    uintptr_t instruction;
    uintptr_t base; /* of the object whose mappings are read */
    char path[256]; /* its file; what is longer is no object that anybody looks for */
};

/* The number at *p, behind which *p then is. */
static uintptr_t hexadecimal(const char **p)
{
    static const char digits[] = "0123456789abcdef";
    uintptr_t number = 0;
    for (const char *digit; **p != '\0' && (digit = strchr(digits, **p)) != NULL; ++*p)
        number = number * 16 + (uintptr_t)(digit - digits);
    return number;
}

/* Whether the instruction lies in the mapping that the line of /proc/self/maps is about. */
static bool is_there(struct search *search, const char *line)
{
    uintptr_t begin = hexadecimal(&line);
    line += *line == '-';
    uintptr_t end = hexadecimal(&line);
    const char *path = strchr(line, '/');
    if (path == NULL || strlen(path) >= sizeof search->path)
        return false;
    if (strcmp(path, search->path) != 0) {
        memcpy(search->path, path, strlen(path) + 1);
        search->base = begin;
    }
    return begin <= search->instruction && search->instruction < end;
}

static bool find_object(struct search *search)
{
    char part[4096], line[512];
    size_t length = 0;
    ssize_t got;
    bool found = false;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (!found && (got = read(fd, part, sizeof part)) > 0) {
        for (ssize_t i = 0; i < got && !found; i++) {
            if (part[i] != '\n' && length < sizeof line - 1) {
                line[length++] = part[i];
            } else if (part[i] == '\n') {
                line[length] = '\0';
                length = 0;
                found = is_there(search, line);
            }
        }
    }
    close(fd);
    return found;
}

void instruction_place(const void *context, char *words, size_t room)
{
    struct search search = {.instruction = instruction_of(context)};
    words[0] = '\0';
    if (search.instruction == 0 || !find_object(&search))
        return;
    const char *name = strrchr(search.path, '/') + 1;
    uintptr_t within = search.instruction - search.base;
    char digits[2 * sizeof within], *first = digits + sizeof digits;
    do
        *--first = "0123456789abcdef"[within % 16];
    while ((within /= 16) != 0);
    size_t named = strlen(name), count = (size_t)(digits + sizeof digits - first);
    if (named + strlen("+0x") + count >= room)
        return;
    memcpy(words, name, named);
    memcpy(words + named, "+0x", 3);
    memcpy(words + named + 3, first, count);
    words[named + 3 + count] = '\0';
}
