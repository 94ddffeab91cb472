/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions that stand before libc's own: they are exported from this program, and then every
 * shared object binds to these.
 */
#undef _FILE_OFFSET_BITS /* the functions of both kinds are here, each by its own name */
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
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/instrumented.h"
#include "base/text.h"
#include "harness/data_races.h"
#include "model/record.h"

_Thread_local int interpose_depth;
_Thread_local int *interpose_trouble;

/* What is kept, under one lock.  The table of what was taken is open addressing in memory that is
 * mapped for it, as malloc is what is being watched. */
struct taken {
    uintptr_t address;
    size_t size;
    bool mapped;
};
enum { SLOTS = 1 << 18, UNUSED_SLOT = 0 };

static struct {
    pthread_mutex_t lock;
    atomic_bool watching;
    size_t nth;
    bool keep_failing, no_advice;
    struct interpose_counts counts;
    struct taken *table;
    size_t used, mappings; /* of its slots */
} live = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Whose own requests go through, as they end the process where one is refused and no handler can do
 * anything about it: the dynamic linker's, for thread-local variables at their first use, and those
 * of CUDA's driver, which writes to what its malloc returned (580.159, cuMemHostRegister). */
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
    static const char driver[] = "libcuda.so";
    const char *slash = strrchr(object->dlpi_name, '/');
    const char *name = slash != NULL ? slash + 1 : object->dlpi_name;
    unsigned long linker = getauxval(AT_BASE);
    (void)size;
    (void)unused;
    int which = linker != 0 && object->dlpi_addr == linker      ? LINKER
                : strncmp(name, driver, sizeof driver - 1) == 0 ? CUDA_DRIVER
                                                                : SPARED;
    if (which == SPARED)
        return 0;
    spared[which].begin = object->dlpi_addr;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD)
            spared[which].end =
                MAX(spared[which].end, spared[which].begin + part->p_vaddr + part->p_memsz);
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
    if (nth != 0 && spared[CUDA_DRIVER].end == 0) /* it may come with the first block */
        dl_iterate_phdr(find_spared, NULL);
    pthread_mutex_lock(&live.lock);
    live.nth = nth;
    live.keep_failing = keep_failing;
    live.counts.requests = 0;
    live.counts.refused = 0;
    pthread_mutex_unlock(&live.lock);
}

void interpose_refuse_advice(bool refuse)
{
    pthread_mutex_lock(&live.lock);
    live.no_advice = refuse;
    pthread_mutex_unlock(&live.lock);
}

static atomic_bool refuses_protection;

void interpose_refuse_protection(bool refuse)
{
    atomic_store(&refuses_protection, refuse);
}

