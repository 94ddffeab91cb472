/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is the same in every reproducer: the handler, its blocks, and what is looked at in each
 * call.
 */
/* As NEP 49 has it. */
typedef struct {
    void *ctx;
    void *(*malloc)(void *ctx, size_t size);
    void *(*calloc)(void *ctx, size_t nelem, size_t elsize);
    void *(*realloc)(void *ctx, void *p, size_t size);
    void (*free)(void *ctx, void *p, size_t size);
} PyDataMemAllocator;
typedef struct {
    char name[127];
    uint8_t version;
    PyDataMemAllocator allocator;
} PyDataMem_Handler;

static PyDataMem_Handler *handler, as_loaded;
static PyDataMem_Handler *(*getter)(const char **why); /* or NULL */

/* ---- what is in a block -------------------------------------------------------------------- */

enum { MIB = 1 << 20, WHOLE = 128 << 10 /* up to here all of a block is written */ };

/* Live where p is not NULL.  Of its words of 8 bytes every `stride`th and the last few are written:
 * they are its own, or the one that it was filled with. */
static struct block {
    unsigned char *p;
    size_t size, stride;
    uint64_t word, salt;
    bool has_word;
} blocks[BLOCKS];
enum { PROCESSES = 4 };
static pid_t processes[PROCESSES]; /* that were forked half-way */
static int process_count;
static uint64_t salt; /* another one in each process */

static size_t block_count, live_blocks, live_bytes;
static bool is_limited;

enum { WORD = 8, LAST = 8 };

/* Hardly any two blocks have a word in common, and no byte of it is zero. */
static uint64_t word_of(const struct block *block, size_t at)
{
    uint64_t x = ((uint64_t)(block - blocks) + 1) * 0x9e3779b97f4a7c15u + block->salt + at;
    x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
    return block->has_word ? block->word : (x ^ x >> 29) | 0x0101010101010101u;
}

/* The place of the next word that is written. */
static size_t next_of(const struct block *block, size_t at)
{
    size_t last = block->size / WORD > LAST ? (block->size / WORD - LAST) * WORD : 0;
    if (at >= last)
        return at + WORD;
    return at + block->stride < last ? at + block->stride : last;
}

static void fill(struct block *block)
{
    for (size_t at = 0; at < block->size; at = next_of(block, at)) {
        uint64_t word = word_of(block, at);
        memcpy(block->p + at, &word, block->size - at < WORD ? block->size - at : WORD);
    }
}

/* Of the first `size` bytes, which may be elsewhere now. */
static void look(const struct block *block, const unsigned char *p, size_t size, const char *what)
{
    for (size_t at = 0; at < size; at = next_of(block, at)) {
        uint64_t word = word_of(block, at);
        const unsigned char *wanted = (const unsigned char *)&word;
        size_t length = size - at < WORD ? size - at : WORD;
        for (size_t i = 0; memcmp(p + at, wanted, length) != 0 && i < length; i++) {
            if (p[at + i] != wanted[i])
                reproduced(what, "byte %zu of %zu of block %zu is 0x%02x, and was 0x%02x", at + i,
                           block->size, (size_t)(block - blocks), p[at + i], wanted[i]);
        }
    }
}

static void look_at_zeros(const unsigned char *p, size_t size)
{
    size_t stride = size <= (size_t)64 * MIB ? 1 : size / 1024;
    if (stride == 1 && (size == 0 || (p[0] == 0 && memcmp(p, p + 1, size - 1) == 0)))
        return;
    for (size_t at = 0; at < size; at += stride) {
        if (p[at] != 0)
            reproduced("not zero", "byte %zu of %zu is 0x%02x", at, size, p[at]);
    }
}

static void look_at_all(void)
{
    for (size_t i = 0; i < block_count; i++) {
        if (blocks[i].p != NULL)
            look(&blocks[i], blocks[i].p, blocks[i].size, "changed");
    }
}

/* What is large is not written all over, and so that is asked for. */
static void look_for_overlap(const struct block *block)
{
    for (size_t i = 0; i < block_count; i++) {
        const struct block *other = &blocks[i];
        if (other != block && other->p != NULL && block->p < other->p + other->size &&
            other->p < block->p + block->size)
            reproduced("overlap", "with block %zu", i);
    }
}

