/* SPDX-License-Identifier: BSD-3-Clause
 *
 * First what came last alone; then delta debugging on the steps, and simpler numbers in them.
 */
#include "repro/shrink.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/clock.h"
#include "base/random.h"
#include "supervise/interrupt.h"

struct shrinking {
    attempt_function *how;
    const void *about;
    struct call_list *list; /* the best so far */
    struct attempt seen;    /* of it */
    uint64_t begun;
    double seconds;
};

static bool is_over(const struct shrinking *s)
{
    return clock_since(s->begun) > s->seconds || interrupt_came() != 0;
}

/* Takes the candidate for the list where it shows the same.  It is freed in any case. */
static bool take(struct shrinking *s, struct call_list *candidate)
{
    struct attempt seen = s->how(s->about, candidate);
    bool is_same = seen.outcome == REPRODUCED && strcmp(seen.what, s->seen.what) == 0;
    if (!is_same) {
        call_list_free(candidate);
        return false;
    }
    s->seen = seen;
    if (!candidate->checks.of_growth && seen.at < candidate->count)
        candidate->count = seen.at + 1; /* what is behind it is not needed */
    call_list_free(s->list);
    *s->list = *candidate;
    return true;
}

/* ---- what came last ------------------------------------------------------------------------ */

static bool is_of_block(const struct step *step, const struct step *last)
{
    return step->kind <= STEP_FREE && step->block == last->block;
}

/* The last so many steps, and the history of the block that the last one of all is about. */
static struct call_list last_steps(const struct call_list *list, size_t count)
{
    struct call_list copy = call_list_copy(list);
    const struct step *last = &list->at[list->count - 1];
    size_t kept = 0;
    for (size_t i = 0; i < copy.count; i++) {
        if (i + count >= list->count || is_of_block(&list->at[i], last))
            copy.at[kept++] = list->at[i];
    }
    copy.count = kept;
    return copy;
}

/* The last step that makes a block, or NULL. */
static const struct step *last_making(const struct call_list *list)
{
    for (size_t i = list->count; i-- > 0;) {
        uint8_t kind = list->at[i].kind;
        if (kind == STEP_MALLOC || kind == STEP_CALLOC || kind == STEP_MALLOC_FREE ||
            kind == STEP_CALLOC_FREE)
            return &list->at[i];
    }
    return NULL;
}

/* What one in so many shows: the last block of all, or one of 16 bytes, made more often than
 * blocks were, and freed at once or not. */
static bool repeat_last(struct shrinking *s, bool frees, bool is_small)
{
    const uint64_t most_bytes = (uint64_t)1 << (frees ? 31 : 28);
    const struct step *last = last_making(s->list);
    if (last == NULL || is_over(s))
        return false;
    struct call_list candidate = call_list_copy(s->list);
    struct step step = *last;
    bool by_calloc = step.kind == STEP_CALLOC || step.kind == STEP_CALLOC_FREE;
    if (is_small) {
        step.first = 16;
        step.second = by_calloc;
    }
    uint64_t size = by_calloc ? step.first * step.second : step.first;
    uint64_t times = MIN(2 * (uint64_t)s->list->count + step.times, most_bytes / (size + 64) + 1);
    step.block = 0;
    step.times = (uint32_t)MIN(times, (uint64_t)MOST_BLOCKS);
    step.kind = (uint8_t)(by_calloc ? frees ? STEP_CALLOC_FREE : STEP_CALLOC
                          : frees   ? STEP_MALLOC_FREE
                                    : STEP_MALLOC);
    if (candidate.count > 0) {
        candidate.at[0] = step;
        candidate.count = 1;
    }
    return take(s, &candidate);
}

static bool repeat_any(struct shrinking *s)
{
    return repeat_last(s, true, false) || repeat_last(s, true, true) ||
           (!s->list->checks.of_growth &&
            (repeat_last(s, false, false) || repeat_last(s, false, true)));
}

static void cut_beginning(struct shrinking *s)
{
    for (size_t count = 1; count < s->list->count && !is_over(s); count *= 2) {
        struct call_list candidate = last_steps(s->list, count);
        if (take(s, &candidate))
            return;
    }
}

/* ---- what is between ----------------------------------------------------------------------- */

