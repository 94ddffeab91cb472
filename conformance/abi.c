/* SPDX-License-Identifier: BSD-3-Clause
 *
 * abi: what is handed over when a handler is loaded.
 */
#include "harness/harness.h"
#include "harness/proc_count.h"
#include "harness/process_state.h"
#include "python/api.h"
#include "python/python.h"
#include "subject/subject.h"

GROUP(abi, 1, "The struct, its name and version, and the object that exports it.",
      .rank = {RANK_BY_ITSELF, RANK_AT_LENGTH, 1});

/* What NumPy reads before each call. */
static void expect_struct_there(const char *when)
{
    const PyDataMem_Handler *handler = subject_handler();
    if (is_readable(handler, sizeof *handler))
        return;
    attribute_to("abi.struct-stays", NULL);
    fail(fmt("the struct at %p to stay in memory, %s", (const void *)handler, when),
         "an address that cannot be read");
}

PROPERTY(abi_loads,
    .id     = "abi.loads", .level = MUST, .basis = BASIS_NEP, .ends_process = true, .first = true,
    .quick = true,
    .title  = "the object loads and makes one block",
    .clause = "Loading the object yields a handler that can allocate one block and free it.",
    .source = "NEP 49, PyDataMem_SetHandler; nep49.h",
    .why    = "No other property can be tested if this fails.",
    .hint   = "Run it under a debugger: a constructor, nep49_get_handler or a first call crashes.",
    .looks  = "CRASH: SIGSEGV, while loading libmine.so")
{
    PyDataMem_Handler *handler = subject_handler();
    if (handler->allocator.malloc == NULL || handler->allocator.free == NULL)
        return; /* abi.functions-present says it */
    void *p = subject_malloc(64);
    expect(p != NULL, "malloc(64) to return a block: nothing else is live", "NULL");
    expect_struct_there("after malloc(64)");
    memset(p, 0x5a, 64);
    subject_free(p, 64);
    expect_struct_there("after the first free");
}

/* ---- the name -------------------------------------------------------------------------------- */

/* How long the name is, without a NUL. */
static size_t name_length(void)
{
    return strnlen(subject_handler()->name, sizeof subject_handler()->name);
}

static const char *name_to_show(void)
{
    static char clean[4 * sizeof((PyDataMem_Handler *)0)->name + 1];
    return sanitize(clean, sizeof clean, subject_handler()->name, name_length(), 0);
}

/* The name as NumPy decodes it, or NULL with an exception set. */
static PyObject *decoded_name(void)
{
    return PyUnicode_DecodeUTF8(subject_handler()->name, (Py_ssize_t)name_length(), "strict");
}

PROPERTY(abi_name_terminated,
    .id     = "abi.name-terminated", .level = MUST, .basis = BASIS_NEP,
    .rule = HEAP_NAME_TERMINATED, .quick = true,
    .title  = "the name ends in a NUL",
    .clause = "The name ends in a NUL within its 127 bytes.",
    .source = "NEP 49, PyDataMem_Handler: char name[127]; alloc.c get_handler_name, 1.22 and later",
    .why    = "NumPy reads past the name, into the version and the function pointers.",
    .wrong  = "strncpy(handler.name, label, sizeof handler.name);",
    .right  = "snprintf(handler.name, sizeof handler.name, \"%s\", label);",
    .hint   = "Keep the name to 126 bytes. strncpy writes no NUL if it truncates; use snprintf.",
    .looks  = "expected a NUL among the 127 bytes of the name; seen none, in "
              "xxxxxxxxxxxxxxxxxxxxxxxx")
{
    expect(name_length() < sizeof subject_handler()->name, "a NUL among the 127 bytes of the name",
           "none, in %s", name_to_show());
}

PROPERTY(abi_name_utf8,
    .id     = "abi.name-utf8", .level = MUST, .basis = BASIS_CALLER, .rule = HEAP_NAME_UTF8,
    .title  = "the name is UTF-8",
    .clause = "The name is valid UTF-8.",
    .source = "NumPy alloc.c get_handler_name: PyUnicode_FromString, 1.22 and later",
    .why    = "numpy.core.multiarray.get_handler_name raises UnicodeDecodeError.",
    .hint   = "Use ASCII. If you truncate a longer name, truncate between two characters.",
    .looks  = "expected the name to be UTF-8; seen UnicodeDecodeError: 'utf-8' codec can't decode "
              "byte 0xe9")
{
    PyObject *name = decoded_name();
    if (name == NULL)
        fail("the name to be UTF-8", "%s, in %s", python_error(), name_to_show());
    Py_DECREF(name);
}