/* ---- what has to hold of each call --------------------------------------------------------- */

static void look_around(void)
{
    if (CHECKS_STRUCT && memcmp(handler, &as_loaded, sizeof as_loaded) != 0)
        reproduced("the struct changes", "%s", "");
}

static size_t alignment_for(size_t size)
{
    size_t alignment = alignof(max_align_t);
    while (alignment > 1 && alignment > size)
        alignment /= 2;
    return ALIGNMENT != 0 ? ALIGNMENT : alignment;
}

/* What is said of NULL holds where little was asked for and little is live. */
static void look_at_result(const unsigned char *p, size_t size)
{
    look_around();
    if (p == NULL && size != 0 && size <= MIB && live_bytes + size <= 16 * MIB &&
        live_blocks <= 16384 && !is_limited)
        reproduced("refused", "%zu bytes are live", live_bytes);
    if (p != NULL && size > PTRDIFF_MAX)
        reproduced("not refused", "%p", (const void *)p);
    if (p != NULL && (uintptr_t)p % alignment_for(size) != 0)
        reproduced("misaligned", "%p for %zu bytes, not at a multiple of %zu", (const void *)p,
                   size, alignment_for(size));
}

static void forget(struct block *block)
{
    live_blocks--;
    live_bytes -= block->size;
    block->p = NULL;
}

static void enter(size_t n, unsigned char *p, size_t size)
{
    struct block *block = &blocks[n];
    size_t stride = size <= WHOLE ? WORD : size <= (size_t)64 * MIB ? 512 : size / 32 / WORD * WORD;
    *block = (struct block){.p = p, .size = size, .stride = stride, .salt = salt};
    block_count = n < block_count ? block_count : n + 1;
    if (p == NULL)
        return;
    live_blocks++;
    live_bytes += size;
    if (size > MIB)
        look_for_overlap(block);
    fill(block);
}

/* ---- the calls ----------------------------------------------------------------------------- */

UNUSED void do_malloc(size_t n, size_t size)
{
    begin("malloc", SIZE, size, 0);
    unsigned char *p = handler->allocator.malloc(handler->allocator.ctx, size);
    look_at_result(p, size);
    enter(n, p, size);
}

UNUSED void do_calloc(size_t n, size_t nelem, size_t elsize)
{
    begin("calloc", TWO_SIZES, nelem, elsize);
    unsigned char *p = handler->allocator.calloc(handler->allocator.ctx, nelem, elsize);
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        size = SIZE_MAX;
    look_at_result(p, size);
    if (p != NULL)
        look_at_zeros(p, size);
    enter(n, p, size);
}

UNUSED void do_realloc(size_t n, size_t size)
{
    begin("realloc", BLOCK_AND_SIZE, n, size);
    struct block before = blocks[n];
    if (before.p != NULL)
        look(&blocks[n], before.p, before.size, "changed");
    unsigned char *p = handler->allocator.realloc(handler->allocator.ctx, before.p, size);
    look_at_result(p, size);
    if (p == NULL && size != 0 && before.p != NULL)
        look(&blocks[n], before.p, before.size, "lost by a refusal");
    if (p == NULL && size != 0)
        return;
    if (p != NULL && before.p != NULL)
        look(&blocks[n], p, before.size < size ? before.size : size, "not kept");
    if (before.p != NULL)
        forget(&blocks[n]);
    enter(n, p, size);
}

UNUSED void free_pointer(void *p, size_t size)
{
    enum { BEFORE = 4711 };
    if (CHECKS_ERRNO)
        errno = BEFORE;
    handler->allocator.free(handler->allocator.ctx, p, size);
    if (CHECKS_ERRNO && errno != BEFORE)
        reproduced("errno changes", "from %d to %d", BEFORE, errno);
    look_around();
}

UNUSED void do_free(size_t n, size_t size)
{
    struct block *block = &blocks[n];
    unsigned char *p = block->p;
    if (p == NULL)
        return;
    begin("free", BLOCK_AND_SIZE, n, size);
    look(block, p, block->size, "changed");
    forget(block);
    free_pointer(p, size);
}

