/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/abi.c find.  Those that make claims or act while they
 * are loaded are objects of their own.
 */
#define _GNU_SOURCE

#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mapped.h"
#include "slots.h"

/* ---- the struct's members -------------------------------------------------------------------- */

/* The base with other members than its functions. */
#define STRUCT(defect, kills, ...)                                                                 \
    KILLS(defect, kills);                                                                          \
    NEP49_EXPORT PyDataMem_Handler defect = {                                                      \
        .name = #defect, .version = 1, .allocator = {FUNCTIONS(base)}, __VA_ARGS__}

STRUCT(name_is_latin_1, "abi.name-utf8", .name = "caf\xe9 au lait");
STRUCT(name_is_cut_within_a_letter, "abi.name-utf8", .name = "grande \xc3");
STRUCT(name_is_a_surrogate, "abi.name-utf8", .name = "half of \xed\xa0\xbd");
STRUCT(name_is_overlong, "abi.name-utf8", .name = "an\xc0\xaf");

STRUCT(name_is_empty, "abi.name-says-something", .name = "");
STRUCT(name_is_blank, "abi.name-says-something", .name = "   ");
STRUCT(name_has_a_line_end, "abi.name-says-something", .name = "mine\n");
STRUCT(name_clears_the_screen, "abi.name-says-something", .name = "\x1b[2J mine");
STRUCT(name_cannot_be_seen, "abi.name-says-something", .name = "\xe2\x80\x8b");
STRUCT(name_is_numpys_own, "abi.name-says-something", .name = "default_allocator");

STRUCT(version_is_left_out, "abi.version", .version = 0);
STRUCT(version_is_2, "abi.version", .version = 2);

MUTANT(malloc_is_missing, "abi.functions-present", .malloc = NULL);
MUTANT(calloc_is_missing, "abi.functions-present", .calloc = NULL);
MUTANT(realloc_is_missing, "abi.functions-present", .realloc = NULL);
MUTANT(free_is_missing, "abi.functions-present", .free = NULL);

static PyDataMem_Handler make_handler(const char *name)
{
    PyDataMem_Handler handler = HANDLER(, base);
    snprintf(handler.name, sizeof handler.name, "%s", name);
    return handler;
}

MUTANT_GETTER(name_is_not_terminated, "abi.name-terminated")
{
    static PyDataMem_Handler handler;
    handler = make_handler("");
    memset(handler.name, 'x', sizeof handler.name);
    return &handler;
}

#define CHANGES(defect) NEP49_EXPORT extern PyDataMem_Handler defect

CHANGES(struct_patches_itself);
BEFORE(malloc, struct_patches_itself, "abi.struct-constant", true,
       struct_patches_itself.allocator.malloc = base_malloc);

CHANGES(struct_tells_its_state);
AFTER(malloc, struct_tells_its_state, "abi.struct-constant", made == NULL,
      strcpy(struct_tells_its_state.name, "out of memory"));

/* The version changes with the 1000th live block. */
CHANGES(struct_counts_its_tables);
static _Atomic int live_blocks;
HOOK_BEFORE(malloc, counting, ++live_blocks == 1000, struct_counts_its_tables.version++);
HOOK_BEFORE(free, counting, true, live_blocks--);
MUTANT(struct_counts_its_tables, "abi.struct-constant", FUNCTIONS(counting, malloc, free));

/* The version changes with half a gibibyte of live blocks. */
CHANGES(struct_tells_of_much);
static _Atomic size_t live_bytes;
HOOK_AFTER(malloc, weighing, made != NULL && atomic_fetch_add(&live_bytes, size) + size > 512 * MIB,
           struct_tells_of_much.version = 2);
HOOK_BEFORE(free, weighing, true, live_bytes -= p != NULL ? base_size(p) : 0);
MUTANT_DERIVED(struct_tells_of_much, "abi.struct-constant", weighing);

/* ctx is the last block that calloc made, until it is freed. */
CHANGES(struct_remembers_a_block);
HOOK_AFTER(calloc, remembering, made != NULL, struct_remembers_a_block.allocator.ctx = made);
HOOK_BEFORE(free, remembering, p == struct_remembers_a_block.allocator.ctx,
            struct_remembers_a_block.allocator.ctx = NULL);
MUTANT(struct_remembers_a_block, "abi.struct-constant", FUNCTIONS(remembering, calloc, free));

/* A thread other than the first one changes realloc. */
CHANGES(struct_changes_for_threads);
FUNCTION_RETURNS(realloc, other, base_realloc(ctx, p, size));
BEFORE(realloc, struct_changes_for_threads, "abi.struct-constant", gettid() != getpid(),
       struct_changes_for_threads.allocator.realloc = other_realloc);

/* A forked child changes ctx. */
static PyDataMem_Handler of_processes = HANDLER(struct_changes_in_a_child, base);
static void change_ctx(void)
{
    of_processes.allocator.ctx = &of_processes;
}
MUTANT_GETTER(struct_changes_in_a_child, "abi.struct-constant")
{
    if (CALL(1))
        pthread_atfork(NULL, NULL, change_ctx);
    return &of_processes;
}

MUTANT_GETTER(struct_counts_its_getter, "abi.struct-constant")
{
    static unsigned calls;
    static PyDataMem_Handler handler = HANDLER(struct_counts_its_getter, base);
    snprintf(handler.name, sizeof handler.name, "asked %u times", ++calls);
    return &handler;
}

MUTANT_GETTER(getter_makes_another, "abi.getter-stable")
{
    PyDataMem_Handler *handler = malloc(sizeof *handler);
    if (handler != NULL)
        *handler = make_handler("getter_makes_another");
    return handler;
}

MUTANT_GETTER(getter_has_one_to_give, "abi.getter-stable")
{
    static PyDataMem_Handler handler;
    bool is_first = handler.version == 0;
    handler = make_handler("getter_has_one_to_give");
    *why = "it was handed out already";
    return is_first ? &handler : NULL;
}

MUTANT_GETTER(getter_looks_at_the_thread, "abi.getter-stable")
{
    static _Thread_local PyDataMem_Handler handler;
    handler = make_handler("getter_looks_at_the_thread");
    return &handler;
}

/* Makes a struct on a page of its own, once. */
static PyDataMem_Handler *map_handler(PyDataMem_Handler **once, const char *name)
{
    if (*once == NULL) {
        *once = (void *)map_pages(sizeof **once);
        if (*once == MAP_FAILED)
            abort();
        **once = make_handler(name);
    }
    return *once;
}

MUTANT_GETTER(struct_is_gone_at_once, "abi.loads")
{
    PyDataMem_Handler *handler = NULL;
    munmap(map_handler(&handler, "struct_is_gone_at_once"), sizeof *handler);
    return handler;
}

/* A mutant whose struct is on a page of its own and has the functions of a pool. */
#define MAPPED_STRUCT(defect, kills, page, pool)                                                   \
    MUTANT_GETTER(defect, kills)                                                                   \
    {                                                                                              \
        bool is_new = (page) == NULL;                                                              \
        map_handler(&(page), #defect);                                                             \
        if (is_new)                                                                                \
            (page)->allocator = (PyDataMemAllocator){FUNCTIONS(pool)};                             \
        return page;                                                                               \
    }                                                                                              \
    _Static_assert(true, "")

static PyDataMem_Handler *of_one_block;
#define unmapping_malloc base_malloc
HOOK_AFTER(free, unmapping, p != NULL, munmap(of_one_block, sizeof *of_one_block));
DERIVE(unmapping);
MAPPED_STRUCT(struct_goes_with_the_first_block, "abi.loads", of_one_block, unmapping);

/* Unmaps the struct with the last live block, if there were more than ten before. */
static PyDataMem_Handler *of_many_blocks;
static _Atomic int blocks_there, blocks_made;
HOOK_AFTER(malloc, last, made != NULL, blocks_there++; blocks_made++);
HOOK_AFTER(free, last, p != NULL && --blocks_there == 0 && blocks_made > 10,
           munmap(of_many_blocks, sizeof *of_many_blocks));
DERIVE(last);
MAPPED_STRUCT(struct_goes_with_the_last_block, "abi.struct-stays", of_many_blocks, last);

/* Unmaps the struct at the end of a thread that used it, as a thread_local object of C++ does. */
static PyDataMem_Handler *of_a_thread;
static pthread_key_t leaving_key;
static void unmap_of_a_thread(UNUSED void *unused)
{
    munmap(of_a_thread, sizeof *of_a_thread);
}
__attribute__((constructor)) static void make_leaving_key(void)
{
    pthread_key_create(&leaving_key, unmap_of_a_thread);
}
HOOK_BEFORE(malloc, leaving, gettid() != getpid(), pthread_setspecific(leaving_key, &leaving_key));
#define leaving_free base_free
DERIVE(leaving);
MAPPED_STRUCT(struct_goes_with_a_thread, "abi.struct-stays", of_a_thread, leaving);

/* ---- what loading changes -------------------------------------------------------------------- */

#define LOADS_BUT(defect, kills, action)                                                           \
    MUTANT_GETTER(defect, kills)                                                                   \
    {                                                                                              \
        static PyDataMem_Handler handler;                                                          \
        action;                                                                                    \
        handler = make_handler(#defect);                                                           \
        return &handler;                                                                           \
    }                                                                                              \
    _Static_assert(true, "")

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
LOADS_BUT(getter_sets_the_locale, "abi.loads-quietly", setlocale(LC_NUMERIC, "C.UTF-8"));
LOADS_BUT(getter_sets_its_threads_locale, "abi.loads-quietly",
          uselocale(newlocale(LC_NUMERIC_MASK, "C.UTF-8", (locale_t)0)));
LOADS_BUT(getter_sets_the_umask, "abi.loads-quietly", umask(umask(0) | 077));
LOADS_BUT(getter_limits_descriptors, "abi.loads-quietly", limit_descriptors());
LOADS_BUT(getter_goes_elsewhere, "abi.loads-quietly", if (chdir("/") != 0) abort());
LOADS_BUT(getter_preloads_for_children, "env.settings", setenv("LD_PRELOAD", "libmine.so", 1));
LOADS_BUT(getter_is_nice, "env.settings", setpriority(PRIO_PROCESS, 0, 3));
LOADS_BUT(getter_takes_stdout_from_children, "env.settings", fcntl(1, F_SETFD, FD_CLOEXEC));

/* The x87 computes with 53 bits instead of 64, so that long double is not what numpy.finfo says.
 * On other processors it sets a rounding mode. */
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
LOADS_BUT(getter_rounds_up, "abi.loads-same-arithmetic", fesetround(FE_UPWARD));
LOADS_BUT(getter_traps_division, "abi.loads-same-arithmetic", feenableexcept(FE_DIVBYZERO));
LOADS_BUT(getter_cuts_long_doubles, "abi.loads-same-arithmetic", cut_precision());

static void *sleep_for_ever(void *unused)
{
    for (;;)
        pause();
    return unused;
}
static void start_a_thread(void)
{
    pthread_create(&(pthread_t){0}, NULL, sleep_for_ever, NULL);
}
/* Starts a child process or, with two forks, a daemon. */
static void start_a_process(int forks)
{
    if (fork() != 0)
        return;
    if (forks > 1 && fork() != 0)
        _exit(0);
    alarm(60); /* ends if the test does not end it */
    sleep_for_ever(NULL);
}
LOADS_BUT(getter_starts_a_thread, "abi.loads-alone", start_a_thread());
LOADS_BUT(getter_starts_a_process, "abi.loads-alone", start_a_process(1));
LOADS_BUT(getter_starts_a_daemon, "abi.loads-alone", start_a_process(2));

/* A variable that all copies of an object in a process share, as STB_GNU_UNIQUE variables of C++
 * are: its address is in the environment. */
static void *get_shared(const char *name)
{
    const char *text = getenv(name);
    return text != NULL ? (void *)(uintptr_t)strtoull(text, NULL, 16) : NULL;
}
static void set_shared(const char *name, void *p)
{
    char text[32];
    snprintf(text, sizeof text, "%zx", (size_t)(uintptr_t)p);
    setenv(name, text, 1);
}

/* Each instance has its own distance from libc's address to the block, but the functions use the
 * distance of the instance that was loaded last. */
#define LAST "NEP49_FAULTY_LAST"
static size_t last_distance(void)
{
    return *(size_t *)get_shared(LAST);
}
FUNCTION(malloc, distant)
{
    size_t distance = last_distance();
    char *raw = size <= PTRDIFF_MAX - distance ? malloc(size + distance) : NULL;
    return raw != NULL ? base_finish(raw + distance - BASE_HEADER, size) : NULL;
}
FUNCTION(free, distant)
{
    if (p != NULL)
        free((char *)p - last_distance());
}
DERIVE(distant);
MUTANT_GETTER(ctx_of_the_last_loaded, "abi.ctx-passed")
{
    static size_t distance;
    static PyDataMem_Handler handler = HANDLER(ctx_of_the_last_loaded, distant, .ctx = &distance);
    if (distance == 0) {
        distance = get_shared(LAST) != NULL ? last_distance() + 32 : 32;
        set_shared(LAST, &distance);
    }
    return &handler;
}

/* malloc notes the ctx of the first call in the process, and free aborts if that is not its own. */
#define FIRST "NEP49_FAULTY_FIRST"
FUNCTION(malloc, first)
{
    if (get_shared(FIRST) == NULL)
        set_shared(FIRST, ctx);
    return base_set_note(base_malloc(ctx, size), (size_t)get_shared(FIRST));
}
HOOK_BEFORE(free, first, p != NULL && base_note(p) != (size_t)ctx, abort());
DERIVE(first);
MUTANT(ctx_of_the_first_call, "abi.ctx-passed", .ctx = &(char){0}, FUNCTIONS(first));

/* All instances in the process share the memory of the slots, except the first ones, but not the
 * list of free ones. */
#define SHARED_FD "NEP49_FAULTY_FD"
static bool share_slots(void)
{
    if (get_shared(SHARED_FD) == NULL)
        set_shared(SHARED_FD, (void *)(intptr_t)memfd_create("slots", 0));
    int fd = (int)(intptr_t)get_shared(SHARED_FD);
    uintptr_t from = ((uintptr_t)slots.memory[31] + 4095) & ~(uintptr_t)4095;
    size_t length = ((uintptr_t)slots.memory + sizeof slots.memory - from) & ~(size_t)4095;
    return ftruncate(fd, (off_t)length) == 0 && mmap((void *)from, length, PROT_READ | PROT_WRITE,
                                                     MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
}
MUTANT_GETTER(ctx_in_memory_that_all_find, "abi.ctx-passed")
{
    static bool shared;
    static PyDataMem_Handler handler = HANDLER(ctx_in_memory_that_all_find, slot, .ctx = &slots);
    shared = shared || share_slots();
    *why = "no memory to share";
    return shared ? &handler : NULL;
}

/* The pool of each instance is at the same constant address. */
enum { POOL_CELL = 256, POOL_CELLS = 4096 };
static char *const pool = (char *)(uintptr_t)(SIZE_MAX > UINT32_MAX ? 0x6a0000000000 : 0x6a000000);
FUNCTION(malloc, pool)
{
    _Atomic size_t *count = ctx;
    size_t cell = size <= POOL_CELL - BASE_HEADER ? (*count)++ : POOL_CELLS;
    return cell < POOL_CELLS ? base_finish(pool + cell * POOL_CELL, size) : base_malloc(ctx, size);
}
FUNCTION_FREES(pool, (char *)p < pool || (char *)p >= pool + POOL_CELL * POOL_CELLS);
DERIVE(pool);
MUTANT_GETTER(ctx_at_an_address_of_its_choice, "abi.ctx-passed")
{
    static _Atomic size_t count;
    static void *map;
    static PyDataMem_Handler handler =
        HANDLER(ctx_at_an_address_of_its_choice, pool, .ctx = &count);
    if (map == NULL)
        map = mmap(pool, POOL_CELL * POOL_CELLS, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    *why = "the address is taken";
    return map != MAP_FAILED ? &handler : NULL;
}

RETURNS(malloc, refuses_everything, "abi.loads", NULL);