/* What is made has to be freed all the same where memory is not to grow. */
static struct call_list without(const struct call_list *list, size_t from, size_t count)
{
    struct call_list copy = call_list_copy(list);
    if (copy.count == 0)
        return copy;
    memmove(copy.at + from, copy.at + from + count, (copy.count - from - count) * sizeof *copy.at);
    copy.count -= count;
    if (copy.checks.of_growth)
        call_list_close(&copy);
    return copy;
}

/* True where anything was left out. */
static bool leave_out(struct shrinking *s, size_t length)
{
    bool any = false;
    for (size_t end = s->list->count; end > 0 && !is_over(s);) {
        size_t from = end > length ? end - length : 0;
        struct call_list candidate = without(s->list, from, end - from);
        end = from;
        if (candidate.count > 0 && candidate.count < s->list->count)
            any = take(s, &candidate) || any;
        else
            call_list_free(&candidate);
        end = MIN(end, s->list->count);
    }
    return any;
}

static void leave_out_all(struct shrinking *s)
{
    for (size_t length = s->list->count / 2; length > 0 && !is_over(s);) {
        if (!leave_out(s, length) || length > 1)
            length /= 2;
    }
}

/* Without the blocks [from, to), from where they are made to where they go. */
static struct call_list without_blocks(const struct call_list *list, uint32_t from, uint32_t to)
{
    struct call_list copy = call_list_copy(list);
    size_t kept = 0;
    for (size_t i = 0; i < copy.count; i++) {
        bool is_about_one = copy.at[i].kind <= STEP_CALLOC_FREE;
        if (!is_about_one || copy.at[i].block < from || copy.at[i].block >= to)
            copy.at[kept++] = copy.at[i];
    }
    copy.count = kept;
    return copy;
}

/* Half of the blocks at a time, a quarter of them, and so on: what is about one block is all over
 * the list, and most of them are of no account. */
static void leave_out_blocks(struct shrinking *s)
{
    enum { PARTS = 64 };
    uint32_t blocks = (uint32_t)call_list_blocks(s->list);
    for (uint32_t parts = 2; parts <= PARTS && parts <= blocks; parts *= 2) {
        uint32_t length = (blocks + parts - 1) / parts;
        for (uint32_t from = 0; from < blocks && !is_over(s); from += length) {
            struct call_list candidate = without_blocks(s->list, from, from + length);
            if (candidate.count > 0 && candidate.count < s->list->count)
                take(s, &candidate);
            else
                call_list_free(&candidate);
        }
    }
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* Each attempt takes as long as they do. */
static void shorten_pauses(struct shrinking *s)
{
    enum { LONG = 100, PARTS = 16 };
    struct call_list candidate = call_list_copy(s->list);
    bool any = false;
    for (size_t i = 0; i < candidate.count; i++) {
        struct step *step = &candidate.at[i];
        bool is_long = step->kind == STEP_PAUSE && step->first >= LONG;
        any = any || is_long;
        step->first = is_long ? step->first / PARTS : step->first;
    }
    if (any && !is_over(s))
        take(s, &candidate);
    else
        call_list_free(&candidate);
}

static bool try_times(struct shrinking *s, size_t i, uint32_t times)
{
    struct call_list candidate = call_list_copy(s->list);
    if (candidate.count > 0)
        candidate.at[i].times = times;
    return take(s, &candidate);
}

static void lower_times(struct shrinking *s)
{
    for (size_t i = 0; i < s->list->count; i++) {
        uint32_t least = 0, most = s->list->at[i].times; /* the latter shows it */
        while (most - least > 1 && !is_over(s)) {
            uint32_t middle = least + (most - least) / 2;
            if (!try_times(s, i, middle))
                least = middle;
            else
                most = middle;
            if (i >= s->list->count)
                return;
        }
    }
}

/* Without errno, and on the first thread. */
static void simplify_steps(struct shrinking *s, bool threads)
{
    struct call_list candidate = call_list_copy(s->list);
    bool any = false;
    for (size_t i = 0; i < candidate.count; i++) {
        struct step *step = &candidate.at[i];
        any = any || (threads ? step->thread : step->error) != 0;
        if (threads)
            step->thread = 0;
        else
            step->error = 0;
    }
    if (any && !is_over(s))
        take(s, &candidate);
    else
        call_list_free(&candidate);
}

/* The errno of one step alone. */
static void forget_each_error(struct shrinking *s)
{
    for (size_t i = 0; i < s->list->count && !is_over(s); i++) {
        if (s->list->at[i].error == 0)
            continue;
        struct call_list candidate = call_list_copy(s->list);
        if (candidate.count > 0)
            candidate.at[i].error = 0;
        take(s, &candidate);
    }
}

static bool has_size(const struct step *step)
{
    return step->kind <= STEP_FREE_NULL;
}

/* And not what says that the size is the right one. */
static bool has_second_size(const struct step *step)
{
    return step->kind == STEP_CALLOC || step->kind == STEP_CALLOC_FREE;
}

/* That size wherever it is, or what it was given in place of. */
static bool try_size(struct shrinking *s, uint64_t size, uint64_t other)
{
    struct call_list candidate = call_list_copy(s->list);
    for (size_t i = 0; i < candidate.count; i++) {
        struct step *step = &candidate.at[i];
        if (has_size(step) && step->first == size)
            step->first = other;
        if (has_second_size(step) && step->second == size)
            step->second = other;
    }
    return take(s, &candidate);
}

static void round_size(struct shrinking *s, uint64_t size)
{
    static const uint64_t round[] = {1,    8,    16,   32,    64,    100,    128,     256,     512,
                                     1000, 1024, 4096, 10000, 65536, 100000, 1 << 20, 10 << 20};
    for (size_t i = 0; i < sizeof round / sizeof *round && round[i] < size && !is_over(s); i++) {
        if (try_size(s, size, round[i]))
            return;
    }
}

static bool was_before(const struct call_list *list, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (has_size(&list->at[k]) && list->at[k].first == list->at[i].first)
            return true;
    }
    return false;
}

