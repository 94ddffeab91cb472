/* SPDX-License-Identifier: BSD-3-Clause
 *
 * claim: what nep49_claims and --claim promise beyond the contract.  Alignment is with malloc.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/harness.h"
#include "harness/interpose.h"
#include "nep49_shm.h"

GROUP(claim, 15, "What a handler promises beyond the contract.");

/* ---- huge pages --------------------------------------------------------------------------- */

enum { HUGE_PAGE = 2 << 20 };

/* How many bytes of the mappings that p to p + size touches lie in huge pages: transparent ones,
 * and those of mappings whose page is a huge one. */
static size_t huge_bytes(const void *p, size_t size)
{
    uintptr_t from = (uintptr_t)p, to = from + size, begin, end;
    size_t total = 0, kib, page = 0;
    bool inside = false;
    char line[512];
    FILE *smaps = fopen("/proc/self/smaps", "re");
    if (smaps == NULL)
        skip("/proc/self/smaps cannot be read: %s", strerror(errno));
    while (fgets(line, sizeof line, smaps) != NULL) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
            inside = begin < to && end > from;
        else if (inside && sscanf(line, "KernelPageSize: %zu", &kib) == 1)
            page = kib << 10;
        else if (inside && sscanf(line, "AnonHugePages: %zu", &kib) == 1)
            total += kib << 10;
        else if (inside && page >= HUGE_PAGE &&
                 (sscanf(line, "Private_Hugetlb: %zu", &kib) == 1 ||
                  sscanf(line, "Shared_Hugetlb: %zu", &kib) == 1))
            total += kib << 10;
    }
    fclose(smaps);
    return total;
}

/* Whether this kernel, asked as well as it can be, gives any huge page at this moment. */
static void need_huge_pages(void)
{
    size_t length = 4 * HUGE_PAGE;
    char *map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        skip("8 MiB cannot be mapped: %s", strerror(errno));
    int refused = madvise(map, length, MADV_HUGEPAGE) != 0 ? errno : 0;
    memset(map, 1, length);
    size_t got = huge_bytes(map, length);
    munmap(map, length);
    if (refused != 0)
        skip("the kernel refuses advice on huge pages: %s", strerror(refused));
    if (got < 2 * HUGE_PAGE)
        skip("the kernel grants huge pages to nobody: of 8 MiB it gave %zu KiB", got >> 10);
}

static void expect_huge(const void *p, size_t size, size_t missing, const char *call)
{
    uintptr_t first = ((uintptr_t)p + HUGE_PAGE - 1) / HUGE_PAGE;
    uintptr_t last = ((uintptr_t)p + size) / HUGE_PAGE;
    size_t whole = (last - first) * HUGE_PAGE, got = huge_bytes(p, size);
    expect(got + missing * HUGE_PAGE >= whole,
           fmt("%zu KiB or more of the block to lie in huge pages, after %s and a write to all of "
               "it",
               (whole - missing * HUGE_PAGE) >> 10, call),
           "%zu KiB, in the block at %p", got >> 10, p);
}

PROPERTY(claim_hugepage,
    .id     = "claim.hugepage", .level = MUST, .basis = BASIS_CLAIM,
    .title  = "blocks lie in huge pages as claimed",
    .clause = "After a write, a block of at least the claimed size lies in huge pages, as far as "
              "whole ones fit.",
    .tests  = "Blocks from malloc, calloc and realloc are checked.",
    .source = "nep49.h, hugepage=N; the kernel's admin-guide, transhuge",
    .why    = "Small pages cost hundreds of page faults on the first write, and TLB misses later.",
    .wrong  = "p = malloc(size); /* not aligned, not advised */",
    .right  = "p = aligned_alloc(2 << 20, (size + (2 << 20) - 1) & -(size_t)(2 << 20));\n"
              "if (p != NULL)\n"
              "    madvise(p, size, MADV_HUGEPAGE);",
    .hint   = "Align the mapping to 2 MiB and call madvise(MADV_HUGEPAGE) before the first write.",
    .looks  = "expected 6144 KiB or more of the block to lie in huge pages; seen 0 KiB")
{
    size_t from = subject_claims().hugepage;
    if (from == 0)
        skip_unclaimed();
    size_t size = MAX(from, HUGE_PAGE) + 2 * HUGE_PAGE, more = size + 4 * HUGE_PAGE;
    ask_for_memory(2 * more);
    need_huge_pages();

    unsigned char *p = must_malloc(size);
    memset(p, 1, size);
    expect_huge(p, size, 0, fmt("malloc(%zu)", size));

    /* Grown where it is, a block may have a seam: one huge page's worth of small ones. */
    p = must_realloc(p, more);
    memset(p, 2, more);
    expect_huge(p, more, 1, fmt("realloc from %zu to %zu", size, more));

    /* With a block in its way, it has to move. */
    unsigned char *other = must_calloc(size, 1);
    memset(other, 3, size);
    expect_huge(other, size, 0, fmt("calloc(%zu, 1)", size));
    other = must_realloc(other, more);
    memset(other, 4, more);
    expect_huge(other, more, 1, fmt("realloc from %zu to %zu", size, more));
    subject_free(other, more);
    subject_free(p, more);
}

