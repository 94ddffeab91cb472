/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions that this program exports and that therefore replace libc's in every shared object.
 */
#undef _FILE_OFFSET_BITS /* both kinds of functions are defined here, each by its own name */
#include "harness/interpose.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/sanitizer_detect.h"
#include "base/text.h"
#include "harness/data_races.h"
#include "model/record.h"

_Thread_local int interpose_depth;
_Thread_local uint8_t *interpose_trouble;

/* A block or mapping that was taken since interpose_watch. */
struct taken {
    uintptr_t address;
    size_t size;
    bool mapped;
};
enum { SLOTS = 1 << 18, UNUSED_SLOT = 0 };

/* Under one lock.  The table uses open addressing in memory that is mapped for it, because malloc
 * is what is watched. */
static struct {
    pthread_mutex_t lock;
    atomic_bool watching, no_advice, no_protection;
    size_t nth;
    bool keep_failing;
    struct interpose_counts counts;
    struct taken *table;
    size_t used, mappings; /* slots */
} live = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Objects whose own requests are never refused, because a refusal ends the process and no handler
 * can prevent it: the dynamic linker (thread-local variables at their first use) and CUDA's driver,
 * which writes to what its malloc returned (580.159, cuMemHostRegister). */
enum { LINKER, CUDA_DRIVER, SPARED };
static struct {
    uintptr_t begin, end;
} spared[SPARED];

static bool is_spared(const void *caller)
{
    for (size_t i = 0; i < SPARED; i++)
        if ((uintptr_t)caller >= spared[i].begin && (uintptr_t)caller < spared[i].end)
            return true;
    return false;
}

static int find_spared(struct dl_phdr_info *object, size_t size, void *unused)
{
    const char *slash = strrchr(object->dlpi_name, '/');
    unsigned long linker = getauxval(AT_BASE);
    int which = LINKER;
    (void)size, (void)unused;
    if (linker == 0 || object->dlpi_addr != linker) {
        if (!begins_with(slash != NULL ? slash + 1 : object->dlpi_name, "libcuda.so"))
            return 0;
        which = CUDA_DRIVER;
    }
    spared[which].begin = object->dlpi_addr;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t end = object->dlpi_addr + part->p_vaddr + part->p_memsz;
        if (part->p_type == PT_LOAD)
            spared[which].end = MAX(spared[which].end, end);
    }
    return 0;
}

struct interpose_counts interpose_counts(void)
{
    pthread_mutex_lock(&live.lock);
    struct interpose_counts counts = live.counts;
    pthread_mutex_unlock(&live.lock);
    return counts;
}

void interpose_refuse(size_t nth, bool keep_failing)
{
    if (nth != 0 && spared[CUDA_DRIVER].end == 0) /* it may be loaded with the first block */
        dl_iterate_phdr(find_spared, NULL);
    pthread_mutex_lock(&live.lock);
    live.nth = nth;
    live.keep_failing = keep_failing;
    live.counts.requests = 0;
    live.counts.refused = 0;
    pthread_mutex_unlock(&live.lock);
}

void interpose_refuse_watched(size_t nth, enum refusal how)
{
    live.watching = nth != 0 || live.table != NULL;
    interpose_refuse_advice(nth != 0 && how == REFUSE_ADVICE);
    interpose_refuse(how != REFUSE_ADVICE ? nth : 0, how == REFUSE_ALL_AFTER);
}

static interpose_owner *owns;

void interpose_set_owner(interpose_owner *asked)
{
    owns = asked;
}

void interpose_refuse_advice(bool refuse)
{
    live.no_advice = refuse;
}

void interpose_refuse_protection(bool refuse)
{
    live.no_protection = refuse;
}

static void *kernel_map(void *address, size_t length, int protection, int flags, int fd,
                        off64_t offset)
{
#ifdef SYS_mmap2 /* takes units of 4096 bytes; SYS_mmap there takes a table of arguments */
    return (void *)syscall(SYS_mmap2, address, length, protection, flags, fd, (long)(offset >> 12));
#else
    return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
#endif
}

