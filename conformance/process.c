/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process: forked children.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/sanitizer_detect.h"
#include "block_checks.h"
#include "harness/threads.h"
#include "ordinary_use.h"

GROUP(process, 7, "Forked children, and the end of the interpreter.",
      .rank = {RANK_IN_USE, RANK_AT_LENGTH, 38});

/* ---- forked children --------------------------------------------------------------------- */

/* Blocks of all sorts, and a large one, if it is given, of which samples are written. */
struct inheritance {
    struct blocks blocks, large;
};

/* One that realloc has made large, from one as large that it may have had to copy. */
static void add_grown(struct blocks *blocks)
{
    enum { LARGE = 16 << 20, MORE = 17 << 20 };
    void *p = largest_to_try() >= MORE ? subject_malloc(LARGE) : NULL;
    void *grown = p != NULL ? subject_realloc(p, MORE) : NULL;
    if (grown != NULL)
        blocks_add_large(blocks, grown, MORE);
    else
        give_back(p, LARGE);
}

/* That one gets smaller again, by little. */
static void shrink_grown(struct blocks *blocks)
{
    enum { LESS = (16 << 20) + 100, LOOKED_AT = 64 };
    for (size_t i = 0; i < blocks->count; i++) {
        struct block *b = &blocks->at[i];
        char before[LOOKED_AT];
        if (b->size <= LESS || b->size > LESS + (1 << 20))
            continue;
        memcpy(before, b->p, LOOKED_AT);
        unsigned char *p = subject_realloc(b->p, LESS);
        if (p == NULL)
            continue;
        b->p = p;
        expect(memcmp(before, b->p, LOOKED_AT) == 0,
               fmt("the first %d bytes to be kept by realloc from %zu to %d in a forked child",
                   LOOKED_AT, b->size, LESS),
               "they are not what they were");
        b->size = LESS;
        sample_fill(b->p, b->size, b->number);
    }
}

/* Looks at what it inherited, writes over it, resizes and frees it, and makes blocks of its own. */
static void use_inheritance(void *data)
{
    struct inheritance *inheritance = data;
    struct blocks *blocks = &inheritance->blocks, *large = &inheritance->large;
    blocks_verify(blocks, "as a forked child sees it");
    blocks_verify_samples(large, "as a forked child sees it");
    for (size_t i = 0; i < large->count; i++) {
        large->at[i].number += 1u << 20;
        sample_fill(large->at[i].p, large->at[i].size, large->at[i].number);
    }
    shrink_grown(large);
    for (size_t i = 0; i < blocks->count; i++) {
        struct block *b = &blocks->at[i];
        if (i % 3 == 1) {
            size_t size = b->size / 2 + 100;
            b->p = must_realloc(b->p, size);
            expect_pattern(b->p, MIN(b->size, size), b->number,
                           "after realloc from %zu to %zu in a forked child", b->size, size);
            b->size = size;
        }
        b->number += 1u << 20;
        pattern_fill(b->p, b->size, b->number);
    }
    for (size_t i = 0; i < blocks->count; i += 3)
        blocks_free(blocks, i);
    blocks_add_neighbours(blocks, 30);
    blocks_verify(blocks, "in a forked child that resized, freed and made blocks");
    blocks_verify_samples(large, "in a forked child that resized, freed and made blocks");
    blocks_free_all(blocks);
    blocks_free_all(large);
}

/* The child of a child that made no call. */
static void bequeath(void *data)
{
    step("the child of a forked child uses the blocks that it inherited");
    in_child(use_inheritance, data);
}

enum { MUCH = 1 << 30 };

static void never_freed(int number)
{
    (void)number;
    fail("free to return in a forked child", "no end after %.3g s", hang_limit());
}

/* Blocks come and go, untouched, more of them than fit into a queue that nobody empties; how many
 * of their bytes are still mapped when whoever gives them back has had its time. */