/* ---- memory nodes ---------------------------------------------------------------------------- */

/* The kernel's policy for the page at p, and its nodes. */
static int policy_of(const void *p, struct nodes *nodes)
{
    int mode = -1;
    if (syscall(SYS_get_mempolicy, &mode, nodes->bits, (unsigned long)MOST_NODES, p,
                (unsigned long)MPOL_F_ADDR) != 0)
        skip("the kernel does not say where memory lies: get_mempolicy: %s", strerror(errno));
    return mode & ~MPOL_MODE_FLAGS;
}

/* Are these the pages' nodes that were promised?  `count` of them, at page boundaries. */
static void expect_nodes(void **pages, size_t count, const struct claims *claims, const char *call)
{
    const char *policy = claims->numa;
    int status[64];
    size_t elsewhere = 0, seen[MOST_NODES] = {0}, share = 0;
    unsigned here = 0;
    if (syscall(SYS_move_pages, 0, count, pages, NULL, status, 0) != 0)
        skip("the kernel does not say where pages are: move_pages: %s", strerror(errno));
    bool local = strcmp(policy, "local") == 0;
    if (local && syscall(SYS_getcpu, NULL, &here, NULL) != 0)
        harness_broke("getcpu: %s", strerror(errno));
    for (size_t i = 0; i < count; i++) {
        expect(status[i] >= 0, fmt("page %zu to be present after a write, %s", i, call),
               "move_pages says %s", strerror(-status[i]));
        bool right =
            local ? (unsigned)status[i] == here : has_node(&claims->nodes, (size_t)status[i]);
        elsewhere += !right;
        seen[status[i]]++;
    }
    /* A node that is full sends local pages elsewhere; bound ones may never be. */
    expect(elsewhere <= (local ? count / 2 : 0),
           fmt("the pages to lie where numa=%s says, %s", policy, call),
           "%zu of %zu pages on other nodes, the first page on node %d", elsewhere, count,
           status[0]);
    for (size_t node = 0; node < MOST_NODES; node++)
        share += has_node(&claims->nodes, node);
    for (size_t node = 0; strncmp(policy, "interleave", 10) == 0 && node < MOST_NODES; node++) {
        if (has_node(&claims->nodes, node))
            expect(seen[node] >= count / share / 2,
                   fmt("the pages to be spread over all nodes of numa=%s, %s", policy, call),
                   "%zu of %zu pages on node %zu", seen[node], count, node);
    }
}

