/* SPDX-License-Identifier: BSD-3-Clause
 *
 * threads: at the end of a thread, and of its stack.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/harness.h"
#include "harness/leak_check.h"
#include "ordinary_use.h"

/* ---- a small stack ----------------------------------------------------------------------- */

/* What is below the room that a thread is left with, while it is out of bounds. */
enum { ROOM = 64 << 10 };
static struct {
    char *from, *to;
    struct sigaction before;
} below;

static void use_all(void)
{
    static const size_t sizes[] = {1,     100,    1000,   5000,    20000,   50000,
                                   70000, 140000, 300000, 1 << 20, 4 << 20, 100};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        size_t size = sizes[i];
        void *p = subject_malloc(size), *q = subject_calloc(1, size), *r;
        size_t now = size / 2 + 1;
        subject_free(NULL, 0);
        if (p != NULL && (r = subject_realloc(p, 2 * size)) != NULL)
            p = r;
        if (q != NULL && (r = subject_realloc(q, now)) != NULL)
            q = r;
        else
            now = size;
        give_back(q, now);
        give_back(p, 1);
    }
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    const char *at = info->si_addr;
    (void)context;
    if (at >= below.from && at < below.to)
        fail(fmt("calls to get on with %d KiB of stack", ROOM >> 10),
             "one goes on to %td KiB at least", (below.to + ROOM - at) >> 10);
    sigaction(number, &below.before, NULL); /* which has the next word, when it faults again */
}

static void catch_overflow(char *stack, size_t size)
{
    stack_t alternate = {.ss_sp = stack, .ss_size = size};
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaltstack(&alternate, NULL);
    sigaction(SIGSEGV, &action, &below.before);
}

static void use_with_little_stack(void *unused)
{
    enum { ALTERNATE = 64 << 10 };
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    pthread_attr_t attributes;
    void *lowest;
    size_t size;
    char here;
    (void)unused;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0 ||
        pthread_attr_getstack(&attributes, &lowest, &size) != 0)
        harness_broke("the stack of a thread cannot be found");
    pthread_attr_destroy(&attributes);
    below.from = lowest;
    below.to = (char *)(((uintptr_t)&here - ROOM) & -page);
    if (below.to <= below.from)
        skip("threads have less than %d KiB of stack here", ROOM >> 10);
    char *alternate = malloc(ALTERNATE);
    if (alternate == NULL)
        harness_broke("no memory for a stack");
    catch_overflow(alternate, ALTERNATE);
    if (mprotect(below.from, (size_t)(below.to - below.from), PROT_NONE) != 0)
        harness_broke("mprotect: %s", strerror(errno));
    use_all();
    mprotect(below.from, (size_t)(below.to - below.from), PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &below.before, NULL);
    sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
    free(alternate);
}

PROPERTY(threads_small_stack,
    .id     = "threads.small-stack", .level = SHOULD, .basis = BASIS_QOI, .fixture = FIXTURE_BARE,
    .clause = "the four functions need at most 64 KiB of stack, whatever the size of the block",
    .source = "threading.stack_size allows 32 KiB; musl gives a thread 128 KiB",
    .why    = "what needs more ends programs whose threads have small stacks",
    .hint   = "put buffers of more than two pages into static memory; no alloca of a caller's size",
    .looks  = "WARN: calls to get on with 64 KiB of stack; one goes on to 192 KiB at least")
{
    if (is_instrumented())
        skip("a sanitizer or valgrind takes stack of its own");
    control_begin("on a large stack");
    use_all();
    control_end();
    step("calls with %d KiB of stack", ROOM >> 10);
    in_threads(1, use_with_little_stack, NULL, 0);
}

/* ---- destructors of a thread --------------------------------------------------------------- */

/* A thread that goes on making and freeing blocks while its variables are destroyed: a round before
 * the handler's own destructors or after them, as it happens, and two that are after them. */
enum { ROUNDS = 3, THREADS = 3, LIBC_BLOCKS = 80 };
struct leaving {
    pthread_key_t key;
    size_t round;
    struct blocks blocks, libc;
};

/* What others do with memory that was freed. */
static void take_from_libc(struct leaving *l)
{
    for (size_t i = 0; i < LIBC_BLOCKS; i++) {
        size_t size = 24 + (i % 40) * (i % 40) * 3;
        void *p = malloc(size);
        if (p == NULL)
            harness_broke("out of memory");
        blocks_add(&l->libc, p, size);
    }
}

static void take_turn(struct leaving *l, const char *when)
{
    enum { FREED = 30, MADE = 45 };
    static const size_t sizes[] = {16, 40, 100, 200, 500, 1000, 5000};
    for (size_t i = 0; i < FREED && l->blocks.count > 0; i++)
        blocks_free(&l->blocks, l->blocks.count / 2);
    for (size_t i = 0; i < MADE; i++) {
        size_t size = sizes[i % LENGTH(sizes)];
        void *p = i % 3 == 1 ? must_calloc(1, size) : must_malloc(size);
        void *moved = i % 3 == 2 ? subject_realloc(p, size + size / 2) : NULL;
        blocks_add(&l->blocks, moved != NULL ? moved : p, size);
    }
    blocks_verify(&l->blocks, "%s", when);
    blocks_verify(&l->libc, "in memory that is libc's, %s", when);
    blocks_expect_disjoint(&l->blocks);
}

