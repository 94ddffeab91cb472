/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/abi.c catch.  Those that claim something, or do
 * something while they are loaded, are objects of their own beside this one.
 */
#define _GNU_SOURCE

#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"
#include "slots.h"

/* A sound handler, but for what is said behind its ids. */
#define STRUCT(defect, kills, ...)                                                                 \
    NEP49_EXPORT const char kills_##defect[] = kills;                                              \
    NEP49_EXPORT PyDataMem_Handler defect = {                                                      \
        .name = #defect, .version = 1, .allocator = {BASE_FUNCTIONS}, __VA_ARGS__}

/* ---- abi.name-terminated, abi.name-utf8, abi.name-says-something ----------------------------- */

MUTANT_GETTER(name_is_not_terminated, "abi.name-terminated")
{
    static PyDataMem_Handler handler = {.version = 1, .allocator = {BASE_FUNCTIONS}};
    (void)why;
    memset(handler.name, 'x', sizeof handler.name);
    return &handler;
}

STRUCT(name_is_latin_1, "abi.name-utf8", .name = "caf\xe9 au lait");
STRUCT(name_is_cut_within_a_letter, "abi.name-utf8", .name = "grande \xc3");
STRUCT(name_is_a_surrogate, "abi.name-utf8", .name = "half of \xed\xa0\xbd");
STRUCT(name_is_overlong, "abi.name-utf8",
       .name = "a\xc0\xaf"
               "b");

STRUCT(name_is_empty, "abi.name-says-something", .name = "");
STRUCT(name_is_blank, "abi.name-says-something", .name = "   ");
STRUCT(name_has_a_line_end, "abi.name-says-something", .name = "mine\n");
STRUCT(name_clears_the_screen, "abi.name-says-something", .name = "\x1b[2J mine");
STRUCT(name_cannot_be_seen, "abi.name-says-something", .name = "\xe2\x80\x8b");
STRUCT(name_is_numpys_own, "abi.name-says-something", .name = "default_allocator");

/* ---- abi.version, abi.functions-present ------------------------------------------------------ */

STRUCT(version_is_left_out, "abi.version", .version = 0);
STRUCT(version_is_2, "abi.version", .version = 2);

MUTANT(malloc_is_missing, "abi.functions-present", .malloc = NULL);
MUTANT(calloc_is_missing, "abi.functions-present", .calloc = NULL);
MUTANT(realloc_is_missing, "abi.functions-present", .realloc = NULL);
MUTANT(free_is_missing, "abi.functions-present", .free = NULL);

/* ---- abi.struct-constant --------------------------------------------------------------------- */

/* The first call finds out what works best here, and puts it into the struct. */
NEP49_EXPORT extern PyDataMem_Handler struct_patches_itself;
static void *deciding_malloc(void *ctx, size_t size)
{
    struct_patches_itself.allocator.malloc = base_malloc;
    return base_malloc(ctx, size);
}
MUTANT(struct_patches_itself, "abi.struct-constant", .malloc = deciding_malloc);

/* The name tells the state. */
NEP49_EXPORT extern PyDataMem_Handler struct_tells_its_state;
static void *telling_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    if (p == NULL)
        strcpy(struct_tells_its_state.name, "out of memory");
    return p;
}
MUTANT(struct_tells_its_state, "abi.struct-constant", .malloc = telling_malloc);

/* The version is that of the table of blocks, which grows with the thousandth one. */
NEP49_EXPORT extern PyDataMem_Handler struct_counts_its_tables;
static _Atomic int live_blocks;
static void *counted_malloc(void *ctx, size_t size)
{
    if (++live_blocks == 1000)
        struct_counts_its_tables.version++;
    return base_malloc(ctx, size);
}
static void uncounted_free(void *ctx, void *p, size_t size)
{
    live_blocks--;
    base_free(ctx, p, size);
}
MUTANT(struct_counts_its_tables, "abi.struct-constant", .malloc = counted_malloc,
       .free = uncounted_free);