static size_t keeps_of_many(void)
{
    enum { FREES = 140, WAITS = 100 };
    static const size_t sizes[] = {300000, (4 << 20) + 8, 40 << 20};
    size_t begun = mapped_bytes();
    for (size_t i = 0; i < FREES * LENGTH(sizes) && !time_is_up(); i++) {
        size_t size = sizes[i / FREES];
        alarm_in(hang_limit());
        give_back(subject_malloc(size), size);
    }
    alarm_in(0);
    size_t now = mapped_bytes();
    for (int i = 0; i < WAITS && now > begun + MUCH; i++) {
        nanosleep(&(struct timespec){0, 2000000}, NULL);
        now = mapped_bytes();
    }
    return now > begun ? now - begun : 0;
}

/* A few of them at a time have as long as one call: a slow handler hangs in none. */
static void free_many(size_t size, size_t many)
{
    enum { A_FEW = 200 };
    for (size_t i = 0; i < many && !time_is_up(); i += A_FEW) {
        alarm_in(hang_limit());
        subject_malloc_and_free(size, A_FEW);
    }
    alarm_in(0);
}

/* `data` is how much it keeps, shared with the parent. */
static void free_many_blocks(void *data)
{
    enum { SMALL = 40, MANY = 20000, SMALLER_THAN = 300000 };
    signal(SIGALRM, never_freed);
    *(size_t *)data = keeps_of_many();
    free_many(SMALL, MANY);
    for (size_t size = 3 * SMALL; size < SMALLER_THAN; size *= 3)
        free_many(size, MANY / 20);
}

