/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What random calls alone find: the baseline that searching is measured against.
 *
 *     bench_random HANDLER SECONDS SEED
 *
 * Drives the handler with random calls of the four functions, on up to 4096 blocks whose sizes are
 * spread evenly over powers of two up to 4 MiB, and looks at alignment, at zeros and at contents;
 * nothing is chosen by what was seen before.  Prints the calls and what went wrong; status 1 if
 * anything did, and a signal where the handler crashed.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fill.h"
#include "base/random.h"
#include "base/text.h"
#include "subject/subject.h"

static const struct fill_rules whole = {.whole = SIZE_MAX};

enum { SLOTS = 4096, POWERS = 22, LIVE_MOST = 192 << 20, LOOK_EVERY = 64 };

struct block {
    unsigned char *p;
    size_t size;
    uint64_t number;
};

static struct {
    const PyDataMemAllocator *allocator;
    struct random random;
    struct block block[SLOTS];
    size_t live;
    uint64_t calls;
} run;

_Noreturn static void found(const char *what, const struct block *block)
{
    printf("%" PRIu64 " calls: %s, %zu bytes at %p\n", run.calls, what, block->size,
           (void *)block->p);
    fflush(stdout);
    _exit(1);
}

static size_t any_size(void)
{
    size_t power = (size_t)1 << random_below(&run.random, POWERS);
    return power + random_below(&run.random, power);
}

static void enter(struct block *block, void *p, size_t size)
{
    size_t alignment = _Alignof(max_align_t);
    while (alignment > size)
        alignment /= 2;
    *block = (struct block){p, size, run.calls};
    if (p == NULL)
        return;
    if ((uintptr_t)p % alignment != 0)
        found("alignment", block);
    fill_write(p, size, &whole, block->number);
    run.live += size;
}

static void check(const struct block *block)
{
    if (fill_check(block->p, block->size, &whole, block->number) != block->size)
        found("contents", block);
}

static void make(struct block *block, size_t size)
{
    bool zeroed = random_below(&run.random, 4) == 0;
    const PyDataMemAllocator *a = run.allocator;
    unsigned char *p = zeroed ? a->calloc(a->ctx, 1, size) : a->malloc(a->ctx, size);
    struct block made = {p, size, 0};
    if (zeroed && p != NULL && fill_check_zero(p, size, &whole, 0) != size)
        found("zero", &made);
    enter(block, p, size);
}

static void resize(struct block *block, size_t size)
{
    const PyDataMemAllocator *a = run.allocator;
    struct block before = *block;
    check(block);
    unsigned char *p = a->realloc(a->ctx, before.p, size);
    if (p == NULL)
        return;
    size_t kept = before.size < size ? before.size : size;
    if (fill_check_kept(p, kept, (uintptr_t)before.p, before.size, &whole, before.number) != kept)
        found("contents kept", &before);
    run.live -= before.size;
    enter(block, p, size);
}

static void drop(struct block *block)
{
    const PyDataMemAllocator *a = run.allocator;
    check(block);
    a->free(a->ctx, block->p, block->size);
    run.live -= block->size;
    block->p = NULL;
}

static void call(void)
{
    struct block *block = &run.block[random_below(&run.random, SLOTS)];
    size_t size = any_size();
    bool too_much = run.live + size > LIVE_MOST;
    run.calls++;
    if (block->p == NULL && !too_much)
        make(block, size);
    else if (block->p != NULL && !too_much && random_below(&run.random, 2) == 0)
        resize(block, size);
    else if (block->p != NULL)
        drop(block);
}

int main(int argc, char **argv)
{
    struct subject_place place;
    struct subject subject;
    char why[256] = "bench_random HANDLER SECONDS SEED";
    if (argc != 4 || subject_find(argv[1], &place) != NULL ||
        subject_load(&place, &subject, why, sizeof why) != LOAD_DONE) {
        fprintf(stderr, "bench_random: %s\n", why);
        return 2;
    }
    run.allocator = &subject.handler->allocator;
    run.random = random_for(strtoull(argv[3], NULL, 10), "baseline");
    uint64_t begin = clock_now();
    double seconds = strtod(argv[2], NULL);
    while (run.calls % LOOK_EVERY != 0 || clock_since(begin) < seconds)
        call();
    for (unsigned i = 0; i < SLOTS; i++) {
        if (run.block[i].p != NULL)
            check(&run.block[i]);
    }
    printf("%" PRIu64 " calls: nothing\n", run.calls);
    return 0;
}
