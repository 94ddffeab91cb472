/* SPDX-License-Identifier: BSD-3-Clause
 *
 * claim: what nep49_claims promises beyond the contract.  Alignment is with malloc.
 */
#include <stdio.h>
#include <sys/mman.h>

#include "battery.h"

GROUP(claim, 14, "What a handler promised beyond the contract.");

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
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
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
           text("%zu KiB or more of the block to lie in huge pages, after %s and a write to all of "
                "it",
                (whole - missing * HUGE_PAGE) >> 10, call),
           "%zu KiB, in the block at %p", got >> 10, p);
}

PROPERTY(claim_hugepage,
    .id     = "claim.hugepage",
    .level  = MUST, .basis = BASIS_CLAIM, .judge = JUDGE_HANDLER,
    .clause = "from the size claimed on, a block that was written to lies in huge pages, whichever "
              "function made it, as far as whole ones fit into it",
    .source = "nep49.h, hugepage=N; the kernel's admin-guide, transhuge",
    .why    = "a block in small pages costs hundreds of faults at first touch, and misses in the "
              "TLB ever after, which is what the handler was chosen to avoid",
    .hint   = "align the mapping to 2 MiB and call madvise(MADV_HUGEPAGE) before the first write; "
              "a realloc that moves has to keep the alignment",
    .looks  = "FAIL: expected 6144 KiB or more of the block to lie in huge pages, after "
              "malloc(8388608); seen 0 KiB")
{
    size_t from = subject_claims().hugepage;
    if (from == 0)
        skip("it claims no huge pages");
    size_t size = MAX(from, HUGE_PAGE) + 2 * HUGE_PAGE, more = size + 4 * HUGE_PAGE;
    ask_for_memory(2 * more);
    need_huge_pages();

    unsigned char *p = must_malloc(size);
    memset(p, 1, size);
    expect_huge(p, size, 0, text("malloc(%zu)", size));

    /* Grown where it is, a block may have a seam: one huge page's worth of small ones. */
    p = must_realloc(p, more);
    memset(p, 2, more);
    expect_huge(p, more, 1, text("realloc from %zu to %zu", size, more));

    /* With a block in its way, it has to move. */
    unsigned char *other = must_calloc(size, 1);
    memset(other, 3, size);
    expect_huge(other, size, 0, text("calloc(%zu, 1)", size));
    other = must_realloc(other, more);
    memset(other, 4, more);
    expect_huge(other, more, 1, text("realloc from %zu to %zu", size, more));
    subject_free(other, more);
    subject_free(p, more);
}