/* The version says that half a gibibyte was live. */
NEP49_EXPORT extern PyDataMem_Handler struct_tells_of_much;
static _Atomic size_t live_bytes;
static void *weighed_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    if (p != NULL && atomic_fetch_add(&live_bytes, size) + size > (size_t)512 << 20)
        struct_tells_of_much.version = 2;
    return p;
}
static void *weighed_realloc(void *ctx, void *p, size_t size)
{
    size_t old = p != NULL ? base_size(p) : 0;
    void *moved = base_realloc(ctx, p, size);
    live_bytes += moved != NULL ? size - old : 0;
    return moved;
}
static void *weighed_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *p = base_calloc(ctx, nelem, elsize);
    live_bytes += p != NULL ? base_size(p) : 0;
    return p;
}
static void weighed_free(void *ctx, void *p, size_t size)
{
    live_bytes -= p != NULL ? base_size(p) : 0;
    base_free(ctx, p, size);
}
MUTANT(struct_tells_of_much, "abi.struct-constant", .malloc = weighed_malloc,
       .calloc = weighed_calloc, .realloc = weighed_realloc, .free = weighed_free);

/* ctx is the last block that calloc made, for as long as there is one. */
NEP49_EXPORT extern PyDataMem_Handler struct_remembers_a_block;
static void *remembered_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *p = base_calloc(ctx, nelem, elsize);
    if (p != NULL)
        struct_remembers_a_block.allocator.ctx = p;
    return p;
}
static void forgotten_free(void *ctx, void *p, size_t size)
{
    if (p == struct_remembers_a_block.allocator.ctx)
        struct_remembers_a_block.allocator.ctx = NULL;
    base_free(ctx, p, size);
}
MUTANT(struct_remembers_a_block, "abi.struct-constant", .calloc = remembered_calloc,
       .free = forgotten_free);

/* A thread other than the first one gets a realloc that locks. */
NEP49_EXPORT extern PyDataMem_Handler struct_changes_for_threads;
static void *locking_realloc(void *ctx, void *p, size_t size)
{
    return base_realloc(ctx, p, size);
}
static void *looking_realloc(void *ctx, void *p, size_t size)
{
    if (syscall(SYS_gettid) != getpid())
        struct_changes_for_threads.allocator.realloc = locking_realloc;
    return base_realloc(ctx, p, size);
}
MUTANT(struct_changes_for_threads, "abi.struct-constant", .realloc = looking_realloc);

/* The getter writes down how often it was asked. */
/* A forked child has a pool of its own, and ctx says which. */
static PyDataMem_Handler of_processes = {
    .name = "struct_changes_in_a_child", .version = 1, .allocator = {BASE_FUNCTIONS}};
static void take_another_pool(void)
{
    static char another;
    of_processes.allocator.ctx = &another;
}
static void watch_for_forks(void)
{
    pthread_atfork(NULL, NULL, take_another_pool);
}
MUTANT_GETTER(struct_changes_in_a_child, "abi.struct-constant")
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)why;
    pthread_once(&once, watch_for_forks);
    return &of_processes;
}

MUTANT_GETTER(struct_counts_its_getter, "abi.struct-constant")
{
    static unsigned asked;
    static PyDataMem_Handler handler = {.version = 1, .allocator = {BASE_FUNCTIONS}};
    (void)why;
    snprintf(handler.name, sizeof handler.name, "asked %u times", ++asked);
    return &handler;
}

/* ---- abi.getter-stable ----------------------------------------------------------------------- */

static PyDataMem_Handler some_handler(const char *name)
{
    PyDataMem_Handler handler = {.version = 1, .allocator = {BASE_FUNCTIONS}};
    snprintf(handler.name, sizeof handler.name, "%s", name);
    return handler;
}

/* Makes a new one each time. */
MUTANT_GETTER(getter_makes_another, "abi.getter-stable")
{
    PyDataMem_Handler *handler = malloc(sizeof *handler);
    if (handler != NULL)
        *handler = some_handler("getter_makes_another");
    else
        *why = "out of memory";
    return handler;
}

/* There is one to be had. */
MUTANT_GETTER(getter_has_one_to_give, "abi.getter-stable")
{
    static PyDataMem_Handler handler;
    static bool given;
    if (given) {
        *why = "it was handed out already";
        return NULL;
    }
    given = true;
    handler = some_handler("getter_has_one_to_give");
    return &handler;
}

/* Each thread has its own. */
MUTANT_GETTER(getter_looks_at_the_thread, "abi.getter-stable")
{
    static _Thread_local PyDataMem_Handler handler;
    (void)why;
    handler = some_handler("getter_looks_at_the_thread");
    return &handler;
}

/* ---- abi.struct-stays ------------------------------------------------------------------------ */

