/* SPDX-License-Identifier: BSD-3-Clause
 *
 * numpy: real arrays on the handler.
 */
#include <stdio.h>

#include "harness/harness.h"
#include "harness/python_module.h"
#include "python/api.h"
#include "python/python.h"
#include "shims/recorder.h"

GROUP(numpy, 10, "Real arrays on the handler, through NumPy.",
      .rank = {RANK_IN_USE, RANK_AT_LENGTH, 40});

PROPERTY(numpy_installs,
    .id     = "numpy.installs",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_HANDLER,
    .clause = "SetHandler puts the handler in force and returns the one before it, NULL brings "
              "back NumPy's own, and nothing else changes what is in force",
    .source = "NEP 49, NumPy C-API functions: PyDataMem_SetHandler, PyDataMem_GetHandler",
    .why    = "whoever installs a handler for a while puts the old one back, and takes for granted "
              "that it stays",
    .hint   = "leave PyDataMem_SetHandler to the program: do not install or remove the handler "
              "from inside its own functions",
    .looks  = "default_allocator to be in force after an array of the old handler was freed: "
              "mine is",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy", "installs");
}

PROPERTY(numpy_name,
    .id     = "numpy.name",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_HANDLER,
    .clause = "get_handler_name gives the handler's name, at any time: of what is in force, of "
              "an array and of a view's base; of a view it gives None",
    .source = "NEP 49, High level design; alloc.c get_handler_name, 1.22 to 2.5",
    .why    = "the name is how a program finds out who made an array",
    .hint   = "fill the name in once, in UTF-8 and with its NUL, and leave it",
    .looks  = "the name in force after 120 arrays to be 'mine': 'mine (busy)'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy", "name");
}

PROPERTY(numpy_version,
    .id     = "numpy.version",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_HANDLER,
    .clause = "get_handler_version gives 1, at any time: of what is in force, of an array and of "
              "a view's base; of a view it gives None",
    .source = "NEP 49, High level design; alloc.c get_handler_version, 1.22 to 2.5",
    .why    = "a later NumPy will go by it to know which functions the struct has",
    .hint   = "set the version to 1, and leave it",
    .looks  = "the version in force after 120 arrays to be 1: 2",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy", "version");
}

PROPERTY(numpy_array_keeps_its_handler,
    .id     = "numpy.array-keeps-its-handler",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_HANDLER,
    .clause = "an array is resized and freed by the handler that made it, and keeps its contents, "
              "whatever is in force by then",
    .source = "NEP 49, High level design; shape.c PyArray_Resize, methods.c array_setstate, "
              "arrayobject.c array_dealloc, 1.22 to 2.5",
    .why    = "arrays outlive the block of code that their handler was installed for",
    .hint   = "free and resize by what the block itself tells, or the ctx; never by what is in "
              "force",
    .looks  = "first to be given its own blocks alone: free(0x55d0c0a8, 80) of a block of second's",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy", "array_keeps_its_handler");
}

PROPERTY(numpy_dtypes,
    .id     = "numpy.dtypes",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "arrays of every built-in dtype are aligned for it and hold what is written, and "
              "those of objects begin as NULL pointers and keep their objects through a garbage "
              "collection",
    .source = "ctors.c PyArray_NewFromDescr_int, which sets NPY_ARRAY_ALIGNED by the dtype's "
              "alignment; NPY_NEEDS_INIT, 1.22 to 2.5",
    .why    = "code for long double and complex loads 16 bytes at a time; a pointer that is not "
              "NULL is taken for an object and released",
    .hint   = "align every block of 16 bytes or more to 16, and zero all that calloc gives",
    .looks  = "the array of 3 complex256 to be aligned to 16: 0x55d0c0a8b2a8",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy", "dtypes");
}

PROPERTY(numpy_tracemalloc,
    .id     = "numpy.tracemalloc",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_HANDLER,
    .clause = "in NumPy's domain tracemalloc shows each block with the size that was asked for, "
              "and no more after the free",
    .source = "NumPy's page on tracemalloc; alloc.c PyDataMem_UserNEW and its kin, "
              "NPY_TRACE_DOMAIN, 1.22 to 2.5",
    .why    = "it is how users look for the memory that their arrays hold",
    .hint   = "leave the domain 389047 to NumPy: a handler that tracks what it takes does so in "
              "another",
    .looks  = "the traces of np.empty(1000) to be [1000]: [1000, 1064]",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy", "tracing");
}