/* What it keeps without a fork as well, free.reclaims tells. */
static void expect_child_frees(void)
{
    size_t *kept =
        mmap(NULL, sizeof *kept, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (kept == MAP_FAILED)
        harness_broke("no memory to share: %s", strerror(errno));
    step("a forked child makes and frees many blocks");
    in_child(free_many_blocks, kept);
    expect(*kept < MUCH || keeps_of_many() >= MUCH,
           "a forked child to release the blocks that it frees, as its parent does",
           "%zu MiB more mapped, though each was freed before the next was made", *kept >> 20);
    munmap(kept, sizeof *kept);
}

/* Where a handler gives so much, and has something left. */
static void add_large(struct blocks *blocks)
{
    enum { LARGE = 48 << 20, REST = 8 << 20 };
    size_t size = MIN(LARGE, largest_to_try());
    void *p = subject_malloc(size), *rest = p != NULL ? subject_malloc(REST) : NULL;
    if (rest != NULL) {
        subject_free(rest, REST);
        blocks_add_large(blocks, p, size);
    } else if (p != NULL) {
        subject_free(p, size);
    }
}

/* With room between them and without. */
static struct inheritance make_inheritance(void)
{
    static const size_t sizes[] = {1, 24, 100, 1000, 4096, 5000, 40000, 131073};
    struct inheritance made = {0};
    add_large(&made.large);
    add_grown(&made.large);
    blocks_add(&made.blocks, must_malloc(1 << 20), 1 << 20);
    for (size_t i = 0; i < 3 * LENGTH(sizes); i++) {
        size_t size = sizes[i / 3];
        blocks_add(&made.blocks, must_make(i, size), size);
    }
    return made;
}

/* A child's exit functions are its parent's; what they take away is to be the child's alone. */
static void expect_exit_of_child(bool fills)
{
    enum { LARGE = 2 << 20 };
    void *before = fills ? NULL : subject_malloc(LARGE);
    expect(program_survives(use_and_free_all, NULL),
           "a forked child to end by exit(), where its parent has used the handler",
           "a crash, or no end after %.3g s", hang_limit());
    step("the parent goes on when a forked child has ended by exit()");
    use_and_free_all(NULL);
    void *after = before != NULL ? subject_malloc(LARGE) : NULL;
    expect(before == NULL || after != NULL,
           fmt("malloc(%d) to return a block, as before a forked child ended by exit()", LARGE),
           "NULL");
    give_back(after, LARGE);
    give_back(before, LARGE);
}

PROPERTY(process_fork_child,
    .id     = "process.fork-child", .level = SHOULD, .basis = BASIS_QOI, .slow_ms = 147,
    .title  = "a forked child can use blocks",
    .clause = "A forked child can use, resize and free inherited blocks and make new ones.",
    .tests  = "A grandchild does the same. Writes of a child must not reach the parent, and exit() "
              "has to end the child.",
    .source = "POSIX.1-2024, fork(): the child is a copy of its parent, with one thread",
    .why    = "multiprocessing and web servers fork while arrays are live.",
    .wrong  = "mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);",
    .right  = "mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);",
    .hint   = "Map memory private, without MADV_DONTFORK. Copy other memory in a pthread_atfork "
              "handler. Do not wait for a thread that the child lacks.",
    .looks  = "expected byte 0 of 5000 to be 0x77 as it was written, after a child wrote; seen "
              "0x3d")
{
    bool ends = program_survives(use_and_free_all, NULL);
    control_begin("without a fork");
    struct inheritance own = make_inheritance();
    use_inheritance(&own);
    struct inheritance left = make_inheritance();
    struct blocks *blocks = &left.blocks;
    blocks_verify(blocks, "before a fork");
    blocks_expect_disjoint(blocks);
    bool fills = is_instrumented() || subject_fills_blocks();
    control_end();
    if (!fills)
        expect_child_frees();
    for (size_t i = 0; i < 3; i++) {
        step("a forked child uses the blocks that it inherited");
        in_child(i < 2 ? use_inheritance : bequeath, &left);
        blocks_verify(blocks, "after a forked child wrote over its copy");
        blocks_verify_samples(&left.large, "after a forked child wrote over its copy");
        blocks_add_neighbours(blocks, 30);
        blocks_verify(blocks, "after a forked child had gone, and new blocks were made");
    }
    blocks_expect_disjoint(blocks);
    blocks_free_all(blocks);
    blocks_free_all(&left.large);
    if (ends) /* where only the child uses it */
        expect_exit_of_child(fills);
}

/* ---- both sides of a fork -------------------------------------------------------------------- */

/* One side's blocks.  Those of the other are none of its business. */
struct side {
    struct blocks inherited, own, large;
};

/* Makes large blocks, of which samples are written, looks at all, and frees the oldest.  Two of
 * each are live in the end. */
static void take_a_large_turn(struct blocks *large, const char *when)
{
    static const size_t sizes[] = {300000, (1 << 20) + 4096, 4 << 20};
    enum { SIZES = LENGTH(sizes), MOST = 2 * SIZES };
    for (size_t i = 0; i < SIZES && sizes[i] <= largest_to_try(); i++) {
        void *p = subject_malloc(sizes[i]);
        if (p != NULL)
            blocks_add_large(large, p, sizes[i]);
    }
    blocks_verify_samples(large, "%s", when);
    blocks_expect_disjoint(large);
    while (large->count > MOST)
        blocks_free(large, 0);
}

/* Frees some of what it inherited, makes, resizes and frees blocks, and looks at all. */
static void take_a_turn(struct side *side, const char *when)
{
    static const size_t sizes[] = {24, 100, 1000, 3000, 5000, 20000, 70000};
    enum { SIZES = LENGTH(sizes), OF_EACH = 3 };
    for (size_t i = 0; i < 5 && side->inherited.count > 0; i++)
        blocks_free(&side->inherited, side->inherited.count / 2);
    for (size_t i = 0; i < SIZES * OF_EACH; i++) {
        size_t size = sizes[i % SIZES];
        void *p = i % 3 == 0   ? must_malloc(size)
                  : i % 3 == 1 ? must_calloc(1, size)
                               : must_realloc(must_malloc(size / 2), size);
        if (i % 3 == 1)
            expect_zero(p, size, "after calloc(1, %zu), %s", size, when);
        blocks_add(&side->own, p, size);
    }
    blocks_verify(&side->inherited, "%s", when);
    blocks_verify(&side->own, "%s", when);
    blocks_expect_disjoint(&side->own);
    for (size_t i = 0; i < SIZES; i++)
        blocks_free(&side->own, i);
    take_a_large_turn(&side->large, when);
}

static void free_side(struct side *side, const char *when)
{
    blocks_verify(&side->inherited, "%s", when);
    blocks_verify(&side->own, "%s", when);
    blocks_verify_samples(&side->large, "%s", when);
    blocks_free_all(&side->inherited);
    blocks_free_all(&side->own);
    blocks_free_all(&side->large);
}

/* Blocks to inherit, and freed ones before them that either side may be given. */
static void make_side(struct side *side)
{
    struct side gone = {0};
    *side = (struct side){0};
    take_a_turn(&gone, "before a fork");
    blocks_add_neighbours(&side->inherited, 40);
    free_side(&gone, "before a fork");
}

enum { TURNS = 3 };
struct fork_in_turns {
    struct side *side;
    int to_child[2], to_parent[2];
};

/* Each returns false where the other process is gone. */
static bool pass_turn(int to)
{
    return write(to, "", 1) == 1;
}

static bool await_turn(int from)
{
    char byte;
    ssize_t length;
    do
        length = read(from, &byte, 1);
    while (length < 0 && errno == EINTR);
    return length == 1;
}

static void turns_of_child(void *data)
{
    struct fork_in_turns *f = data;
    close(f->to_child[1]);
    close(f->to_parent[0]);
    blocks_add_neighbours(&f->side->own, 7); /* or the patterns to come are those of its parent */
    for (size_t i = 0; i < TURNS; i++) {
        take_a_turn(f->side, "in a forked child, while its parent makes blocks too");
        if (!pass_turn(f->to_parent[1]) || !await_turn(f->to_child[0]))
            _exit(0);
    }
    free_side(f->side, "in a forked child, after its parent made blocks too");
}

static void turns_of_parent(struct fork_in_turns *f)
{
    struct child child = start_child(turns_of_child, f);
    close(f->to_child[0]);
    close(f->to_parent[1]);
    for (size_t i = 0; i < TURNS; i++) {
        take_a_turn(f->side, "while a forked child makes blocks too");
        if (!await_turn(f->to_parent[0]))
            break;
        blocks_verify(&f->side->own, "after a forked child made and freed blocks of its own");
        blocks_verify_samples(&f->side->large,
                              "after a forked child made and freed blocks of its own");
        take_a_turn(f->side, "while a forked child makes blocks too");
        if (!pass_turn(f->to_child[1]))
            break;
    }
    await_child(child); /* it has the verdict, where it is why the loop ended */
    close(f->to_child[1]);
    close(f->to_parent[0]);
    free_side(f->side, "after a forked child made and freed blocks of its own");
}

PROPERTY(process_fork_both_sides,
    .id     = "process.fork-both-sides", .level = SHOULD, .basis = BASIS_QOI,
    .title  = "parent and child do not interfere",
    .clause = "After a fork, parent and child can use blocks at the same time without changing "
              "each other's data.",
    .source = "POSIX.1-2024, fork(): the child is a copy of its parent, memory included",
    .why    = "A worker's results would appear in the arrays of its server.",
    .hint   = "Share neither blocks nor free lists (MAP_SHARED), or start a new arena in the "
              "child.",
    .looks  = "expected byte 0 of 3000 to be 0x77 as it was written, after a fork; seen 0x3d")
{
    struct side side, other;
    struct fork_in_turns f = {.side = &side};
    if (pipe2(f.to_child, O_CLOEXEC) != 0 || pipe2(f.to_parent, O_CLOEXEC) != 0)
        harness_broke("pipe2: %s", strerror(errno));
    control_begin("without a fork");
    make_side(&other);
    make_side(&side);
    take_a_turn(&other, "without a fork");
    take_a_turn(&side, "without a fork");
    free_side(&other, "without a fork");
    control_end();
    step("a forked child and its parent make blocks");
    side.inherited.after_fork = side.own.after_fork = side.large.after_fork = true;
    turns_of_parent(&f);
}

/* ---- a fork while other threads are busy ----------------------------------------------------- */

/* Two threads are busy, a third forks meanwhile. */
enum { BUSY = 2, CREW = BUSY + 1, FORKS = 8 };
enum { LARGE_BLOCK = 5 << 20 };
struct member {
    size_t number;
    atomic_bool *done;
};

static void be_busy(size_t number, atomic_bool *done)
{
    size_t size = 40 + number;
    perturb_begin(number);
    while (!atomic_load(done)) {
        give_back(size < 100 ? subject_malloc(LARGE_BLOCK) : NULL, LARGE_BLOCK);
        void *p = must_malloc(size), *q = must_calloc(size, 2);
        p = must_realloc(p, 3 * size);
        subject_free(q, 2 * size);
        p = must_realloc(p, size);
        subject_free(p, size);
        size = size < 9000 ? size * 2 : 40 + number;
    }
    perturb_end();
}

static void too_late(int number)
{
    (void)number;
    fail(fmt("calls of a forked child to return, when another thread was inside the subject at "
             "the fork"),
         "no end after %.3g s", hang_limit());
}

static void use_in_time(void *data)
{
    struct block *kept = data;
    signal(SIGALRM, too_late);
    alarm_in(hang_limit());
    give_back(subject_malloc(LARGE_BLOCK), LARGE_BLOCK);
    for (size_t size = 10; size <= 10000; size *= 10) {
        void *p = must_malloc(size), *q = must_calloc(1, size);
        p = must_realloc(p, 2 * size);
        subject_free(p, 2 * size);
        subject_free(q, size);
    }
    expect_pattern(kept->p, kept->size, kept->number,
                   "in a child that was forked while another "
                   "thread was inside the subject");
    kept->p = must_realloc(kept->p, kept->size * 3);
    subject_free(kept->p, kept->size * 3);
    alarm_in(0);
}

static void work(void *data)
{
    struct member *member = data;
    if (member->number < BUSY) {
        be_busy(member->number, member->done);
        return;
    }
    control_begin("without a fork");
    struct block own = {must_malloc(500), 500, 1};
    pattern_fill(own.p, own.size, own.number);
    use_in_time(&own);
    struct block kept = {must_malloc(500), 500, 1};
    control_end();
    pattern_fill(kept.p, kept.size, kept.number);
    for (size_t i = 0; i < (is_instrumented() ? 1 : FORKS); i++) {
        step("fork %zu while other threads are inside the subject", i + 1);
        in_child(use_in_time, &kept);
    }
    expect_pattern(kept.p, kept.size, kept.number, "after %d forks", FORKS);
    subject_free(kept.p, kept.size);
    atomic_store(member->done, true);
}

PROPERTY(process_fork_while_busy,
    .id     = "process.fork-while-busy", .level = SHOULD, .basis = BASIS_QOI, .slow_ms = 66,
    .fixture = FIXTURE_BARE,
    .title  = "fork while a thread is in the handler",
    .clause = "If a process forks while another thread is inside the handler, the handler stays "
              "usable in the child.",
    .source = "POSIX.1-2024, pthread_atfork(): its purpose; glibc's own malloc works in the child",
    .why    = "The child's first array would wait for a lock whose owner does not exist there.",
    .wrong  = "pthread_mutex_lock(&lock); /* never released in the child */",
    .right  = "static void take_all(void) { pthread_mutex_lock(&lock); }\n"
              "static void release_all(void) { pthread_mutex_unlock(&lock); }\n"
              "pthread_atfork(take_all, release_all, release_all);",
    .hint   = "In pthread_atfork's prepare handler take every lock, and release it in the other "
              "two.",
    .looks  = "expected calls of a forked child to return; seen no end after 3.33 s")
{
    if (CONFORM_SANITIZED)
        skip("the sanitizer's own allocator is not made for a fork while it is busy");
    atomic_bool done = false;
    struct member crew[CREW];
    for (size_t i = 0; i < CREW; i++)
        crew[i] = (struct member){i, &done};
    in_threads(CREW, work, crew, sizeof crew[0]);
}