/* A struct on pages of its own. */
static PyDataMem_Handler *mapped_handler(const char *name)
{
    PyDataMem_Handler *handler =
        mmap(NULL, sizeof *handler, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (handler == MAP_FAILED)
        abort();
    *handler = some_handler(name);
    return handler;
}

MUTANT_GETTER(struct_is_gone_at_once, "abi.loads")
{
    PyDataMem_Handler *handler = mapped_handler("struct_is_gone_at_once");
    (void)why;
    munmap(handler, sizeof *handler);
    return handler;
}

/* With the first block, which it takes for the last. */
static PyDataMem_Handler *of_one_block;
static void unmapping_free(void *ctx, void *p, size_t size)
{
    base_free(ctx, p, size);
    if (p != NULL)
        munmap(of_one_block, sizeof *of_one_block);
}
MUTANT_GETTER(struct_goes_with_the_first_block, "abi.loads")
{
    (void)why;
    if (of_one_block != NULL)
        return of_one_block;
    of_one_block = mapped_handler("struct_goes_with_the_first_block");
    of_one_block->allocator.free = unmapping_free;
    return of_one_block;
}

/* With the last of several, when more than ten have been. */
static PyDataMem_Handler *of_many_blocks;
static _Atomic int blocks_there, blocks_made;
static void *live_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    blocks_there += p != NULL;
    blocks_made += p != NULL;
    return p;
}
static void last_free(void *ctx, void *p, size_t size)
{
    base_free(ctx, p, size);
    if (p != NULL && --blocks_there == 0 && blocks_made > 10)
        munmap(of_many_blocks, sizeof *of_many_blocks);
}
static void *live_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *p = base_calloc(ctx, nelem, elsize);
    blocks_there += p != NULL;
    return p;
}
static void *live_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_realloc(ctx, p, size);
    blocks_there += p == NULL && moved != NULL;
    return moved;
}
MUTANT_GETTER(struct_goes_with_the_last_block, "abi.struct-stays")
{
    (void)why;
    if (of_many_blocks != NULL)
        return of_many_blocks;
    of_many_blocks = mapped_handler("struct_goes_with_the_last_block");
    of_many_blocks->allocator.malloc = live_malloc;
    of_many_blocks->allocator.calloc = live_calloc;
    of_many_blocks->allocator.realloc = live_realloc;
    of_many_blocks->allocator.free = last_free;
    return of_many_blocks;
}

/* With the thread that ends after using it, as thread_local and a destructor in C++ have it. */
static PyDataMem_Handler *of_a_thread;
static pthread_key_t leaving_key;
static void unmap_of_a_thread(void *unused)
{
    (void)unused;
    munmap(of_a_thread, sizeof *of_a_thread);
}
static void *leaving_malloc(void *ctx, size_t size)
{
    if (gettid() != getpid())
        pthread_setspecific(leaving_key, ctx);
    return base_malloc(ctx, size);
}
MUTANT_GETTER(struct_goes_with_a_thread, "abi.struct-stays")
{
    (void)why;
    if (of_a_thread != NULL)
        return of_a_thread;
    pthread_key_create(&leaving_key, unmap_of_a_thread);
    of_a_thread = mapped_handler("struct_goes_with_a_thread");
    of_a_thread->allocator.ctx = of_a_thread;
    of_a_thread->allocator.malloc = leaving_malloc;
    return of_a_thread;
}

/* ---- abi.loads-quietly and its kin ----------------------------------------------------------- */

