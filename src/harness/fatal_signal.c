/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records a fatal signal: the calls in progress and the location of the fault.  The handlers are
 * async-signal-safe.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "harness/proc_count.h"
#include "harness/test_process.h"

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

/* Writes "libmine.so+0x1139" into words[room]: the object's file, and the address within it as
 * addr2line takes it.  "" if the instruction lies in no file, or this machine's context is not
 * known. */
static void describe_fault(const void *context, char *words, size_t room)
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

/* A call through a struct that is gone says nothing about the call.  Async-signal-safe. */
static void note_struct_gone(struct record *record)
{
    if (record->attribute_to[0] == '\0' && own.loaded &&
        !is_readable(own.subject.handler, sizeof *own.subject.handler))
        record_attribute(record, TOPIC_STRUCT_GONE);
}

/* One thread of this process at a time, and the default action only once it has written all down:
 * another one that meets the same would end the process meanwhile.  False for that other one. */
static bool is_first_to_note(void)
{
    static _Atomic pid_t noted_in;
    return atomic_exchange(&noted_in, getpid()) != getpid();
}

static void note_signal(int number, const siginfo_t *info, const void *context)
{
    struct record *record = own.setup.record;
    record->signal = number;
    record->signal_call = *own_call();
    record->signal_elsewhere = gettid() != getpid();
    record->suspects[MADE_EMPTY] = *own_making();
    note_overlap(record);
    note_struct_gone(record);
    record->signal_has_address = info->si_code > 0 && (number == SIGSEGV || number == SIGBUS);
    record->signal_address = (uintptr_t)info->si_addr;
    if (info->si_code > 0)
        describe_fault(context, record->signal_place, sizeof record->signal_place);
}

/* Writes down what was under way; the default action then ends the process, when the instruction
 * runs again. */
static void on_fatal_signal(int number, siginfo_t *info, void *context)
{
    if (is_first_to_note())
        note_signal(number, info, context);
    else
        poll(NULL, 0, 100); /* the other one ends the process */
    signal(number, SIG_DFL);
    if (info->si_code <= 0 && number != SIGABRT)
        raise(number);
}

void catch_fatal_signals(void)
{
    static char stack[64 * 1024];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_sigaction = on_fatal_signal,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK};
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        sigaction(fatal[i], &action, NULL);
}
