/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conform-judge OBJECT ENTRY getter|struct SECONDS <LIST: does what the reproducer in C will do
 * that is made of the list, in a process as small.  Its status and what it prints are the same.
 */
#include <malloc.h>
#include <sys/stat.h>

#include "repro/step.h"

static struct step_list *list;
static int seconds;

#define ALIGNMENT list->checks.alignment
#define BLOCKS MOST_BLOCKS
#define CHECKS_ERRNO list->checks.of_errno
#define CHECKS_STRUCT list->checks.of_struct
#define MILLISECONDS list->checks.milliseconds
#define PROGRAMS 1
#define SECONDS seconds
#include "repro/judge_report.c"

#include "repro/judge.c"

static void do_once(const struct step *step, size_t block)
{
    size_t first = (size_t)step->first, second = (size_t)step->second;
    if (step->error != 0)
        errno = step->error;
    switch ((enum step_kind)step->kind) {
    case STEP_MALLOC:
        do_malloc(block, first);
        break;
    case STEP_CALLOC:
        do_calloc(block, first, second);
        break;
    case STEP_REALLOC:
        do_realloc(block, first);
        break;
    case STEP_FREE:
        do_free(block, first);
        break;
    case STEP_MALLOC_FREE:
        do_malloc(step->block, first);
        do_free(step->block, first);
        break;
    case STEP_CALLOC_FREE:
        do_calloc(step->block, first, second);
        do_free(step->block, first * second);
        break;
    case STEP_FREE_NULL:
        do_free_null(first);
        break;
    case STEP_FILL:
        do_fill(block, step->first);
        break;
    case STEP_LIMIT:
        do_limit(first);
        break;
    case STEP_PAUSE:
        do_pause(first);
        break;
    case STEP_FORK:
        do_fork(first);
        break;
    case STEP_ASK_GETTER:
        do_ask_getter();
        break;
    case STEP_LOOK_AT_NAME:
        do_look_at_name();
        break;
    case STEP_LOOK_AT_VERSION:
        do_look_at_version();
        break;
    case STEP_LOOK_AT_FUNCTIONS:
        do_look_at_functions();
        break;
    case STEP_STOP: /* for in_turns.c */
        break;
    }
}

static size_t thread_end; /* of the steps of one thread in a row */

static void *do_thread(void *unused)
{
    for (; list->at < thread_end; list->at++) {
        const struct step *step = &list->steps[list->at];
        for (uint32_t i = 0; i < step->times; i++)
            do_once(step, step->block + i);
    }
    return unused;
}

static void do_steps(void)
{
    for (list->at = 0; list->at < list->count;) {
        unsigned thread = list->steps[list->at].thread;
        thread_end = list->at;
        while (thread_end < list->count && list->steps[thread_end].thread == thread)
            thread_end++;
        if (thread == 0)
            do_thread(NULL);
        else
            in_thread(do_thread);
    }
}

static void do_again_and_again(void)
{
    repeat(do_steps);
}

/* ---- libc's allocator ---------------------------------------------------------------------- */

/* Aligned as is claimed, where anything is. */
static void *plain_malloc(void *ctx, size_t size)
{
    void *p = NULL;
    (void)ctx;
    if (ALIGNMENT <= alignof(max_align_t) || size > PTRDIFF_MAX)
        return malloc(size);
    return posix_memalign(&p, ALIGNMENT, size) == 0 ? p : NULL;
}

static void *plain_calloc(void *ctx, size_t nelem, size_t elsize)
{
    if (ALIGNMENT <= alignof(max_align_t) || nelem > PTRDIFF_MAX / (elsize + 1))
        return calloc(nelem, elsize);
    void *p = plain_malloc(ctx, nelem * elsize);
    return p != NULL ? memset(p, 0, nelem * elsize) : NULL;
}

static void *plain_realloc(void *ctx, void *p, size_t size)
{
    if (ALIGNMENT <= alignof(max_align_t) || size > PTRDIFF_MAX)
        return realloc(p, size != 0 ? size : 1); /* glibc's would free it */
    void *moved = plain_malloc(ctx, size);
    size_t had = p != NULL ? malloc_usable_size(p) : 0;
    if (p != NULL && moved != NULL)
        memcpy(moved, p, had < size ? had : size);
    if (moved != NULL)
        free(p);
    return moved;
}

static void plain_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    free(p);
}

static int load_plain(void)
{
    static PyDataMem_Handler plain = {
        "plain", 1, {NULL, plain_malloc, plain_calloc, plain_realloc, plain_free}};
    handler = &plain;
    as_loaded = plain;
    return 0;
}

static int load_named(char **argv)
{
    if (*argv[1] == '\0')
        return load_plain();
    return load(argv[1], argv[2], strcmp(argv[3], "getter") == 0);
}

int main(int argc, char **argv)
{
    struct stat file;
    if (argc != 5 || fstat(STDIN_FILENO, &file) != 0 || (size_t)file.st_size < sizeof *list) {
        fputs("conform-judge is a part of conform, which runs it: see conform --repro\n", stderr);
        return 2;
    }
    list = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, STDIN_FILENO, 0);
    if (list == MAP_FAILED)
        return 2;
    begin_watched(argv);
    if (load_named(argv) != 0)
        return 2;
    seconds = atoi(argv[4]);
    judge(list->checks.of_growth ? do_again_and_again : do_steps);
}