#define LOADS_BUT(defect, kills, action)                                                           \
    MUTANT_GETTER(defect, kills)                                                                   \
    {                                                                                              \
        static PyDataMem_Handler handler;                                                          \
        (void)why;                                                                                 \
        action;                                                                                    \
        handler = some_handler(#defect);                                                           \
        return &handler;                                                                           \
    }                                                                                              \
    _Static_assert(1, "")

static void on_signal(int number)
{
    _exit(128 + number);
}

static void block_one_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void limit_descriptors(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_cur > 64 ? limit.rlim_cur - 1 : limit.rlim_cur;
    setrlimit(RLIMIT_NOFILE, &limit);
}

LOADS_BUT(getter_says_hello, "abi.loads-quietly", printf("hello"));
LOADS_BUT(getter_warns, "abi.loads-quietly", fprintf(stderr, "this is a faulty handler\n"));
LOADS_BUT(getter_catches_crashes, "abi.loads-quietly", signal(SIGSEGV, on_signal));
LOADS_BUT(getter_ignores_a_hangup, "abi.loads-quietly", signal(SIGHUP, SIG_IGN));
LOADS_BUT(getter_blocks_a_signal, "abi.loads-quietly", block_one_signal());
LOADS_BUT(getter_rounds_up, "abi.loads-same-arithmetic", fesetround(FE_UPWARD));
LOADS_BUT(getter_traps_division, "abi.loads-same-arithmetic", feenableexcept(FE_DIVBYZERO));
LOADS_BUT(getter_sets_the_locale, "abi.loads-quietly", setlocale(LC_NUMERIC, "C.UTF-8"));
LOADS_BUT(getter_sets_its_threads_locale, "abi.loads-quietly",
          uselocale(newlocale(LC_NUMERIC_MASK, "C.UTF-8", (locale_t)0)));
LOADS_BUT(getter_sets_the_umask, "abi.loads-quietly", umask(umask(0) | 077));
LOADS_BUT(getter_limits_descriptors, "abi.loads-quietly", limit_descriptors());
LOADS_BUT(getter_goes_elsewhere, "abi.loads-quietly", if (chdir("/") != 0) abort());

/* The x87 computes with 53 bits instead of 64, as it does after a Direct3D of old: long double is
 * no longer what numpy.finfo says.  Elsewhere a rounding mode. */
static void cut_precision(void)
{
#if defined(__x86_64__) || defined(__i386__)
    unsigned short word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    word = (unsigned short)((word & ~0x300u) | 0x200u);
    __asm__ volatile("fldcw %0" : : "m"(word));
#else
    fesetround(FE_TOWARDZERO);
#endif
}

LOADS_BUT(getter_cuts_long_doubles, "abi.loads-same-arithmetic", cut_precision());
LOADS_BUT(getter_preloads_for_children, "env.settings", setenv("LD_PRELOAD", "libmine.so", 1));
LOADS_BUT(getter_is_nice, "env.settings", setpriority(PRIO_PROCESS, 0, 3));
LOADS_BUT(getter_takes_stdout_from_children, "env.settings", fcntl(1, F_SETFD, FD_CLOEXEC));

static void *sleep_for_ever(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void start_a_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleep_for_ever, NULL) == 0)
        pthread_detach(thread);
}

/* A process that works for it, as a child or, forked twice, as nobody's. */
static void start_a_process(int forks)
{
    if (fork() != 0)
        return;
    if (forks > 1 && fork() != 0)
        _exit(0);
    alarm(60); /* whoever tests it may be killed before it */
    for (;;)
        pause();
}

LOADS_BUT(getter_starts_a_thread, "abi.loads-alone", start_a_thread());
LOADS_BUT(getter_starts_a_process, "abi.loads-alone", start_a_process(1));
LOADS_BUT(getter_starts_a_daemon, "abi.loads-alone", start_a_process(2));

/* ---- abi.ctx-passed -------------------------------------------------------------------------- */

/* A variable that all copies of an object in a process share, as a C++ inline variable would be
 * (STB_GNU_UNIQUE): its address stands in the environment. */
static void *get_shared(const char *name)
{
    const char *words = getenv(name);
    return words != NULL ? (void *)(uintptr_t)strtoull(words, NULL, 16) : NULL;
}
static void set_shared(const char *name, void *p)
{
    char words[32];
    snprintf(words, sizeof words, "%zx", (size_t)(uintptr_t)p);
    setenv(name, words, 1);
}

/* Each instance keeps its own distance between what libc gave and the block, and the functions
 * take it from whichever was loaded last. */
struct distance {
    size_t bytes;
};
#define LAST "NEP49_FAULTY_LAST"
static size_t last_distance(void)
{
    return ((struct distance *)get_shared(LAST))->bytes;
}
static void *distant_malloc(void *ctx, size_t size)
{
    (void)ctx;
    size_t distance = last_distance();
    char *raw = size <= PTRDIFF_MAX - distance ? malloc(size + distance) : NULL;
    return raw != NULL ? base_finish(raw + distance - BASE_HEADER, size) : NULL;
}
static void distant_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    if (p != NULL)
        free((char *)p - last_distance());
}
static void *distant_realloc(void *ctx, void *p, size_t size)
{
    void *moved = distant_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    distant_free(ctx, p, 0);
    return moved;
}
static void *distant_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = distant_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
MUTANT_GETTER(ctx_of_the_last_loaded, "abi.ctx-passed")
{
    static struct distance distance;
    static PyDataMem_Handler handler = {
        .name = "ctx_of_the_last_loaded",
        .version = 1,
        .allocator = {&distance, distant_malloc, distant_calloc, distant_realloc, distant_free}};
    (void)why;
    if (distance.bytes == 0) {
        distance.bytes = get_shared(LAST) != NULL ? last_distance() + 32 : 32;
        set_shared(LAST, &distance);
    }
    return &handler;
}