static bool python_says(PyObject *object, const char *method)
{
    PyObject *answer = PyObject_CallMethod(object, method, NULL);
    int truth = answer != NULL ? PyObject_IsTrue(answer) : -1;
    if (truth < 0)
        harness_broke("str.%s: %s", method, python_error());
    Py_DECREF(answer);
    return truth == 1;
}

PROPERTY(abi_name_says_something,
    .id     = "abi.name-says-something", .level = SHOULD, .basis = BASIS_QOI,
    .title  = "the name identifies the handler",
    .clause = "The name is not empty, is printable, and differs from the name of NumPy's own "
              "handler.",
    .source = "good practice; NumPy's own is default_allocator, alloc.c, 1.22 and later",
    .why    = "Users find out with get_handler_name which handler owns an array's memory.",
    .hint   = "Set the name to the name of the library that provides the handler.",
    .looks  = "expected a name other than that of NumPy's own handler; seen default_allocator")
{
    PyObject *name = decoded_name();
    if (name == NULL) {
        PyErr_Clear();
        skip("the name is not UTF-8, which abi.name-utf8 says");
    }
    expect(python_says(name, "strip"), "a name that is not blank", "%zu bytes: '%s'", name_length(),
           name_to_show());
    expect(python_says(name, "isprintable"), "a name of printable characters", "'%s'",
           name_to_show());
    expect(PyUnicode_CompareWithASCIIString(name, "default_allocator") != 0,
           "a name other than that of NumPy's own handler", "%s", name_to_show());
    Py_DECREF(name);
}

/* ---- the rest of the struct ------------------------------------------------------------------ */

PROPERTY(abi_version,
    .id     = "abi.version", .level = MUST, .basis = BASIS_NEP, .rule = HEAP_VERSION, .quick = true,
    .title  = "the version is 1",
    .clause = "The version field is 1.",
    .source = "NEP 49, PyDataMem_Handler; ndarraytypes.h, 1.22 and later",
    .why    = "The version tells NumPy which layout the struct has; another number means another "
              "layout.",
    .hint   = "Set .version = 1. It is the version of the struct, not of your library.",
    .looks  = "expected version 1; seen 0")
{
    expect(subject_handler()->version == 1, "version 1", "%d", subject_handler()->version);
}

PROPERTY(abi_functions_present,
    .id     = "abi.functions-present", .level = MUST, .basis = BASIS_NEP,
    .rule = HEAP_FUNCTIONS_PRESENT, .answers_for = ABOUT(MISSING_FUNCTION), .quick = true,
    .title  = "all four functions are present",
    .clause = "None of malloc, calloc, realloc and free is a null pointer.",
    .source = "NEP 49, PyDataMemAllocator; alloc.c calls them without a check, 1.22 and later",
    .why    = "NumPy calls address 0, perhaps not before the first resize.",
    .hint   = "Write all four functions. realloc can be malloc, memcpy of min(old, new) bytes, and "
              "free.",
    .looks  = "expected a function for realloc; seen NULL")
{
    const PyDataMemAllocator *a = &subject_handler()->allocator;
    expect(a->malloc != NULL, "a function for malloc", "NULL");
    expect(a->calloc != NULL, "a function for calloc", "NULL");
    expect(a->realloc != NULL, "a function for realloc", "NULL");
    expect(a->free != NULL, "a function for free", "NULL");
}

/* ---- that it stays as it is ------------------------------------------------------------------ */

/* Fails where the struct is not what it was. */
static void expect_same_struct(const PyDataMem_Handler *was, const char *after)
{
    const PyDataMem_Handler *is = subject_handler();
    const PyDataMemAllocator *a = &was->allocator, *b = &is->allocator;
    const struct {
        const char *name;
        uintptr_t was, is;
    } members[] = {
        {"version", was->version, is->version},
        {"ctx", (uintptr_t)a->ctx, (uintptr_t)b->ctx},
        {"malloc", (uintptr_t)a->malloc, (uintptr_t)b->malloc},
        {"calloc", (uintptr_t)a->calloc, (uintptr_t)b->calloc},
        {"realloc", (uintptr_t)a->realloc, (uintptr_t)b->realloc},
        {"free", (uintptr_t)a->free, (uintptr_t)b->free},
    };
    for (size_t i = 0; i < LENGTH(members); i++)
        expect(members[i].is == members[i].was,
               fmt("%s in the struct to stay %#zx, %s", members[i].name, members[i].was, after),
               "%#zx", members[i].is);
    expect(memcmp(was->name, is->name, sizeof was->name) == 0,
           fmt("the name in the struct to stay the same, %s", after), "%s", name_to_show());
}

