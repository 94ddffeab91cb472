/* SPDX-License-Identifier: BSD-3-Clause
 *
 * libFuzzer's entry for the reports of shards: whatever is in one, --merge refuses it in one line,
 * or has records and surroundings of it.  What leaves the program leaves the input here
 * (-Wl,--wrap=leave_with), and what Jansson had for it goes with it.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report/evidence.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
int LLVMFuzzerInitialize(int *argc, char ***argv);
_Noreturn void __wrap_leave_with(enum exit_code code, const char *format, ...);

static jmp_buf left;

_Noreturn void __wrap_leave_with(enum exit_code code, const char *format, ...)
{
    if (code != EXIT_USAGE)
        abort(); /* what is in a file is never the harness's fault */
    (void)format;
    longjmp(left, 1);
}

/* What Jansson holds, in a ring. */
static struct held {
    struct held *before, *after;
} all = {&all, &all};

static void *hold(size_t size)
{
    struct held *held = malloc(sizeof *held + size);
    if (held == NULL)
        return NULL;
    *held = (struct held){all.before, &all};
    all.before->after = held;
    all.before = held;
    return held + 1;
}

static void let_go(void *p)
{
    struct held *held = p;
    if (held == NULL)
        return;
    held--;
    held->before->after = held->after;
    held->after->before = held->before;
    free(held);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    json_set_alloc_funcs(hold, let_go);
    return 0;
}

static void take(const char *file)
{
    struct options options = {.quiet = false};
    struct subject_place place;
    struct environment environment;
    struct load load;
    struct run run = {.options = &options};
    struct part part = part_read(file);
    const char *reproduce;
    const json_t *property;
    size_t i;
    static struct record record;
    (void)part_differs(&part, &part);
    part_options(&part, &options);
    free(options.filters);
    part_surroundings(&part, &place, &environment, &run);
    part_load(&part, &load);
    json_array_foreach(json_object_get(part.shard, "records"), i, property)
    {
        const char *id = json_string_value(json_object_get(property, "id"));
        if (id != NULL)
            part_record(&part, id, &record, &reproduce);
    }
    free((void *)(uintptr_t)part_expectations(&part));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static int file = -1;
    static char name[32];
    if (file < 0) {
        file = memfd_create("part", 0);
        snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    }
    if (ftruncate(file, 0) != 0 || pwrite(file, bytes, length, 0) != (ssize_t)length)
        abort();
    if (setjmp(left) == 0)
        take(name);
    while (all.after != &all)
        let_go(all.after + 1);
    return 0;
}