void interpose_watch(void)
{
    if (live.table == NULL) {
        void *table = kernel_map(NULL, SLOTS * sizeof *live.table, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        live.table = table != MAP_FAILED ? table : NULL;
        live.counts.left_out = live.table == NULL;
    }
    dl_iterate_phdr(find_spared, NULL);
    interpose_refuse(0, false);
    live.watching = true;
}

#if defined(__GLIBC__) && !CONFORM_SANITIZED

/* ---- the table, under the lock ---------------------------------------------------------- */

static size_t first_slot(uintptr_t address)
{
    return (address >> 4) * 0x9e3779b97f4a7c15u >> 46;
}

static struct taken *find_taken(const void *p)
{
    if (live.table == NULL)
        return NULL;
    for (size_t at = first_slot((uintptr_t)p);; at++) {
        struct taken *slot = &live.table[at % SLOTS];
        if (slot->address == (uintptr_t)p || slot->address == UNUSED_SLOT)
            return slot->address != UNUSED_SLOT ? slot : NULL;
    }
}

static void enter_taken(void *p, size_t size, bool mapped)
{
    if (live.table == NULL)
        return;
    if (live.used > SLOTS / 2) {
        live.counts.left_out++;
        return;
    }
    size_t at = first_slot((uintptr_t)p);
    while (live.table[at % SLOTS].address != UNUSED_SLOT)
        at++;
    live.used++;
    live.mappings += mapped;
    live.table[at % SLOTS] = (struct taken){(uintptr_t)p, size, mapped};
    live.counts.blocks += !mapped;
    live.counts.bytes += size;
}

/* Moves later entries up to where they are found, so that no gap is left. */
static void untrack(struct taken *slot)
{
    live.counts.blocks -= !slot->mapped;
    live.counts.bytes -= slot->size;
    live.used--;
    live.mappings -= slot->mapped;
    size_t gap = (size_t)(slot - live.table);
    for (size_t at = gap + 1; live.table[at % SLOTS].address != UNUSED_SLOT; at++) {
        size_t way = (at - first_slot(live.table[at % SLOTS].address)) % SLOTS;
        if (way < (at - gap) % SLOTS)
            continue;
        live.table[gap % SLOTS] = live.table[at % SLOTS];
        gap = at;
    }
    live.table[gap % SLOTS] = (struct taken){.address = UNUSED_SLOT};
}

/* Under the lock. */
static void untrack_block(void *p)
{
    struct taken *slot = find_taken(p);
    if (slot != NULL)
        untrack(slot);
}

bool interpose_holds(const void *p)
{
    pthread_mutex_lock(&live.lock);
    bool held = find_taken(p) != NULL;
    pthread_mutex_unlock(&live.lock);
    return held;
}

/* Untracks a range of mappings; up to two pieces of each are left. */
static void untrack_range(void *address, size_t length)
{
    uintptr_t from = (uintptr_t)address, to = from + length;
    struct taken *whole = find_taken(address);
    if (whole != NULL && whole->mapped && whole->size == length) {
        untrack(whole);
        return;
    }
    for (size_t i = 0; live.mappings != 0 && i < SLOTS;) {
        struct taken *slot = &live.table[i];
        uintptr_t begin = slot->address, end = begin + slot->size;
        if (!slot->mapped || begin >= to || end <= from) {
            i++;
            continue;
        }
        untrack(slot); /* another entry may move up to here */
        if (begin < from)
            enter_taken((void *)begin, from - begin, true);
        if (to < end)
            enter_taken((void *)to, end - to, true);
    }
}

/* ---- before each request ---------------------------------------------------------------- */

/* Nesting of this thread in the next allocator, whose own requests to the kernel are not counted;
 * the lock may be held already. */
static _Thread_local int below;

static bool is_watched(void)
{
    return interpose_depth > 0 && live.watching && below == 0;
}

/* Takes the lock if the table has to be updated, on any thread: a handler may have one that frees.
 * The lock is held while an address is given back and reused, or another thread could be given it
 * in between. */
static bool lock_table(void)
{
    bool locked = live.watching && below == 0;
    if (locked)
        pthread_mutex_lock(&live.lock);
    return locked;
}

static void unlock_table(bool locked)
{
    if (locked)
        pthread_mutex_unlock(&live.lock);
}

/* In an exported function: where it was called. */
#define CALLER __builtin_return_address(0)

/* True if this request is to be refused; errno is then set. */
static bool refuses(const void *caller)
{
    if (!is_watched() || is_spared(caller))
        return false;
    pthread_mutex_lock(&live.lock);
    size_t request = ++live.counts.requests;
    bool refused =
        live.nth != 0 && (request == live.nth || (live.keep_failing && request > live.nth));
    live.counts.refused += refused;
    pthread_mutex_unlock(&live.lock);
    if (refused)
        errno = ENOMEM;
    if (refused && interpose_trouble != NULL)
        *interpose_trouble = REFUSED_BELOW;
    return refused;
}

static void *took(void *p, size_t size, bool mapped)
{
    if (p != NULL && p != MAP_FAILED && is_watched()) {
        pthread_mutex_lock(&live.lock);
        enter_taken(p, size, mapped);
        pthread_mutex_unlock(&live.lock);
    }
    return p;
}

#pragma GCC visibility push(default)

/* ---- malloc and its kin ----------------------------------------------------------------- */

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

/* The functions that would be called without this program's: those of a preloaded allocator, or
 * libc's. */
static struct {
    bool known;
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    void (*free)(void *);
    void *(*mmap)(void *, size_t, int, int, int, off_t);
    int (*munmap)(void *, size_t);
} next = {
    .malloc = __libc_malloc,
    .calloc = __libc_calloc,
    .realloc = __libc_realloc,
    .memalign = __libc_memalign,
    .free = __libc_free,
};

static const char *const family[] = {"malloc", "calloc", "realloc", "memalign", "free"};
enum { FAMILY = sizeof family / sizeof *family };

static const char *object_of(const void *address)
{
    Dl_info info;
    return address != NULL && dladdr(address, &info) != 0 ? info.dli_fname : "";
}

/* Takes all functions from one object, or libc's: one object cannot free another's blocks. */
static void know_next(void)
{
    void *found[FAMILY];
    if (next.known)
        return;
    next.known = true;                               /* first: dlsym may call malloc */
    *(void **)&next.mmap = dlsym(RTLD_NEXT, "mmap"); /* the sanitizer's, if any */
    *(void **)&next.munmap = dlsym(RTLD_NEXT, "munmap");
    for (size_t i = 0; i < FAMILY; i++) {
        found[i] = dlsym(RTLD_NEXT, family[i]);
        if (found[i] == NULL || strcmp(object_of(found[i]), object_of(found[0])) != 0)
            return;
    }
    *(void **)&next.malloc = found[0];
    *(void **)&next.calloc = found[1];
    *(void **)&next.realloc = found[2];
    *(void **)&next.memalign = found[3];
    *(void **)&next.free = found[4];
}

void *malloc(size_t size)
{
    know_next();
    if (refuses(CALLER))
        return NULL;
    below++;
    void *made = next.malloc(size);
    below--;
    return took(made, size, false);
}

void *calloc(size_t count, size_t size)
{
    know_next();
    if (refuses(CALLER))
        return NULL;
    below++;
    void *made = next.calloc(count, size);
    below--;
    return took(made, count * size, false);
}

/* Resizes a block of another allocator's by copying `kept` of its bytes. */
static void *copy(const void *p, size_t kept, size_t size)
{
    void *made = next.malloc(size);
    if (made != NULL)
        memcpy(made, p, MIN(kept, size));
    return made;
}

void *realloc(void *p, size_t size)
{
    size_t kept;
    know_next();
    if (owns != NULL && owns(p, CALLER, &kept))
        return copy(p, kept, size);
    if (refuses(CALLER))
        return NULL;
    bool locked = lock_table();
    below++;
    void *moved = next.realloc(p, size);
    below--;
    if (locked && p != NULL && (moved != NULL || size == 0))
        untrack_block(p);
    if (locked && moved != NULL && is_watched())
        enter_taken(moved, size, false);
    unlock_table(locked);
    return moved;
}

void free(void *p)
{
    know_next();
    if (owns != NULL && owns(p, CALLER, NULL))
        return;
    bool locked = p != NULL && lock_table();
    if (locked)
        untrack_block(p);
    unlock_table(locked);
    below++;
    next.free(p);
    below--;
}

static void *align(size_t alignment, size_t size, const void *caller)
{
    know_next();
    if (refuses(caller))
        return NULL;
    below++;
    void *made = next.memalign(alignment, size);
    below--;
    return took(made, size, false);
}

void *memalign(size_t alignment, size_t size)
{
    return align(alignment, size, CALLER);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return align(alignment, size, CALLER);
}

int posix_memalign(void **p, size_t alignment, size_t size)
{
    if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0)
        return EINVAL;
    int saved = errno;
    void *made = align(alignment, size, CALLER);
    errno = saved;
    if (made == NULL)
        return ENOMEM;
    *p = made;
    return 0;
}