struct exercise {
    PyDataMem_Handler was;
    struct random random;
};

enum { RING = 16 };

/* One call of one of the four, on one place of the ring. */
static void exercise_once(struct random *random, struct block *place)
{
    size_t size = 1 + random_below(random, random_below(random, 16) == 0 ? 100000 : 500);
    unsigned char *p = NULL;
    if (place->p != NULL && random_below(random, 2) == 0)
        p = subject_realloc(place->p, size);
    else if (place->p != NULL)
        subject_free(place->p, place->size);
    else
        p = random_below(random, 2) == 0 ? subject_malloc(size) : subject_calloc(size, 1);
    *place = (struct block){p, p != NULL ? size : 0, 0};
}

/* All four, calls that fail among them; the struct is looked at after each. */
static void exercise(void *data)
{
    struct exercise *e = data;
    struct block ring[RING] = {0};
    for (int i = 0; i < (is_instrumented() ? 200 : 3000); i++) {
        exercise_once(&e->random, &ring[random_below(&e->random, RING)]);
        expect_same_struct(&e->was, "after a call");
        if (i % 50 != 0)
            continue;
        absurd_begin();
        if (i % 100 == 0)
            (void)subject_malloc(SIZE_MAX - 8);
        else
            (void)subject_calloc(SIZE_MAX / 2, 3);
        absurd_end();
        expect_same_struct(&e->was, "after a call that failed");
    }
    for (int i = 0; i < RING; i++) {
        if (ring[i].p != NULL)
            subject_free(ring[i].p, ring[i].size);
    }
}

/* Not touched. */
static void hold_huge(const PyDataMem_Handler *was)
{
    enum { COUNT = 4 };
    const size_t size = (size_t)300 << 20;
    void *blocks[COUNT];
    size_t count = 0;
    while (count < COUNT && (blocks[count] = subject_malloc(size)) != NULL)
        expect_same_struct(was, fmt("with %zu blocks of %zu bytes live", ++count, size));
    while (count > 0)
        subject_free(blocks[--count], size);
}

static void exercise_many(const PyDataMem_Handler *was)
{
    enum { LARGE = 60000, TIMES = 2500 };
    struct blocks blocks = {0};
    while (blocks.count < 1500)
        blocks_add(&blocks, must_malloc(40), 40);
    expect_same_struct(was, "with 1500 blocks live");
    blocks_free_all(&blocks);
    expect_same_struct(was, "after 1500 blocks were freed");
    if (!is_instrumented() && !subject_fills_blocks())
        hold_huge(was);
    size_t times = subject_malloc_and_free(LARGE, is_instrumented() ? 10 : TIMES);
    expect_same_struct(was, fmt("after %zu MiB were handed out", times * LARGE >> 20));
}

/* Calls of all four, before each of which the struct is looked for. */
static void call_while_there(void *data)
{
    struct block ring[RING] = {0};
    for (int i = 0; i < (is_instrumented() ? 30 : 100); i++) {
        expect_struct_there("after calls");
        exercise_once(data, &ring[random_below(data, RING)]);
    }
    for (int i = 0; i < RING; i++) {
        expect_struct_there("while blocks are freed");
        if (ring[i].p != NULL)
            subject_free(ring[i].p, ring[i].size);
    }
    expect_struct_there("after the last block was freed");
}