UNUSED void do_free_null(size_t size)
{
    begin("free", NULL_AND_SIZE, size, 0);
    free_pointer(NULL, size);
}

/* Fills the block with that word, again and again. */
UNUSED void do_fill(size_t n, uint64_t word)
{
    struct block *block = &blocks[n];
    if (block->p == NULL)
        return;
    block->word = word;
    block->has_word = true;
    fill(block);
}

/* ---- other things that are done ------------------------------------------------------------ */

static size_t pages_of(int member)
{
    size_t pages[2] = {0, 0};
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%zu %zu", &pages[0], &pages[1]) != 2)
        perror("/proc/self/statm");
    if (file != NULL)
        fclose(file);
    return pages[member];
}

/* From now on no more than so many bytes can be mapped; 0: as many as before. */
UNUSED void do_limit(size_t room)
{
    static struct rlimit before;
    if (!is_limited)
        getrlimit(RLIMIT_AS, &before);
    struct rlimit limit = before;
    if (room != 0)
        limit.rlim_cur = pages_of(0) * (size_t)sysconf(_SC_PAGESIZE) + room;
    setrlimit(RLIMIT_AS, &limit);
    is_limited = room != 0;
}

UNUSED void do_pause(size_t milliseconds)
{
    nanosleep(
        &(struct timespec){(time_t)(milliseconds / 1000), (long)(milliseconds % 1000) * 1000000},
        NULL);
}

/* Writes over what was inherited, in a new process. */
static void begin_process(void)
{
    bound_process();
    process_count = PROCESSES;
    salt = (uint64_t)getpid() << 32;
    for (size_t i = 0; i < block_count; i++) {
        blocks[i].salt = salt;
        if (blocks[i].p != NULL)
            fill(&blocks[i]);
    }
    if (other_process >= 0)
        wait_for_turn();
}

/* From here on two processes do what is left, and what the new one shows is shown: so many calls in
 * turn, or at once where that is 0. */