void *valloc(size_t size)
{
    return align((size_t)sysconf(_SC_PAGESIZE), size, CALLER);
}

void *pvalloc(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return align(page, (size + page - 1) / page * page, CALLER);
}

/* ---- mmap and its kin ------------------------------------------------------------------- */

static void *map(void *address, size_t length, int protection, int flags, int fd, off64_t offset,
                 const void *caller)
{
    if (refuses(caller))
        return MAP_FAILED;
    bool locked = lock_table();
    void *made = data_races_are_watched()
                     ? next.mmap(address, length, protection, flags, fd, offset)
                     : kernel_map(address, length, protection, flags, fd, offset);
    if (locked && made != MAP_FAILED && (flags & MAP_FIXED) != 0)
        untrack_range(made, length);
    if (locked && made != MAP_FAILED && is_watched())
        enter_taken(made, length, true);
    unlock_table(locked);
    return made;
}

void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset)
{
    return map(address, length, protection, flags, fd, offset, CALLER);
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    return map(address, length, protection, flags, fd, offset, CALLER);
}

int munmap(void *address, size_t length)
{
    bool locked = lock_table();
    int result = data_races_are_watched() ? next.munmap(address, length)
                                          : (int)syscall(SYS_munmap, address, length);
    if (locked && result == 0)
        untrack_range(address, length);
    unlock_table(locked);
    return result;
}