static void while_destroyed(void *data)
{
    struct leaving *l = data;
    step("round %zu of the destructors of a thread", ++l->round);
    take_from_libc(l);
    take_turn(l, "after calls in the destructors of a thread");
    if (l->round < ROUNDS)
        pthread_setspecific(l->key, l);
}

static void live_and_leave(void *data)
{
    struct leaving *l = data;
    take_turn(l, "in a thread");
    take_turn(l, "in a thread");
    if (pthread_setspecific(l->key, l) != 0)
        harness_broke("pthread_setspecific: no memory");
}

static void live_on(void *data)
{
    struct leaving *l = data;
    for (size_t i = 0; i < 2 + ROUNDS; i++) {
        take_from_libc(l);
        take_turn(l, "in a thread");
    }
}

static void free_libc(struct blocks *libc)
{
    for (size_t i = 0; i < libc->count; i++)
        free(libc->at[i].p);
    free(libc->at);
}

static void end_leaving(struct leaving *l, const char *when)
{
    blocks_verify(&l->blocks, "%s", when);
    blocks_verify(&l->libc, "in memory that is libc's, %s", when);
    blocks_expect_disjoint(&l->blocks);
    blocks_free_all(&l->blocks);
    free_libc(&l->libc);
}

static void stay_in_threads(void *unused)
{
    struct leaving l = {.round = 0};
    (void)unused;
    in_threads(1, live_on, &l, sizeof l);
    end_leaving(&l, "after the thread ended");
}

PROPERTY(threads_in_destructors,
    .id     = "threads.in-destructors", .level = MUST, .basis = BASIS_CALLER, .ends_process = true,
    .fixture = FIXTURE_BARE,
    .clause = "a thread can make, resize and free blocks in destructors of its variables that run "
              "after the handler's",
    .source = "NEP 49, PyDataMem_Handler thread safety and lifetime; POSIX.1-2024, "
              "pthread_key_create(): destructors run in no order and in several rounds; "
              "arrayobject.c array_dealloc, 1.22 to 2.5",
    .why    = "a thread_local C++ object that owns an array frees it there: the cache is gone",
    .hint   = "set the cache's pointer to NULL in its destructor: the next call makes another",
    .looks  = "CRASH: SIGSEGV, inside free(0x7f1b2c000b70, 100); step: round 2 of destructors")
{
    struct leaving leaving[THREADS] = {0};
    pthread_key_t key;
    if (pthread_key_create(&key, while_destroyed) != 0)
        harness_broke("a key for threads cannot be made");
    control_run(stay_in_threads, NULL, "in a thread that does it before it ends");
    for (size_t i = 0; i < THREADS; i++) {
        leaving[i].key = key;
        in_threads(1, live_and_leave, &leaving[i], sizeof leaving[i]);
    }
    for (size_t i = 0; i < THREADS; i++)
        end_leaving(&leaving[i], "after calls in the destructors of a thread that has ended");
    pthread_key_delete(key);
}

/* ---- what a thread leaves behind ------------------------------------------------------------ */

static void use_a_little(void *unused)
{
    (void)unused;
    for (size_t size = 128 << 10; size >= 32; size /= 4) {
        void *p = must_malloc(size), *q = must_calloc(1, size);
        memset(q, 1, size);
        void *moved = subject_realloc(p, size + 10);
        subject_free(q, size);
        subject_free(moved != NULL ? moved : p, moved != NULL ? size + 10 : size);
    }
}

/* What a variable of the thread owns goes in the second round of destructors, behind those of the
 * handler, which run in the first. */
enum { OWNED = 50000, UNTOUCHED = 2 << 20 };
static pthread_key_t owner_key;
static void give_up_owned(void *p)
{
    static _Thread_local bool is_second_round;
    if (!is_second_round && pthread_setspecific(owner_key, p) == 0)
        is_second_round = true;
    else
        subject_free(p, OWNED);
}

static void use_and_own(void *unused)
{
    use_a_little(unused);
    give_back(subject_malloc(UNTOUCHED), UNTOUCHED);
    void *p = must_malloc(OWNED);
    memset(p, 1, OWNED);
    if (pthread_setspecific(owner_key, p) != 0)
        subject_free(p, OWNED);
}

static void use_in_new_thread(void *unused)
{
    (void)unused;
    in_threads(1, use_and_own, NULL, 0);
}

static void idle(void *unused)
{
    (void)unused;
}

/* The same thread, and the same calls in this one. */
static void use_beside_new_thread(void *unused)
{
    in_threads(1, idle, NULL, 0);
    use_a_little(unused);
    give_back(subject_malloc(UNTOUCHED), UNTOUCHED);
    subject_free(must_malloc(OWNED), OWNED);
}

PROPERTY(threads_leave_no_memory,
    .id     = "threads.leave-no-memory", .level = SHOULD, .basis = BASIS_QOI,
    .fixture = FIXTURE_BARE,
    .clause = "what the handler keeps for a thread is given back or reused after its end",
    .source = "good practice",
    .why    = "a server that starts a thread per request loses 16 KiB of cache for each",
    .hint   = "free the cache in a key's destructor (pthread_key_create), or hand it on",
    .looks  = "WARN: memory to stop growing while threads make blocks and end; 3200 KiB more")
{
    if (pthread_key_create(&owner_key, give_up_owned) != 0)
        harness_broke("a key for threads cannot be made");
    expect_no_growth(150, use_in_new_thread, use_beside_new_thread, NULL,
                     "threads make some blocks, free them and end");
}