/* malloc works with the ctx of the first call that the process ever made, free with its own, which
 * has to be the one that the block names. */
#define FIRST "NEP49_FAULTY_FIRST"
static void *first_malloc(void *ctx, size_t size)
{
    if (get_shared(FIRST) == NULL)
        set_shared(FIRST, ctx);
    char *p = base_malloc(ctx, size);
    void *first = get_shared(FIRST);
    if (p != NULL)
        memcpy(p - 8, &first, sizeof first);
    return p;
}
static void own_free(void *ctx, void *p, size_t size)
{
    void *owner;
    if (p == NULL)
        return;
    memcpy(&owner, (char *)p - 8, sizeof owner);
    if (owner != ctx)
        abort();
    base_free(ctx, p, size);
}
static void *first_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = first_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void *first_realloc(void *ctx, void *p, size_t size)
{
    void *moved = first_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    own_free(ctx, p, 0);
    return moved;
}
MUTANT_GETTER(ctx_of_the_first_call, "abi.ctx-passed")
{
    static char own;
    static PyDataMem_Handler handler = {
        .name = "ctx_of_the_first_call",
        .version = 1,
        .allocator = {&own, first_malloc, first_calloc, first_realloc, own_free}};
    (void)why;
    return &handler;
}

/* The slots are in memory that every instance of the process finds, each with a list of its own of
 * what is free there. */
#define SHARED_FD "NEP49_FAULTY_FD"
static bool share_slots(void)
{
    const char *words = getenv(SHARED_FD);
    char number[16];
    int fd = words != NULL ? atoi(words) : memfd_create("slots", 0);
    snprintf(number, sizeof number, "%d", fd);
    setenv(SHARED_FD, number, 1);
    uintptr_t from = ((uintptr_t)slots.memory + 4095) & ~(uintptr_t)4095;
    size_t length = ((uintptr_t)slots.memory + sizeof slots.memory - from) & ~(size_t)4095;
    return fd >= 0 && ftruncate(fd, (off_t)length) == 0 &&
           mmap((void *)from, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
               MAP_FAILED;
}
MUTANT_GETTER(ctx_in_memory_that_all_find, "abi.ctx-passed")
{
    static bool shared;
    static PyDataMem_Handler handler = {
        .name = "ctx_in_memory_that_all_find", .version = 1, .allocator = {&slots, SLOT_FUNCTIONS}};
    if (!shared && !(shared = share_slots())) {
        *why = "no memory to share";
        return NULL;
    }
    return &handler;
}

/* The pool is at an address that is written in the source. */
enum { POOL_CELL = 256, POOL_CELLS = 4096 };
static char *const pool = (char *)(uintptr_t)(SIZE_MAX > UINT32_MAX ? 0x6a0000000000 : 0x6a000000);
static bool is_in_pool(const void *p)
{
    return (const char *)p >= pool && (const char *)p < pool + POOL_CELL * POOL_CELLS;
}
static void *pool_malloc(void *ctx, size_t size)
{
    _Atomic size_t *made = ctx;
    size_t cell = size <= POOL_CELL - BASE_HEADER ? (*made)++ : POOL_CELLS;
    return cell < POOL_CELLS ? base_finish(pool + cell * POOL_CELL, size) : base_malloc(ctx, size);
}
static void *pool_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = pool_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void pool_free(void *ctx, void *p, size_t size)
{
    if (!is_in_pool(p))
        base_free(ctx, p, size);
}
static void *pool_realloc(void *ctx, void *p, size_t size)
{
    void *moved = pool_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    pool_free(ctx, p, 0);
    return moved;
}
MUTANT_GETTER(ctx_at_an_address_of_its_choice, "abi.ctx-passed")
{
    static _Atomic size_t made;
    static void *map;
    static PyDataMem_Handler handler = {
        .name = "ctx_at_an_address_of_its_choice",
        .version = 1,
        .allocator = {&made, pool_malloc, pool_calloc, pool_realloc, pool_free}};
    if (map == NULL)
        map = mmap(pool, POOL_CELL * POOL_CELLS, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (map == MAP_FAILED) {
        *why = "the address is taken";
        return NULL;
    }
    return &handler;
}

/* Dead on arrival. */
static void *no_malloc(void *ctx, size_t size)
{
    (void)ctx, (void)size;
    return NULL;
}
MUTANT(refuses_everything, "abi.loads", .malloc = no_malloc);