/* ---- alike ----------------------------------------------------------------------------------- */

/* Each block made by malloc. */
static void make_all_by_malloc(struct shrinking *s)
{
    struct call_list candidate = call_list_copy(s->list);
    bool *live = calloc(call_list_blocks(&candidate), sizeof *live), any = false;
    for (size_t i = 0; live != NULL && i < candidate.count; i++) {
        struct step *step = &candidate.at[i];
        bool is_of_null = step->kind == STEP_REALLOC && !live[step->block];
        if (step->kind <= STEP_FREE)
            live[step->block] = step->kind != STEP_FREE;
        if (step->kind != STEP_CALLOC && !is_of_null)
            continue;
        any = true;
        step->first *= is_of_null ? 1 : step->second;
        step->second = 0;
        step->kind = STEP_MALLOC;
    }
    free(live);
    if (any && !is_over(s))
        take(s, &candidate);
    else
        call_list_free(&candidate);
}

/* Sizes that are as good as the last one are that one. */
static void unify_sizes(struct shrinking *s)
{
    enum { MOST_TRIED = 64 };
    size_t tried = 0;
    for (size_t i = 0; i < s->list->count && tried < MOST_TRIED && !is_over(s); i++) {
        const struct step *step = &s->list->at[i], *last = last_making(s->list);
        bool makes = step->kind == STEP_MALLOC || step->kind == STEP_REALLOC;
        if (!makes || last == NULL || step->first == last->first || was_before(s->list, i))
            continue;
        try_size(s, step->first, last->first);
        tried++;
    }
}

/* What is then the same again and again is one step. */
static void join_steps(struct shrinking *s)
{
    struct call_list candidate = call_list_copy(s->list);
    call_list_tidy(&candidate);
    if (candidate.count > 0 && candidate.count < s->list->count && !is_over(s))
        take(s, &candidate);
    else
        call_list_free(&candidate);
}

static void make_alike(struct shrinking *s)
{
    enum { MOST_STEPS_TO_LOOK_THROUGH = 4000 };
    make_all_by_malloc(s);
    if (s->list->count < MOST_STEPS_TO_LOOK_THROUGH)
        unify_sizes(s);
    join_steps(s);
}

/* Of a list that is short by now. */
static void round_sizes(struct shrinking *s)
{
    enum { SHORT = 40 };
    for (size_t i = 0; i < s->list->count && s->list->count <= SHORT && !is_over(s); i++) {
        if (has_size(&s->list->at[i]) && !was_before(s->list, i))
            round_size(s, s->list->at[i].first);
    }
}