static void expect_placed(unsigned char *p, size_t size, const struct claims *claims,
                          const char *call)
{
    enum { MOST_PAGES = 64 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = 0;
    void *pages[MOST_PAGES];
    struct nodes nodes = {0};
    const char *policy = claims->numa;
    memset(p, 0x5a, size);
    int mode = policy_of(p, &nodes);
    bool local = strcmp(policy, "local") == 0, bind = strncmp(policy, "bind", 4) == 0;
    bool right = local  ? mode == MPOL_LOCAL || mode == MPOL_PREFERRED
                 : bind ? mode == MPOL_BIND
                        : mode == MPOL_INTERLEAVE || mode == 6 /* weighted, since Linux 6.9 */;
    expect(right, fmt("the kernel's policy for the block to be numa=%s, %s", policy, call),
           "mode %d of linux/mempolicy.h", mode);
    for (size_t node = 0; !local && node < MOST_NODES; node++)
        expect(has_node(&nodes, node) == has_node(&claims->nodes, node),
               fmt("the kernel's policy for the block to be numa=%s, %s", policy, call),
               "node %zu %s", node, has_node(&nodes, node) ? "as well" : "is missing");
    unsigned char *first = p - (uintptr_t)p % page;
    size_t all = ((size_t)(p + size - 1 - first)) / page + 1;
    for (; count < MOST_PAGES && count < all; count++) /* from both ends, where there are more */
        pages[count] = first + (count % 2 == 0 ? count / 2 : all - 1 - count / 2) * page;
    expect_nodes(pages, count, claims, call);
}

PROPERTY(claim_numa,
    .id     = "claim.numa", .level = MUST, .basis = BASIS_CLAIM,
    .title  = "pages lie on the claimed nodes",
    .clause = "The pages of a block of at least the claimed size lie on the claimed memory nodes, "
              "by a kernel policy.",
    .tests  = "Blocks from malloc, calloc and realloc are checked.",
    .source = "nep49.h, numa=POLICY:NODES@N; set_mempolicy(2), mbind(2), move_pages(2)",
    .why    = "Memory of another node takes longer to reach, and no call reports it.",
    .hint   = "Call mbind before the first write, in realloc too, and check its result.",
    .looks  = "expected the policy numa=bind:0, after malloc(131072); seen mode 0")
{
    struct claims claims = subject_claims();
    if (claims.numa_from == 0)
        skip_unclaimed();
    size_t size = MAX(claims.numa_from, 16384) + 65536, more = 3 * size;
    ask_for_memory(3 * more);
    cpu_set_t here; /* so that "local" means one node */
    CPU_ZERO(&here);
    CPU_SET((size_t)MAX(sched_getcpu(), 0), &here);
    sched_setaffinity(0, sizeof here, &here);

    /* Nothing is freed before all were made: memory that is used again brings its policy along,
     * unless that was undone, which is looked at last. */
    unsigned char *grown = must_realloc(must_malloc(16), size);
    expect_placed(grown, size, &claims, fmt("after realloc from 16 to %zu", size));
    unsigned char *small = must_malloc(claims.numa_from), *p = must_malloc(size);
    expect_placed(small, claims.numa_from, &claims, fmt("after malloc(%zu)", claims.numa_from));
    expect_placed(p, size, &claims, fmt("after malloc(%zu)", size));
    unsigned char *other = must_calloc(1, size);
    expect_placed(other, size, &claims, fmt("after calloc(1, %zu)", size));
    p = must_realloc(p, more);
    expect_placed(p, more, &claims, fmt("after realloc from %zu to %zu", size, more));
    subject_free(p, more);
    p = must_malloc(more);
    expect_placed(p, more, &claims, fmt("after free and malloc(%zu)", more));
    subject_free(p, more);
    subject_free(other, size);
    subject_free(small, claims.numa_from);
    subject_free(grown, size);
}

/* ---- guard pages ----------------------------------------------------------------------------- */

static sigjmp_buf stopped;

static void on_stop(int number)
{
    (void)number;
    siglongjmp(stopped, 1);
}

/* Writes what it has read to the byte at p, and tells whether a signal stopped that. */
static bool is_stopped(volatile unsigned char *p)
{
    struct sigaction action = {.sa_handler = on_stop}, segv, bus;
    volatile bool seen = false;
    sigaction(SIGSEGV, &action, &segv);
    sigaction(SIGBUS, &action, &bus);
    if (sigsetjmp(stopped, 1) == 0)
        *p = *p; /* cppcheck-suppress selfAssignment */
    else
        seen = true;
    sigaction(SIGSEGV, &segv, NULL);
    sigaction(SIGBUS, &bus, NULL);
    return seen;
}

static void expect_guarded(unsigned char *p, size_t size, enum guard guard, const char *call)
{
    unsigned char *beside = guard == GUARD_AFTER ? p + size : p - 1;
    pattern_fill(p, size, size);
    expect(is_stopped(beside),
           fmt("a write to the byte %s the block to be stopped by SIGSEGV, after %s",
               guard == GUARD_AFTER ? "after" : "before", call),
           "no SIGSEGV at %p, with the block of %zu bytes at %p", (void *)beside, size, (void *)p);
    expect(is_stopped(guard == GUARD_AFTER ? beside + 15 : beside - 15),
           fmt("a write 15 bytes further on to be stopped as well, after %s", call),
           "no SIGSEGV, with the block of %zu bytes at %p", size, (void *)p);
    expect_pattern(p, size, size, "after %s", call);
}

/* Whoever allocates next must not be given the addresses either. */
static void expect_gone(unsigned char *p, size_t size, const char *call)
{
    enum { LATER = 8 };
    void *later[LATER];
    expect(is_stopped(p), fmt("a use of the old block to be stopped by SIGSEGV, after %s", call),
           "no SIGSEGV at its first byte, %p", (void *)p);
    for (size_t i = 0; i < LATER; i++)
        later[i] = must_malloc(size);
    expect(is_stopped(p) && is_stopped(p + size - 1),
           fmt("a use of the old block to be stopped by SIGSEGV, %d blocks after %s", LATER, call),
           "no SIGSEGV: its memory, %p to %p, is in use again", (void *)p, (void *)(p + size));
    for (size_t i = 0; i < LATER; i++)
        subject_free(later[i], size);
}

static void expect_guarded_or_refused(size_t size, enum guard guard)
{
    interpose_refuse_protection(true);
    unsigned char *p = subject_malloc(size);
    interpose_refuse_protection(false);
    if (p == NULL)
        return;
    expect_guarded(p, size, guard, fmt("malloc(%zu) while mprotect is refused", size));
    subject_free(p, size);
}

PROPERTY(claim_guard,
    .id     = "claim.guard", .level = MUST, .basis = BASIS_CLAIM,
    .title  = "guard pages catch overruns as claimed",
    .clause = "The byte next to a block on the claimed side is inaccessible, and so is a freed or "
              "moved block.",
    .tests  = "Blocks of malloc, calloc and realloc are checked, also after free and after a "
              "realloc that moved them. A call may refuse a block, but not return one without a "
              "guard.",
    .source = "nep49.h, guard=after and guard=before",
    .why    = "An overrun that is not stopped crashes later, in unrelated code.",
    .hint   = "End a block whose size is a multiple of 16 bytes at the protected page. Do not "
              "reuse freed addresses soon.",
    .looks  = "expected a write to the byte after the block to raise SIGSEGV; seen none")
{
    static const size_t sizes[] = {16, 32, 80, 1008, 4064, 4080, 4096, 4112, 8192, 65536, 1000000};
    enum guard guard = subject_claims().guard;
    if (guard == GUARD_NONE)
        skip_unclaimed();
    if (is_instrumented())
        skip("memcheck and the sanitizers take each of these uses for an error");
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        size_t size = sizes[i], more = sizes[(i + 3) % LENGTH(sizes)];
        unsigned char *p = must_malloc(size);
        expect_guarded(p, size, guard, fmt("malloc(%zu)", size));
        unsigned char *moved = must_realloc(p, more);
        expect_guarded(moved, more, guard, fmt("realloc from %zu to %zu", size, more));
        if (moved != p && (moved + more <= p || p + size <= moved))
            expect_gone(p, size, fmt("realloc from %zu to %zu", size, more));
        subject_free(moved, more);
        expect_gone(moved, more, fmt("free of %zu bytes", more));
        p = must_calloc(size / 16, 16);
        expect_guarded(p, size, guard, fmt("calloc(%zu, 16)", size / 16));
        subject_free(p, size);
        expect_gone(p, size, fmt("free of %zu bytes", size));
        expect_guarded_or_refused(size, guard);
    }
}