UNUSED void do_fork(size_t in_turn)
{
    int pair[2] = {-1, -1};
    if (other_process >= 0)
        close(other_process);
    if (in_turn > 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        perror("socketpair");
    pid_t pid = process_count < PROCESSES ? fork() : -1;
    other_process = pair[pid == 0];
    close(pair[pid != 0]);
    calls_in_turn = calls_left = in_turn;
    if (pid == 0)
        begin_process();
    if (pid > 0)
        processes[process_count++] = pid;
}

static void wait_for_processes(void)
{
    int status;
    for (int i = 0; i < PROCESSES && processes[i] > 0; i++) {
        if (waitpid(processes[i], &status, 0) > 0 && status != 0)
            _exit(1); /* it has said why */
    }
}

UNUSED void do_ask_getter(void)
{
    const char *why = NULL;
    begin("the getter", WITHOUT_NUMBERS, 0, 0);
    if (getter != NULL && getter(&why) != handler)
        reproduced("another handler", "%s", "");
    look_around();
}

static bool is_utf8(const unsigned char *p)
{
    while (*p != '\0') {
        int more = *p < 0x80 ? 0 : *p >= 0xc2 && *p < 0xe0 ? 1 : *p >= 0xe0 && *p < 0xf0 ? 2 : 3;
        if (*p >= 0xf5 || (*p >= 0x80 && *p < 0xc2) || (*p == 0xe0 && p[1] < 0xa0) ||
            (*p == 0xed && p[1] >= 0xa0) || (*p == 0xf0 && p[1] < 0x90) ||
            (*p == 0xf4 && p[1] >= 0x90))
            return false;
        for (p++; more > 0; more--, p++) {
            if ((*p & 0xc0) != 0x80)
                return false;
        }
    }
    return true;
}

UNUSED void do_look_at_name(void)
{
    begin("the struct", WITHOUT_NUMBERS, 0, 0);
    if (memchr(handler->name, '\0', sizeof handler->name) == NULL)
        reproduced("the name has no end", "%s", "");
    if (!is_utf8((const unsigned char *)handler->name))
        reproduced("the name is not UTF-8", "%s", "");
}

UNUSED void do_look_at_version(void)
{
    begin("the struct", WITHOUT_NUMBERS, 0, 0);
    if (handler->version != 1)
        reproduced("the version is not 1", "%d", handler->version);
}

UNUSED void do_look_at_functions(void)
{
    const PyDataMemAllocator *a = &handler->allocator;
    begin("the struct", WITHOUT_NUMBERS, 0, 0);
    if (a->malloc == NULL || a->calloc == NULL || a->realloc == NULL || a->free == NULL)
        reproduced("a function is missing", "%s", "");
}

/* Calls on a thread of their own, which then ends. */
UNUSED void in_thread(void *(*calls)(void *))
{
    pthread_t thread;
    void *returned;
    if (pthread_create(&thread, NULL, calls, now) != 0 || pthread_join(thread, &returned) != 0) {
        fputs("there is no thread to be had\n", stderr);
        now->is_told = true;
        _exit(2);
    }
    if (returned != now)
        reproduced("the thread ends", "%s", "");
}

static size_t growth_over(size_t rounds, void (*calls)(void))
{
    size_t before = pages_of(1);
    while (rounds-- > 0)
        calls();
    size_t after = pages_of(1);
    return after > before ? (after - before) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The calls, which free what they make, again and again: twice as often each time, until they have
 * taken much memory for good and as much as ever in the end, or for long enough. */
UNUSED void repeat(void (*calls)(void))
{
    const size_t much = (size_t)16 * MIB;
    double begun = seconds_now(), taken = 0;
    size_t grown = 0, rounds = 1;
    calls();
    while (taken < SECONDS / 2.0 && (grown > MIB || taken < SECONDS / 16.0)) {
        size_t more = growth_over(rounds, calls);
        if (grown + more > much && more >= grown / 4)
            reproduced("memory grows", "%zu KiB in %zu rounds, %zu of it in the second half",
                       (grown + more) >> 10, 2 * rounds, more >> 10);
        grown += more;
        rounds *= 2;
        taken = seconds_now() - begun;
    }
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* Finds the handler in the object, under the name or as nep49.h has it.  2 where there is none. */
static int load(const char *path, const char *entry, bool is_getter)
{
    const char *why = "has no handler of that name";
    const char *const names[] = {entry, "nep49_handler", "nep49_get_handler"};
    dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL); /* which any Python has loaded */
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol = NULL;
    if (object == NULL)
        why = dlerror();
    for (int i = 0; object != NULL && symbol == NULL && i < 3; i++) {
        symbol = dlsym(object, names[i]);
        is_getter = i == 0 ? is_getter : i == 2;
    }
    handler = symbol;
    if (symbol != NULL && is_getter) {
        memcpy(&getter, &symbol, sizeof getter);
        handler = getter(&why);
    }
    if (handler == NULL) {
        fprintf(stderr, "%s: %s\n", path, why);
        return 2;
    }
    as_loaded = *handler;
    return 0;
}

/* Leaves bytes in libc's heap, as any program has done before its first array: what comes from
 * there is not zero by chance. */
static void use_memory(void)
{
    enum { EACH = 20, LARGEST = 70000 };
    void *p[EACH];
    for (size_t size = 24; size < LARGEST; size += size / 8 / 16 * 16 + 16) {
        for (int i = 0; i < EACH; i++) {
            if ((p[i] = malloc(size)) != NULL)
                memset(p[i], 0xa5, size);
        }
        void *volatile stays = malloc(size); /* so that not all of it goes back to the kernel */
        (void)stays;
        for (int i = 0; i < EACH; i++)
            free(p[i]);
    }
}

static int judge(void (*calls)(void))
{
    use_memory();
    catch_signals();
    bound_process();
    calls();
    nanosleep(&(struct timespec){0, MILLISECONDS * 1000000}, NULL);
    end_turn();
    look_at_all();
    if (other_process >= 0)
        close(other_process);
    wait_for_processes();
    fflush(stdout);
    now->is_told = true;
    _exit(0);
}