void *mremap(void *address, size_t old_length, size_t new_length, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    void *wanted = flags & MREMAP_FIXED ? va_arg(arguments, void *) : NULL;
    va_end(arguments);
    if (refuses(CALLER)) /* shrinking can split a merged mapping */
        return MAP_FAILED;
    bool locked = lock_table();
    data_races_hand_over(address, old_length);
    void *moved = (void *)syscall(SYS_mremap, address, old_length, new_length, flags, wanted);
    if (moved != MAP_FAILED)
        data_races_take_over(moved, new_length);
    if (locked && moved != MAP_FAILED && (flags & MREMAP_FIXED) != 0)
        untrack_range(moved, new_length);
    if (locked && moved != MAP_FAILED && is_watched()) {
        untrack_range(address, old_length);
        enter_taken(moved, new_length, true);
    }
    unlock_table(locked);
    return moved;
}

/* Making reserved memory writable is a request for memory. */
int mprotect(void *address, size_t length, int protection)
{
    if (live.no_protection && interpose_depth > 0) {
        errno = ENOMEM;
        return -1;
    }
    if ((protection & PROT_WRITE) != 0 && refuses(CALLER))
        return -1;
    return (int)syscall(SYS_mprotect, address, length, protection);
}

/* Not counted as a request: a handler may ignore that advice is refused. */
int madvise(void *address, size_t length, int advice)
{
    bool refused = false;
    if (is_watched()) {
        pthread_mutex_lock(&live.lock);
        refused = live.nth != 0 && live.keep_failing && live.counts.refused > 0;
        pthread_mutex_unlock(&live.lock);
        if (live.no_advice || refused) {
            errno = live.no_advice ? EINVAL : ENOMEM;
            return -1;
        }
    }
    return (int)syscall(SYS_madvise, address, length, advice);
}

/* ---- memory in files -------------------------------------------------------------------- */

static int truncate_file(int fd, off64_t length, const void *caller)
{
    if (length > 0 && refuses(caller))
        return -1;
#ifdef SYS_ftruncate64
    return (int)syscall(SYS_ftruncate64, fd, __LONG_LONG_PAIR((long)(length >> 32), (long)length));
#else
    return (int)syscall(SYS_ftruncate, fd, length);
#endif
}

int ftruncate64(int fd, off64_t length)
{
    return truncate_file(fd, length, CALLER);
}

int ftruncate(int fd, off_t length)
{
    return truncate_file(fd, length, CALLER);
}

void *__sbrk(intptr_t);
void *sbrk(intptr_t increment)
{
    if (increment > 0 && refuses(CALLER))
        return (void *)-1;
    return __sbrk(increment);
}

#pragma GCC visibility pop

const char *interpose_preloaded(void)
{
    const char *libc = object_of((const void *)gnu_get_libc_version); /* never replaced */
    const char *preloaded = NULL, *missing = NULL;
    for (size_t i = 0; i < FAMILY && !sanitizer_is_running(); i++) {
        const char *object = object_of(dlsym(RTLD_NEXT, family[i]));
        if (strcmp(object, libc) == 0)
            missing = family[i];
        else if (*object != '\0')
            preloaded = object;
    }
    if (preloaded == NULL)
        return NULL;
    return missing == NULL
               ? fmt("%s is preloaded, and asked wherever libc would be", escape(preloaded))
               : fmt("%s is preloaded, and libc is asked instead: it has no %s", escape(preloaded),
                     missing);
}

#else

bool interpose_holds(const void *p)
{
    (void)p;
    return false;
}

const char *interpose_preloaded(void)
{
    return NULL;
}

#endif