/* ---- page-locked memory ---------------------------------------------------------------------- */

enum { POINTER_MEMORY_TYPE = 2, MEMORY_TYPE_HOST = 1 }; /* of cuda.h */

typedef int pointer_attribute_fn(void *value, int attribute, unsigned long long pointer);

static void expect_pinned(pointer_attribute_fn *attribute, unsigned char *p, size_t size,
                          const char *call)
{
    unsigned char *const places[] = {p, p + size - 1};
    for (size_t i = 0; i < 2; i++) {
        unsigned type = 0;
        int error = attribute(&type, POINTER_MEMORY_TYPE, (uintptr_t)places[i]);
        expect(error == 0 && type == MEMORY_TYPE_HOST,
               fmt("CUDA to know byte %zu of the block as page-locked, after %s",
                   (size_t)(places[i] - p), call),
               "cuPointerGetAttribute says error %d, type %u, of the block at %p", error, type,
               (void *)p);
    }
    memset(p, 0x5a, size);
}

PROPERTY(claim_pinned,
    .id     = "claim.pinned", .level = MUST, .basis = BASIS_CLAIM,
    .title  = "CUDA sees blocks as page-locked",
    .clause = "CUDA reports every byte of a block of at least the claimed size as page-locked.",
    .source = "nep49.h, pinned=N; CUDA driver API, cuPointerGetAttribute",
    .why    = "A copy from other memory waits and does not overlap a computation.",
    .hint   = "Use cudaHostAlloc, in realloc too. Without a device refuse to load.",
    .looks  = "expected CUDA to know byte 0 of the block as page-locked, after malloc(4096)")
{
    size_t from = subject_claims().pinned;
    if (from == 0)
        skip_unclaimed();
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    expect(driver != NULL, "a handler that claims page-locked memory to have CUDA's driver loaded",
           "libcuda.so.1 is not in this process");
    pointer_attribute_fn *attribute = NULL;
    *(void **)&attribute = dlsym(driver, "cuPointerGetAttribute");
    if (attribute == NULL)
        skip("CUDA's driver cannot be asked: it has no cuPointerGetAttribute");
    for (size_t size = MAX(from, 64); size <= MAX(from, 64) * 100000; size *= 100) {
        if (size > 16 << 20)
            break;
        unsigned char *p = must_malloc(size);
        expect_pinned(attribute, p, size, fmt("malloc(%zu)", size));
        p = must_realloc(p, 3 * size);
        expect_pinned(attribute, p, 3 * size, fmt("realloc from %zu to %zu", size, 3 * size));
        subject_free(p, 3 * size);
        p = must_calloc(size, 1);
        expect_pinned(attribute, p, size, fmt("calloc(%zu, 1)", size));
        subject_free(p, size);
    }
}