struct attempt shrink(attempt_function *how, const void *about, struct call_list *list,
                      struct attempt seen, double seconds)
{
    enum { FEW = 20 };
    struct shrinking s = {how, about, list, seen, clock_now(), seconds};
    if (!list->checks.of_growth && seen.at < list->count)
        list->count = seen.at + 1;
    if (!list->checks.of_growth) /* there each attempt takes its time, and halves do as well */
        cut_beginning(&s);
    if (list->count > FEW)
        repeat_any(&s);
    shorten_pauses(&s);
    simplify_steps(&s, true);
    simplify_steps(&s, false);
    if (!list->checks.of_growth && list->count > FEW)
        leave_out_blocks(&s);
    leave_out_all(&s);
    if (!list->checks.of_growth)
        make_alike(&s);
    lower_times(&s);
    if (!list->checks.of_growth)
        round_sizes(&s);
    forget_each_error(&s);
    return s.seen;
}

/* ---- by chance ------------------------------------------------------------------------------- */

static bool is_one_of(const struct step *step, const uint32_t *blocks, size_t count)
{
    for (size_t i = 0; i < count && step->kind <= STEP_CALLOC_FREE; i++) {
        if (step->block == blocks[i])
            return true;
    }
    return false;
}

/* Without a block or two, from where they are made to where they go. */
static bool leave_blocks_out(struct shrinking *s, struct random *random)
{
    struct call_list candidate = call_list_copy(s->list);
    uint32_t blocks[2];
    size_t kept = 0, count = 1 + random_below(random, 2);
    for (size_t i = 0; i < count; i++)
        blocks[i] = s->list->at[random_below(random, s->list->count)].block;
    for (size_t i = 0; i < candidate.count; i++) {
        if (!is_one_of(&candidate.at[i], blocks, count))
            candidate.at[kept++] = candidate.at[i];
    }
    candidate.count = kept;
    return take(s, &candidate);
}

/* Without a few steps that are apart. */
static bool leave_some_out(struct shrinking *s, struct random *random)
{
    struct call_list candidate = call_list_copy(s->list);
    for (size_t times = 2 + random_below(random, 3); times > 0 && candidate.count > 1; times--) {
        size_t at = random_below(random, candidate.count);
        memmove(candidate.at + at, candidate.at + at + 1,
                (--candidate.count - at) * sizeof *candidate.at);
    }
    return take(s, &candidate);
}

/* A stretch that does no more than bring a counter on is as good as a block that comes and goes. */
static bool make_stretch_a_row(struct shrinking *s, struct random *random)
{
    enum { STRETCH = 3 };
    size_t from = random_below(random, 2) == 0 ? 0 : random_below(random, s->list->count);
    const struct step *like = &s->list->at[random_below(random, s->list->count)];
    if (like->kind > STEP_REALLOC || from + STRETCH >= s->list->count)
        return false;
    size_t length = STRETCH + random_below(random, s->list->count - from - STRETCH);
    struct step row = {.kind = STEP_MALLOC_FREE,
                       .block = (uint32_t)call_list_blocks(s->list),
                       .times = (uint32_t)(2 * length),
                       .first = like->first};
    struct call_list candidate = call_list_copy(s->list);
    if (candidate.count > 0 && row.block < MOST_BLOCKS) {
        candidate.at[from] = row;
        memmove(candidate.at + from + 1, candidate.at + from + length,
                (candidate.count - from - length) * sizeof row);
        candidate.count -= length - 1;
    }
    return take(s, &candidate);
}

/* One size, wherever it is, is another one that is there. */
static bool make_two_sizes_one(struct shrinking *s, struct random *random)
{
    const struct step *a = &s->list->at[random_below(random, s->list->count)];
    const struct step *b = &s->list->at[random_below(random, s->list->count)];
    bool have = a->kind <= STEP_REALLOC && b->kind <= STEP_REALLOC && a->first != b->first;
    return have && try_size(s, a->first, b->first);
}

struct attempt shrink_by_chance(attempt_function *how, const void *about, struct call_list *list,
                                struct attempt seen, size_t enough, double seconds)
{
    enum { SHORT = 600, TRIES = 16 };
    struct shrinking s = {how, about, list, seen, clock_now(), seconds};
    struct random random = {list->count};
    for (size_t tries = 0;
         list->count > enough && list->count < SHORT && tries < TRIES * list->count && !is_over(&s);
         tries++) {
        size_t what = random_below(&random, 5);
        bool any = what < 2    ? leave_blocks_out(&s, &random)
                   : what == 2 ? leave_some_out(&s, &random)
                   : what == 3 ? make_stretch_a_row(&s, &random)
                               : make_two_sizes_one(&s, &random);
        tries = any && what < 4 ? 0 : tries;
    }
    while (list->count > 1 && !is_over(&s) && leave_out(&s, 1)) {
    }
    return s.seen;
}