bool interpose_works(void)
{
    /* the compiler would remove the pair without volatile pointers */
    void *(*volatile take)(size_t) = malloc;
    void (*volatile give)(void *) = free;
    bool was_watching = live.watching;
    size_t before = live.counts.requests;
    live.watching = true;
    interpose_enter();
    give(take(1));
    interpose_leave();
    live.watching = was_watching;
    bool seen = live.counts.requests != before;
    live.counts.requests = before;
    return seen;
}

/* ---- clocks ----------------------------------------------------------------------------- */

static atomic_uint ahead; /* seconds */
static int (*libc_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void find_clock(void)
{
    *(void **)&libc_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
}

void clock_jump(unsigned seconds)
{
    atomic_fetch_add(&ahead, seconds);
}

#pragma GCC visibility push(default)

/* Clocks of processor time do not jump. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    int result = libc_clock_gettime != NULL ? libc_clock_gettime(clock, t)
                                            : (int)syscall(SYS_clock_gettime, clock, t);
    if (result == 0 && clock >= 0 && clock != CLOCK_PROCESS_CPUTIME_ID &&
        clock != CLOCK_THREAD_CPUTIME_ID)
        t->tv_sec += atomic_load_explicit(&ahead, memory_order_relaxed);
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec t;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &t);
    *now = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    return result;
}

time_t time(time_t *seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME_COARSE, &t);
    if (seconds != NULL)
        *seconds = t.tv_sec;
    return t.tv_sec;
}

#pragma GCC visibility pop

/* ---- other programs --------------------------------------------------------------------- */

static _Atomic size_t *pythons;

void interpose_count_pythons(_Atomic size_t *count)
{
    pythons = count;
}

/* Adds `by` if it is Python.  A child of vfork may call this. */
static void count_python(const char *path, char *const argv[], int by)
{
    const char *slash = strrchr(path, '/');
    bool is_python = pythons != NULL && begins_with(slash != NULL ? slash + 1 : path, "python");
    for (; is_python && argv != NULL && *argv != NULL; argv++)
        is_python = strstr(*argv, "multiprocessing.resource_tracker") == NULL;
    if (is_python)
        *pythons += (size_t)by;
}

#pragma GCC visibility push(default)

int execve(const char *path, char *const argv[], char *const environment[])
{
    count_python(path, argv, 1);
    int result = (int)syscall(SYS_execve, path, argv, environment);
    count_python(path, argv, -1);
    return result;
}

int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

/* Python's os.posix_spawn and subprocess call this one of the two. */
int posix_spawn(pid_t *restrict pid, const char *restrict path,
                const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                char *const environment[restrict])
{
    typeof(posix_spawn) *libcs;
    *(void **)&libcs = dlsym(RTLD_NEXT, "posix_spawn");
    int result = libcs(pid, path, actions, attributes, argv, environment);
    if (result == 0)
        count_python(path, argv, 1);
    return result;
}

#pragma GCC visibility pop

/* ---- the environment -------------------------------------------------------------------- */

static atomic_bool watches_getenv;
static struct asked_variable asked[ASKED_VARIABLES + 1];

const struct asked_variable *getenv_asked(void)
{
    return asked;
}

#if !CONFORM_SANITIZED /* sanitizers call getenv before this program is ready */

static void note_asked(const char *name, const void *by)
{
    if (interpose_depth == 0 || !atomic_load(&watches_getenv) || strlen(name) >= sizeof asked->name)
        return;
    for (size_t i = 0; i < ASKED_VARIABLES; i++) {
        struct asked_variable *variable = &asked[i];
        if (variable->times == 0) {
            variable->by = by;
            strcpy(variable->name, name);
        }
        if (strcmp(variable->name, name) == 0) {
            variable->times++;
            return;
        }
    }
}

#pragma GCC visibility push(default)

char *getenv(const char *name)
{
    static char *(*libc)(const char *);
    note_asked(name, __builtin_return_address(0));
    if (libc == NULL)
        *(void **)&libc = dlsym(RTLD_NEXT, "getenv");
    return libc(name);
}

char *secure_getenv(const char *name)
{
    static char *(*libc)(const char *);
    note_asked(name, __builtin_return_address(0));
    if (libc == NULL)
        *(void **)&libc = dlsym(RTLD_NEXT, "secure_getenv");
    return libc(name);
}

#pragma GCC visibility pop

#endif

bool getenv_watch(void)
{
    char *(*volatile ask)(const char *) = getenv;
    atomic_store(&watches_getenv, true);
    interpose_enter();
    ask("PATH");
    interpose_leave();
    bool works = asked[0].times != 0;
    memset(asked, 0, sizeof asked);
    return works;
}