PROPERTY(abi_struct_stays,
    .id     = "abi.struct-stays", .level = MUST, .basis = BASIS_NEP,
    .answers_for = ABOUT(STRUCT_GONE),
    .title  = "the struct stays in memory",
    .clause = "The PyDataMem_Handler struct stays in memory as long as the process runs.",
    .tests  = "The struct is read after calls, without live blocks, after a thread ended, and "
              "after a second call of the getter.",
    .source = "NEP 49, PyDataMem_Handler thread safety and lifetime; alloc.c, 1.22 to 2.5",
    .why    = "The next array calls through an unmapped address, and the crash names an unrelated "
              "function.",
    .wrong  = "PyDataMem_Handler *h = malloc(sizeof *h); /* freed with the last block */",
    .right  = "static PyDataMem_Handler handler = {\"mine\", 1, {NULL, mine_malloc, ...}};",
    .hint   = "Make the struct static, or never free it: NumPy does not report that the last array "
              "is gone.",
    .looks  = "expected the struct at 0x7f12a0 to stay in memory, after calls; seen an address "
              "that cannot be read")
{
    struct random random = {random_next(rng())};
    call_while_there(&random);
    in_threads(1, call_while_there, &random, sizeof random);
    expect_struct_there("after a thread that used it has ended");
    if (subject()->getter != NULL) {
        const char *why = NULL;
        subject()->getter(&why);
        expect_struct_there("after the getter was asked again");
    }
    call_while_there(&random);
}

static void look_in_child(void *was)
{
    expect_same_struct(was, "in a forked child");
}

PROPERTY(abi_struct_constant,
    .id     = "abi.struct-constant", .level = MUST, .basis = BASIS_NEP,
    .rule = HEAP_STRUCT_CONSTANT, .answers_for = ABOUT(STRUCT_CHANGED),
    .title  = "the struct never changes",
    .clause = "The contents of the PyDataMem_Handler struct never change once the handler is "
              "loaded.",
    .tests  = "The struct is compared during and after calls, failed calls included, in threads, "
              "after the getter, and in a forked child.",
    .source = "NEP 49, PyDataMem_Handler: each array keeps the capsule and reads the struct",
    .why    = "One pair of function and ctx allocates an array, and another pair frees it.",
    .hint   = "Set all fields before you return the struct. Keep what changes behind ctx.",
    .looks  = "expected ctx in the struct to stay 0x55d0c8, after a call that failed; seen 0")
{
    PyDataMem_Handler was = *subject_handler();
    const char *why = NULL;
    if (subject()->getter != NULL) {
        subject()->getter(&why);
        expect_same_struct(&was, "after the getter was asked again");
    }
    struct exercise here = {was, {random_next(rng())}}, there = {was, {random_next(rng())}};
    exercise(&here);
    exercise_many(&was);
    in_threads(1, exercise, &there, sizeof there);
    expect_same_struct(&was, "at the end");
    in_child(look_in_child, &was);
}

static void ask_again(const char *when)
{
    const char *why = "no reason given";
    PyDataMem_Handler *again = subject()->getter(&why);
    expect(again == subject_handler(),
           fmt("the getter to return %p again, %s", (void *)subject_handler(), when), "%s",
           again != NULL ? fmt("%p", (void *)again) : fmt("NULL (%s)", escape(why)));
}

static void ask_there(void *unused)
{
    (void)unused;
    ask_again("on another thread");
}

PROPERTY(abi_getter_stable,
    .id     = "abi.getter-stable", .level = MUST, .basis = BASIS_NEP, .rule = HEAP_GETTER_STABLE,
    .quick = true,
    .title  = "the getter returns the same handler",
    .clause = "nep49_get_handler returns the same handler on every call.",
    .source = "nep49.h, as NEP 49 has one capsule of one struct for a handler",
    .why    = "Two threads that install it get two handlers, and arrays can outlive one of them.",
    .hint   = "Create the handler once, keep it in a static variable, and return that variable.",
    .looks  = "expected the getter to return 0x55d0c8 again, at once; seen 0x55d1f0")
{
    if (subject()->getter == NULL)
        skip("it exports the struct itself, and no getter");
    ask_again("at once");
    void *p = must_malloc(100);
    ask_again("with a block live");
    subject_free(p, 100);
    ask_again("after a block was freed");
    in_threads(1, ask_there, NULL, 0);
    ask_again("after another thread asked");
}

PROPERTY(abi_claims_known,
    .id     = "abi.claims-known", .level = MUST, .basis = BASIS_CLAIM, .quick = true,
    .title  = "every claim is known and consistent",
    .clause = "This suite knows every word of nep49_claims, and no two claims contradict each "
              "other.",
    .source = "nep49.h, the table of claims",
    .why    = "A claim that is not tested looks like a promise that was verified.",
    .hint   = "Spell claims as nep49.h does. Leave out claims for which the suite has no property.",
    .looks  = "expected claims that are known; seen wait-free: not a claim that this version of "
              "the suite knows")
{
    struct claims claims;
    const char *wrong = claims_parse(subject()->claims, &claims);
    expect(wrong == NULL, "claims that are known, see nep49.h", "%s", wrong);
}