/* ---- the end of a program ----------------------------------------------------------------- */

/* The blocks that the interpreter did not free hold what was written: the pattern of their size. */
static void expect_untouched(struct recorder *recorder)
{
    size_t count;
    struct live_block *live = recorder_live(recorder, &count);
    if (live == NULL)
        harness_broke("no memory for the list of live blocks");
    for (size_t i = 0; i < count; i++)
        expect_pattern((void *)live[i].address, live[i].size, live[i].size,
                       "in a block that is live after the interpreter's end");
    free(live);
}

/* A block of which a library of the program reads what it was lent, as libc does with a buffer of
 * setvbuf's: after the functions of atexit() and the destructors. */
static struct block lent;

static ssize_t look_at_lent(void *unused, const char *buffer, size_t size)
{
    (void)unused, (void)buffer;
    step("exit() looks at a block of %zu bytes that is live", lent.size);
    expect_samples(lent.p, lent.size, lent.number, "when exit() writes out what is buffered");
    return (ssize_t)size;
}

static void lend_large(void)
{
    size_t size = MIN((size_t)40 << 20, largest_to_try());
    FILE *file = fopencookie(NULL, "w", (cookie_io_functions_t){.write = look_at_lent});
    void *p = file != NULL ? subject_malloc(size) : NULL;
    if (p == NULL)
        return;
    lent = (struct block){p, size, 1};
    sample_fill(p, size, lent.number);
    fputc('x', file); /* and it is never closed */
}

static void run_program(void *unused)
{
    (void)unused;
    if (subject_place()->module == NULL)
        subject_load_now(); /* a program that embeds Python may have its handler before it */
    start_python_now();
    subject_load_now();
    struct recorder *recorder = recorder_create(subject_traced(), NULL);
    install_handler(recorder != NULL ? recorder_handler(recorder) : NULL);
    python_call("numpy", "leave_arrays");
    size_t live = recorder_counts(recorder).live_blocks;
    step("the interpreter ends with %zu arrays alive", live);
    Py_FinalizeEx();
    struct recorder_counts counts = recorder_counts(recorder);
    if (counts.notes[NOTE_FOREIGN_FREE] + counts.notes[NOTE_FOREIGN_REALLOC] > 0)
        harness_broke("NumPy freed a block twice while the interpreter ended");
    expect(counts.notes[NOTE_OVERLAPS] == 0, "blocks that overlap nothing", "%zu that do",
           counts.notes[NOTE_OVERLAPS]);
    if (counts.live_blocks == live)
        skip("NumPy frees nothing while this interpreter ends");
    expect_untouched(recorder);
    lend_large();
    step("the program ends with %zu arrays alive", counts.live_blocks);
}

/* What process.late-free does not see: a program of its own whose handler is there before Python,
 * what the interpreter leaves behind, and the subject's own end by exit(). */
PROPERTY(numpy_finalises,
    .id     = "numpy.finalises",
    .slow_ms = 245, .ends_process = true,
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "a program that ends with arrays alive ends well: some are freed as the interpreter "
              "ends, those that are not keep their contents, and exit() runs to its end with the "
              "program's own status",
    .source = "NEP 49, PyDataMem_Handler thread safety and lifetime; arrayobject.c array_dealloc "
              "under Py_FinalizeEx; C17 7.22.4.4 exit, 1.22 to 2.5",
    .why    = "NumPy's own modules and C extensions keep arrays that nobody frees; a destructor "
              "that minds turns a program's success into failure",
    .hint   = "a destructor or atexit function may report what is live, and must not free it, "
              "stop, or change the status",
    .looks  = "CRASH: SIGABRT, while the program ends with 3 arrays alive",
    .fixture  = FIXTURE_FRESH)
{
    in_program(run_program, NULL);
}