static void *kernel_map(void *address, size_t length, int protection, int flags, int fd,
                        off64_t offset)
{
#ifdef SYS_mmap2 /* takes units of 4096 bytes, where SYS_mmap takes a table of arguments */
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

/* Its place in the table, or NULL. */
static struct taken *find_taken(uintptr_t address)
{
    if (live.table == NULL)
        return NULL;
    for (size_t at = first_slot(address);; at++) {
        struct taken *slot = &live.table[at % SLOTS];
        if (slot->address == address || slot->address == UNUSED_SLOT)
            return slot->address == address ? slot : NULL;
    }
}

static void enter_taken(void *p, size_t size, bool mapped)
{
    if (live.table == NULL)
        return;
    if (live.used > SLOTS / 2) {
        live.counts.left_out++; /* and is not missed: the table then has less than there is */
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

/* What stands behind it moves up to where it would be found, so that no gap is left and none has
 * to be kept in mind. */
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
            continue; /* it would not be found there */
        live.table[gap % SLOTS] = live.table[at % SLOTS];
        gap = at;
    }
    live.table[gap % SLOTS] = (struct taken){.address = UNUSED_SLOT};
}

static void untrack_taken(void *p)
{
    struct taken *slot = find_taken((uintptr_t)p);
    if (slot != NULL)
        untrack(slot);
}

/* What is left of a mapping when a range of it is given back: up to two pieces. */
static void untrack_part(struct taken *slot, uintptr_t from, uintptr_t to)
{
    uintptr_t begin = slot->address, end = begin + slot->size;
    untrack(slot);
    if (begin < from)
        enter_taken((void *)begin, from - begin, true);
    if (to < end)
        enter_taken((void *)to, end - to, true);
}

bool interpose_holds(const void *p)
{
    pthread_mutex_lock(&live.lock);
    bool held = find_taken((uintptr_t)p) != NULL;
    pthread_mutex_unlock(&live.lock);
    return held;
}

static void untrack_range(uintptr_t from, size_t length)
{
    struct taken *whole = find_taken(from);
    if (whole != NULL && whole->mapped && whole->size == length) {
        untrack(whole);
        return;
    }
    for (size_t i = 0; live.mappings != 0 && i < SLOTS;) {
        struct taken *slot = &live.table[i];
        if (slot->mapped && slot->address < from + length && slot->address + slot->size > from)
            untrack_part(slot, from, from + length); /* and another moves up to here */
        else
            i++;
    }
}

/* ---- before each request ---------------------------------------------------------------- */

/* Calls of this thread that are inside the allocator behind this one: what it asks the kernel for
 * is its own matter, and the lock may be held already. */
static _Thread_local int below;

static bool is_watched(void)
{
    return interpose_depth > 0 && live.watching && below == 0;
}

/* Whether the table has to be kept while addresses change hands: the lock is then held. */
static bool keep_books(void)
{
    bool kept = live.watching && below == 0;
    if (kept)
        pthread_mutex_lock(&live.lock);
    return kept;
}

/* In a function that stands before libc's: where it was called. */
#define CALLER __builtin_return_address(0)

/* True where this request, made at `caller`, is to be refused; errno is then set. */
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

static void gives_back(void *p)
{
    if (p != NULL && live.watching &&
        below == 0) { /* on any thread: a handler may have one that frees */
        pthread_mutex_lock(&live.lock);
        untrack_taken(p);
        pthread_mutex_unlock(&live.lock);
    }
}

#pragma GCC visibility push(default)

/* ---- malloc and its kin ----------------------------------------------------------------- */

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

/* Who would be asked if this program had none of these: what was preloaded, a sanitizer for
 * instance, which hands out memory by other names as well, or libc. */
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

/* The file of the object that is at the address. */
static const char *object_of(const void *address)
{
    Dl_info info;
    return address != NULL && dladdr(address, &info) != 0 ? info.dli_fname : "";
}

/* A whole family of one object, or none: one that lacks a member cannot take back what another
 * gave. */
static void know_next(void)
{
    void *found[FAMILY];
    if (next.known)
        return;
    next.known = true;                               /* first: to look may ask for memory */
    *(void **)&next.mmap = dlsym(RTLD_NEXT, "mmap"); /* a sanitizer forgets what was there */
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

/* What ends one block or mapping and makes another does so under the lock: as soon as the old one
 * is gone, another thread can be given its address, and enter that. */
void *realloc(void *p, size_t size)
{
    know_next();
    if (refuses(CALLER))
        return NULL;
    bool kept = keep_books();
    below++;
    void *moved = next.realloc(p, size);
    below--;
    if (!kept)
        return moved;
    if (p != NULL && (moved != NULL || size == 0))
        untrack_taken(p);
    if (moved != NULL && is_watched())
        enter_taken(moved, size, false);
    pthread_mutex_unlock(&live.lock);
    return moved;
}

void free(void *p)
{
    know_next();
    gives_back(p);
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
    bool kept = keep_books();
    void *made = data_races_are_watched()
                     ? next.mmap(address, length, protection, flags, fd, offset)
                     : kernel_map(address, length, protection, flags, fd, offset);
    if (kept && made != MAP_FAILED && (flags & MAP_FIXED) != 0)
        untrack_range((uintptr_t)made, length); /* what it replaces */
    if (kept && made != MAP_FAILED && is_watched())
        enter_taken(made, length, true);
    if (kept)
        pthread_mutex_unlock(&live.lock);
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
    bool kept = keep_books();
    int result = data_races_are_watched() ? next.munmap(address, length)
                                          : (int)syscall(SYS_munmap, address, length);
    if (kept && result == 0)
        untrack_range((uintptr_t)address, length);
    if (kept)
        pthread_mutex_unlock(&live.lock);
    return result;
}

void *mremap(void *address, size_t old_length, size_t new_length, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    void *wanted = flags & MREMAP_FIXED ? va_arg(arguments, void *) : NULL;
    va_end(arguments);
    if (refuses(CALLER)) /* to shrink splits a mapping that was merged with another */
        return MAP_FAILED;
    bool kept = keep_books();
    data_races_hand_over(address, old_length);
    void *moved = (void *)syscall(SYS_mremap, address, old_length, new_length, flags, wanted);
    if (moved != MAP_FAILED)
        data_races_take_over(moved, new_length);
    if (kept && moved != MAP_FAILED && (flags & MREMAP_FIXED) != 0)
        untrack_range((uintptr_t)moved, new_length);
    if (kept && moved != MAP_FAILED && is_watched()) {
        untrack_range((uintptr_t)address, old_length);
        enter_taken(moved, new_length, true);
    }
    if (kept)
        pthread_mutex_unlock(&live.lock);
    return moved;
}

/* What was set aside is now to be written to. */
int mprotect(void *address, size_t length, int protection)
{
    if (atomic_load(&refuses_protection) && interpose_depth > 0) {
        errno = ENOMEM;
        return -1;
    }
    if ((protection & PROT_WRITE) != 0 && refuses(CALLER))
        return -1;
    return (int)syscall(SYS_mprotect, address, length, protection);
}

/* A refusal of advice is no refusal of memory: a handler may ignore it, and it is not counted. */
int madvise(void *address, size_t length, int advice)
{
    bool refused = false, unknown = false;
    if (is_watched()) {
        pthread_mutex_lock(&live.lock);
        unknown = live.no_advice;
        refused = live.nth != 0 && live.keep_failing && live.counts.refused > 0;
        pthread_mutex_unlock(&live.lock);
    }
    if (unknown || refused) {
        errno = unknown ? EINVAL : ENOMEM;
        return -1;
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
    const char *libc = object_of((const void *)gnu_get_libc_version); /* which nobody replaces */
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
               ? text("%s is preloaded, and asked wherever libc would be", text_safe(preloaded))
               : text("%s is preloaded, and libc is asked instead: it has no %s",
                      text_safe(preloaded), missing);
}

#else

bool interpose_holds(const void *p)
{
    (void)p;
    return false; /* nothing is kept: interpose_works says so */
}

const char *interpose_preloaded(void)
{
    return NULL;
}

#endif

bool interpose_works(void)
{
    /* through pointers that the compiler has to believe in: a pair it sees through it leaves out */
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