/* ---- two of them in one process -------------------------------------------------------------- */

/* One of the two instances and the blocks that it made. */
struct side {
    PyDataMem_Handler *handler;
    struct blocks blocks;
    struct random random;
};

static void expect_kept_alone(const struct side *side)
{
    for (size_t i = 0; i < side->blocks.count; i++) {
        const struct block *b = &side->blocks.at[i];
        if (pattern_mismatch(b->p, b->size, b->number) != b->size)
            fail("one instance to keep the contents of its blocks", "byte %zu of %zu has changed",
                 pattern_mismatch(b->p, b->size, b->number), b->size);
    }
}

static void side_drop(struct side *side, size_t place)
{
    struct block gone = side->blocks.at[place];
    side->blocks.at[place] = side->blocks.at[--side->blocks.count];
    handler_free(side->handler, gone.p, gone.size);
}

static void side_resize(struct side *side, size_t place, size_t size)
{
    struct block *b = &side->blocks.at[place];
    unsigned char *p = handler_realloc(side->handler, b->p, size);
    if (p == NULL)
        return; /* and the old block is as it was */
    *b = (struct block){p, size, b->number};
    pattern_fill(p, size, b->number);
}

/* Makes, resizes or frees one block. */
static void side_step(struct side *side)
{
    size_t size = 8 + random_below(&side->random, random_below(&side->random, 8) == 0 ? 5000 : 300);
    size_t count = side->blocks.count, what = random_below(&side->random, 8);
    if (count > 0 && (count > 200 || what < 3)) {
        side_drop(side, random_below(&side->random, count));
    } else if (count > 0 && what == 3) {
        side_resize(side, random_below(&side->random, count), size);
    } else {
        void *p = what % 2 == 0 ? handler_malloc(side->handler, size)
                                : handler_calloc(side->handler, size, 1);
        expect(p != NULL, fmt("%zu bytes: little else is live", size), "NULL");
        blocks_add(&side->blocks, p, size);
    }
}

static void expect_apart(const struct side sides[2], const char *when)
{
    struct blocks both = {0};
    both.count = sides[0].blocks.count + sides[1].blocks.count;
    both.at = malloc((both.count + 1) * sizeof *both.at);
    if (both.at == NULL)
        harness_broke("out of memory for the list of blocks");
    for (size_t i = 0; i < both.count; i++)
        both.at[i] = i < sides[0].blocks.count ? sides[0].blocks.at[i]
                                               : sides[1].blocks.at[i - sides[0].blocks.count];
    blocks_expect_disjoint(&both);
    blocks_verify(&both, "%s", when);
    free(both.at);
}

static void side_run(void *data)
{
    for (int i = 0; i < (is_instrumented() ? 200 : 3000); i++)
        side_step(data);
}

/* What follows, with one instance. */
static void use_alone(void *data)
{
    struct side *side = data;
    for (int i = 0; i < (is_instrumented() ? 200 : 2000); i++)
        side_step(side);
    in_threads(1, side_run, side, sizeof *side);
    blocks_expect_disjoint(&side->blocks);
    blocks_verify(&side->blocks, "after one instance was used");
    while (side->blocks.count > 0)
        side_drop(side, side->blocks.count - 1);
}

static void load_twin(void *data)
{
    struct subject twin;
    char why[512];
    (void)data;
    subject_load_twin(subject_place(), &twin, why, sizeof why);
}

