/* SPDX-License-Identifier: BSD-3-Clause
 *
 * threads: at the end of a thread, and of its stack.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/growth.h"
#include "harness/harness.h"
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
        fail(fmt("calls to need at most %d KiB of stack", ROOM >> 10),
             "a call that needs %td KiB or more", (below.to + ROOM - at) >> 10);
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
    .title  = "64 KiB of stack are enough",
    .clause = "Each of the four functions needs at most 64 KiB of stack, for every block size.",
    .source = "threading.stack_size allows 32 KiB; musl gives a thread 128 KiB",
    .why    = "A handler that needs more ends programs whose threads have small stacks.",
    .hint   = "Put buffers of more than two pages into static memory. Do not call alloca with a "
              "size from the caller.",
    .looks  = "expected calls to need at most 64 KiB of stack; seen a call that needs 192 KiB or "
              "more")
{
    if (is_instrumented())
        skip("a sanitizer or valgrind takes stack of its own");
    control_begin("on a large stack");
    use_all();
    control_end();
    step("calls with %d KiB of stack", ROOM >> 10);
    in_threads(1, use_with_little_stack, NULL, 0);
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
    .title  = "ended threads leave no memory behind",
    .clause = "Memory that the handler keeps for a thread is released or reused after the thread "
              "ended.",
    .source = "good practice",
    .why    = "A server that starts a thread per request loses 16 KiB of cache for each.",
    .hint   = "Free the cache in a key's destructor (pthread_key_create), or pass it on.",
    .looks  = "expected memory to stop growing while threads make blocks and end; seen 3200 KiB "
              "more")
{
    if (pthread_key_create(&owner_key, give_up_owned) != 0)
        harness_broke("a key for threads cannot be made");
    expect_no_growth(150, use_in_new_thread, use_beside_new_thread, NULL,
                     "threads make some blocks, free them and end");
}