/* ---- shared memory --------------------------------------------------------------------------- */

/* What two processes tell each other. */
struct talk {
    char name[NEP49_SHM_NAME_ROOM];
    atomic_int reached;
    size_t size;
};

static struct talk *new_talk(void)
{
    struct talk *talk =
        mmap(NULL, sizeof *talk, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (talk == MAP_FAILED)
        harness_broke("memory for two processes: %s", strerror(errno));
    return talk;
}

/* Waits for process `other` to get that far.  Where it ends before, what it has found is the
 * verdict, or its signal is ours. */
static void wait_for(struct talk *talk, int stage, pid_t other)
{
    int status;
    while (atomic_load(&talk->reached) < stage) {
        if (other != 0 && waitpid(other, &status, WNOHANG) == other) {
            if (WIFSIGNALED(status)) {
                signal(WTERMSIG(status), SIG_DFL);
                raise(WTERMSIG(status));
            }
            _exit(0);
        }
        nanosleep(&(struct timespec){0, 100000}, NULL);
    }
}

static pid_t start_process(void)
{
    pid_t pid = fork();
    if (pid < 0)
        harness_broke("fork: %s", strerror(errno));
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

static void take_name(const void *p, struct talk *talk)
{
    expect(nep49_shm_name(p, talk->name, sizeof talk->name) == 0,
           fmt("the block of %zu bytes at %p to have a name", talk->size, p), "none: %s",
           strerror(errno));
}

/* In the other process: the block of that name, with the contents of that number. */
static void *attach_expecting(const struct talk *talk, uint64_t number, const char *when)
{
    size_t size = 0;
    void *data = nep49_shm_attach(talk->name, &size);
    expect(data != NULL, fmt("another process to map %s, %s", talk->name, when), "the error %s",
           strerror(errno));
    expect(size == talk->size, fmt("%s to be a block of %zu bytes", talk->name, talk->size),
           "%zu bytes", size);
    expect_pattern(data, size, number, "mapped by its name %s, %s", talk->name, when);
    return data;
}

static void write_by_name(void *data)
{
    struct talk *talk = data;
    void *p = attach_expecting(talk, 1, "by a child");
    pattern_fill(p, talk->size, 2);
    nep49_shm_detach(p);
}

static void expect_no_name(const char *name, const char *when)
{
    void *p = nep49_shm_attach(name, NULL);
    expect(p == NULL, fmt("%s to name no block, %s", name, when), "a mapping at %p", p);
}

/* Starts a process that owns a block, frees it at stage 2, and then waits to be killed. */
static pid_t start_owner(struct talk *talk)
{
    atomic_store(&talk->reached, 0);
    pid_t owner = start_process();
    if (owner == 0) {
        void *p = must_malloc(talk->size);
        pattern_fill(p, talk->size, 3);
        take_name(p, talk);
        atomic_store(&talk->reached, 1);
        wait_for(talk, 2, 0);
        subject_free(p, talk->size);
        atomic_store(&talk->reached, 3);
        for (;;)
            pause();
    }
    wait_for(talk, 1, owner);
    return owner;
}

static void end_owner(pid_t owner)
{
    int status;
    kill(owner, SIGKILL);
    waitpid(owner, &status, 0);
}

static void expect_owner_can_free(struct talk *talk)
{
    pid_t owner = start_owner(talk);
    void *p = attach_expecting(talk, 3, "of another process");
    atomic_store(&talk->reached, 2);
    wait_for(talk, 3, owner);
    expect_pattern(p, talk->size, 3, "in another process, when its owner had freed it");
    nep49_shm_detach(p);
    expect_no_name(talk->name, "when nobody has it any more");
    end_owner(owner);
}

static void expect_owner_can_crash(struct talk *talk)
{
    char path[64], target[256] = "";
    int pid, fd;
    pid_t owner = start_owner(talk);
    if (sscanf(talk->name, "/proc/%d/fd/%d", &pid, &fd) == 2) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[MAX(length, 0)] = '\0';
    }
    void *p = attach_expecting(talk, 3, "of a process that is about to be killed");
    end_owner(owner);
    expect_pattern(p, talk->size, 3, "when its owner was killed");
    nep49_shm_detach(p);
    expect_no_name(talk->name, "when its owner was killed");
    expect(*target == '\0' || access(target, F_OK) != 0,
           "nothing to stay behind when the owner of a block is killed", "%s is still there",
           escape(target));
}

PROPERTY(claim_shm,
    .id     = "claim.shm", .level = MUST, .basis = BASIS_CLAIM,
    .title  = "other processes can map a block by name",
    .clause = "Another process can map a block by its name and sees the same bytes, and nothing "
              "stays behind.",
    .tests  = "The other process keeps the bytes after the owner frees the block or dies. At the "
              "end nothing may be left.",
    .source = "nep49.h, shm=N; nep49_shm.h",
    .why    = "A process that shares an array reads wrong data, and a leftover name keeps memory.",
    .hint   = "Count the mappings of each block in shared memory, and let the last process punch "
              "the hole.",
    .looks  = "expected byte 0 of 65536 to be 0x5b, in another process; seen 0x00")
{
    size_t from = subject_claims().shm;
    if (from == 0)
        skip_unclaimed();
    struct talk *talk = new_talk();
    talk->size = from + 10000;
    ask_for_memory(6 * talk->size);

    void *p = must_malloc(talk->size);
    pattern_fill(p, talk->size, 1);
    take_name(p, talk);
    in_child(write_by_name, talk);
    expect_pattern(p, talk->size, 2, "written by another process");
    subject_free(p, talk->size);
    expect_no_name(talk->name, "when its block was freed");

    p = must_realloc(must_calloc(talk->size, 1), 2 * talk->size);
    talk->size *= 2;
    take_name(p, talk);
    pattern_fill(p, talk->size, 1);
    in_child(write_by_name, talk);
    expect_pattern(p, talk->size, 2, "written by another process");
    subject_free(p, talk->size);

    talk->size = from;
    expect_owner_can_free(talk);
    expect_owner_can_crash(talk);
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* What it says has to have become of what it said before; what it does not keep is left out. */
static void expect_statistics(nep49_statistics *was, ptrdiff_t blocks, ptrdiff_t bytes, size_t made,
                              const char *call)
{
    nep49_statistics is;
    subject_statistics(&is);
    was->live_blocks += was->live_blocks != SIZE_MAX ? (size_t)blocks : 0;
    was->live_bytes += was->live_bytes != SIZE_MAX ? (size_t)bytes : 0;
    was->made += was->made != SIZE_MAX ? made : 0;
    if (was->peak_bytes != SIZE_MAX && was->live_bytes != SIZE_MAX)
        was->peak_bytes = MAX(was->peak_bytes, was->live_bytes);
    expect(memcmp(&is, was, sizeof is) == 0,
           fmt("after %s, blocks and bytes live, bytes at the peak, blocks made: %zd, %zd, %zd, "
               "%zd (-1: not kept)",
               call, was->live_blocks, was->live_bytes, was->peak_bytes, was->made),
           "%zd, %zd, %zd, %zd", is.live_blocks, is.live_bytes, is.peak_bytes, is.made);
}

struct to_free {
    void *p;
    size_t size;
};

static void free_it(void *data)
{
    struct to_free *it = data;
    subject_free(it->p, it->size);
}

/* A block that nobody writes to, where that takes no memory. */
static void count_past_4gib(void)
{
    const size_t size = POWER_OF_2(32) + 100;
    nep49_statistics was;
    if (SIZE_MAX == UINT32_MAX || is_instrumented() || lacking_memory(size) != NULL ||
        subject_fills_blocks())
        return;
    subject_statistics(&was);
    void *p = subject_malloc(size);
    if (p == NULL)
        return;
    expect_statistics(&was, 1, (ptrdiff_t)size, 1, fmt("malloc(%zu)", size));
    subject_free(p, size);
    expect_statistics(&was, -1, -(ptrdiff_t)size, 0, fmt("free(%zu)", size));
}

PROPERTY(claim_statistics,
    .id     = "claim.statistics", .level = MUST, .basis = BASIS_CLAIM,
    .title  = "statistics count every call",
    .clause = "nep49_get_statistics counts the blocks and requested bytes of all successful calls, "
              "and no failed call.",
    .tests  = "The calls allocate, resize and free by every function and on several threads; some "
              "are refused.",
    .source = "nep49.h, nep49_statistics",
    .why    = "A slightly wrong count makes users search for a leak that does not exist.",
    .hint   = "Count once the block exists, then subtract the old size. SIZE_MAX means \"not "
              "kept\".",
    .looks  = "expected after free(1000), blocks live: 3 (-1: not kept); seen 4")
{
    static const size_t sizes[] = {1, 1000, 100000, 3 << 20};
    unsigned char *p[LENGTH(sizes)];
    nep49_statistics was;
    if (!subject_statistics(&was))
        skip_unclaimed();
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        p[i] = must_malloc(sizes[i]);
        expect_statistics(&was, 1, (ptrdiff_t)sizes[i], 1, fmt("malloc(%zu)", sizes[i]));
    }
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        size_t more = sizes[i] * 2, less = sizes[i] / 2 + 1;
        p[i] = must_realloc(p[i], more);
        expect_statistics(&was, 0, (ptrdiff_t)sizes[i], 1, fmt("realloc to %zu", more));
        p[i] = must_realloc(p[i], less);
        expect_statistics(&was, 0, (ptrdiff_t)less - (ptrdiff_t)more, 1,
                          fmt("realloc to %zu", less));
        if (subject_malloc(PTRDIFF_MAX) == NULL && subject_realloc(p[i], PTRDIFF_MAX) == NULL)
            expect_statistics(&was, 0, 0, 0, "a malloc and a realloc that were refused");
    }
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        size_t size = sizes[i] / 2 + 1;
        subject_free(p[i], size);
        expect_statistics(&was, -1, -(ptrdiff_t)size, 0, fmt("free(%zu)", size));
        void *q = must_calloc(sizes[i], 3);
        expect_statistics(&was, 1, 3 * (ptrdiff_t)sizes[i], 1, fmt("calloc(%zu, 3)", sizes[i]));
        in_threads(1, free_it, &(struct to_free){q, 3 * sizes[i]}, sizeof(struct to_free));
        expect_statistics(&was, -1, -3 * (ptrdiff_t)sizes[i], 0, "a free in another thread");
    }
    subject_free(NULL, 10);
    expect_statistics(&was, 0, 0, 0, "free of NULL");
    count_past_4gib();
}