PROPERTY(abi_ctx_passed,
    .id     = "abi.ctx-passed", .level = MUST, .basis = BASIS_NEP,
    .rank = {RANK_AT_LENGTH, RANK_AT_LENGTH, 0}, .ends_process = true,
    .title  = "the functions use the ctx they receive",
    .clause = "The functions work on the ctx that they receive, so two copies of the object in one "
              "process never mix.",
    .source = "NEP 49, PyDataMemAllocator: ctx is passed to each of the four",
    .why    = "Two libraries can contain the same handler; NumPy passes each block the ctx of its "
              "own copy.",
    .hint   = "Keep all state behind ctx or in static variables, not under a name that other "
              "objects share.",
    .looks  = "CRASH: SIGABRT, inside free(0x55d0c8, 100)")
{
    struct subject twin;
    char why[512] = "";
    struct side sides[2] = {{.handler = subject_handler(), .random = {random_next(rng())}},
                            {.random = {random_next(rng())}}};
    control_run(use_alone, &sides[0], "with one instance alone");
    control_begin("with one instance alone");
    for (int i = 0; i < 2000; i++) {
        side_step(&sides[0]);
        if (i % 100 == 99)
            expect_kept_alone(&sides[0]);
    }
    control_end();
    if (!child_survives(load_twin, NULL))
        skip("a second copy of it cannot be loaded: that ends the process");
    step("loading a second copy of %s", subject_place()->label);
    if (subject_load_twin(subject_place(), &twin, why, sizeof why) != LOAD_DONE)
        skip("a second copy of it cannot be loaded: %s", why);
    if (twin.handler == subject_handler())
        skip("a second copy of it hands out the handler of the first");
    step("using two instances");
    sides[1].handler = twin.handler;
    expect_apart(sides, "after a second instance was loaded");
    for (int i = 0; i < (is_instrumented() ? 200 : 2000); i++)
        side_step(&sides[random_below(rng(), 2)]);
    expect_apart(sides, "after two instances were used in turn");
    for (int i = 0; i < 2; i++)
        in_threads(1, side_run, &sides[i], sizeof sides[i]);
    expect_apart(sides, "after two instances were used on a thread each");
    for (int i = 0; i < 2; i++) {
        while (sides[i].blocks.count > 0)
            side_drop(&sides[i], sides[i].blocks.count - 1);
        free(sides[i].blocks.at);
    }
}

/* ---- what loading leaves alone --------------------------------------------------------------- */

static const char loading[] = "after loading";

PROPERTY(abi_loads_quietly,
    .id     = "abi.loads-quietly", .level = SHOULD, .basis = BASIS_QOI, .quick = true,
    .fixture = FIXTURE_UNLOADED,
    .title  = "loading prints and changes nothing",
    .clause = "Loading the object prints nothing and leaves the settings of the process alone.",
    .tests  = "The settings are signal dispositions, signal mask, locale, umask, limits and "
              "working directory.",
    .source = "good practice; Python's own handling rests on the signals",
    .why    = "A program that imports a library expects its own process settings to stay.",
    .hint   = "Do not change these settings, neither at load nor later.",
    .looks  = "expected the disposition of SIGSEGV to stay the default action, after loading; seen "
              "0x7f12a0")
{
    python_subject_prepare(subject_place());
    struct state *before = state_note(STATE_SIGNALS | STATE_AT_LOAD);
    load_subject();
    state_expect_same(before, loading);
    size_t printed = output_so_far(); /* last: it SKIPs with --no-fork */
    expect(printed == 0, "nothing to be printed", "%zu bytes", printed);
}

PROPERTY(abi_loads_same_arithmetic,
    .id     = "abi.loads-same-arithmetic", .level = MUST, .basis = BASIS_CALLER,
    .fixture = FIXTURE_UNLOADED,
    .title  = "loading keeps floating-point modes",
    .clause = "Loading the object keeps the rounding mode, precision, traps and the treatment of "
              "subnormal numbers.",
    .source = "NumPy 1.22 to 2.5: the loops of umath compute in the mode that they find; C17 7.6",
    .why    = "NumPy's results change in the whole process: subnormal numbers become 0, and sums "
              "differ.",
    .hint   = "Link without -ffast-math and -Ofast, which change the mode at load (GCC before 13).",
    .looks  = "expected subnormal numbers to stay results, operands, after loading; seen results "
              "flushed to 0")
{
    struct state *before = state_note(STATE_ARITHMETIC);
    load_subject();
    state_expect_same(before, loading);
}

PROPERTY(abi_loads_alone,
    .id     = "abi.loads-alone", .level = SHOULD, .basis = BASIS_QOI, .fixture = FIXTURE_UNLOADED,
    .title  = "loading starts no thread or process",
    .clause = "Loading the object and its handler starts no thread and leaves no process.",
    .source = "good practice",
    .why    = "A later fork loses the thread, and wait() in the program returns a child that it "
              "did not start.",
    .hint   = "Start a thread with the first block, and again in a forked child (pthread_atfork).",
    .looks  = "expected as many threads as before, after loading; seen 2 more")
{
    adopt_orphans();
    size_t threads = count_threads();
    load_subject();
    size_t now = count_threads();
    expect(now <= threads, "as many threads as before, after loading", "%zu more", now - threads);
    expect(!has_child(), "no child process, after loading", "a child process");
}
