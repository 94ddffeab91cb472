/* SPDX-License-Identifier: BSD-3-Clause
 *
 * numpy: real arrays on the handler.
 */
#include <stdio.h>

#include "harness/harness.h"
#include "harness/property_child.h"
#include "python/api.h"
#include "python/python.h"
#include "shims/recorder.h"

GROUP(numpy, 10, "Real arrays on the handler, through NumPy.",
      .rank = {RANK_IN_USE, RANK_AT_LENGTH, 40});

PYTHON_PROPERTY(numpy, installs,
    .id     = "numpy.installs", .level = MUST, .basis = BASIS_NEP,
    .title  = "SetHandler installs and restores",
    .clause = "PyDataMem_SetHandler installs the handler and returns the previous one, and nothing "
              "else changes the active handler.",
    .tests  = "SetHandler(NULL) has to restore NumPy's own handler.",
    .source = "NEP 49, NumPy C-API functions: PyDataMem_SetHandler, PyDataMem_GetHandler",
    .why    = "Code that installs a handler for a while restores the old one later.",
    .hint   = "Do not call PyDataMem_SetHandler from the handler's own functions.",
    .looks  = "expected default_allocator to be the active handler after an array of the old was "
              "freed; seen mine");

PYTHON_PROPERTY(numpy, name,
    .id     = "numpy.name", .level = MUST, .basis = BASIS_NEP,
    .title  = "get_handler_name returns the name",
    .clause = "get_handler_name returns the handler's name at any time, for the active handler and "
              "for arrays.",
    .tests  = "For a view it returns None, and for the base of the view the name.",
    .source = "NEP 49, High level design; alloc.c get_handler_name, 1.22 to 2.5",
    .why    = "Programs find out by the name which handler made an array.",
    .hint   = "Set the name once, in UTF-8 and with its NUL, and do not change it.",
    .looks  = "expected the name of the active handler after 120 arrays to be 'mine'; seen 'mine "
              "(busy)'");

PYTHON_PROPERTY(numpy, version,
    .id     = "numpy.version", .level = MUST, .basis = BASIS_NEP,
    .title  = "get_handler_version returns 1",
    .clause = "get_handler_version returns 1 at any time, for the active handler and for arrays.",
    .tests  = "For a view it returns None, and for the base of the view 1.",
    .source = "NEP 49, High level design; alloc.c get_handler_version, 1.22 to 2.5",
    .why    = "A later NumPy will decide by the version which functions the struct has.",
    .hint   = "Set the version to 1, and do not change it.",
    .looks  = "expected the version of the active handler after 120 arrays to be 1; seen 2");

PYTHON_PROPERTY(numpy, array_keeps_its_handler,
    .id     = "numpy.array-keeps-its-handler", .level = MUST, .basis = BASIS_NEP,
    .title  = "arrays keep their own handler",
    .clause = "An array is resized and freed by the handler that made it, regardless of the active "
              "handler.",
    .tests  = "The contents of the array have to stay.",
    .source = "NEP 49, High level design; PyArray_Resize, array_dealloc, 1.22 to 2.5",
    .why    = "Arrays outlive the code for which their handler was installed.",
    .hint   = "Free and resize by the block itself or by ctx, never by the active handler.",
    .looks  = "expected first to receive only its own blocks; seen free(0x55d0c0a8, 80) of a block "
              "of second's");

PYTHON_PROPERTY(numpy, dtypes,
    .id     = "numpy.dtypes", .level = MUST, .basis = BASIS_CALLER,
    .title  = "arrays of every dtype work",
    .clause = "Arrays of every dtype are aligned and hold what is written.",
    .tests  = "Arrays of objects have to start as NULL and survive garbage collection.",
    .source = "ctors.c PyArray_NewFromDescr_int: NPY_ARRAY_ALIGNED, NPY_NEEDS_INIT, 1.22 to 2.5",
    .why    = "long double loads 16 bytes at a time, and NumPy releases a pointer that is not "
              "NULL.",
    .hint   = "Align every block of 16 bytes or more to 16, and clear all bytes in calloc.",
    .looks  = "expected the array of 3 complex256 to be aligned to 16; seen 0x55d0c0a8b2a8");

PYTHON_PROPERTY(numpy, tracing,
    .id     = "numpy.tracemalloc", .level = MUST, .basis = BASIS_NEP,
    .title  = "tracemalloc shows requested sizes",
    .clause = "In NumPy's domain tracemalloc shows the requested size of each block until it is "
              "freed.",
    .source = "NumPy's page on tracemalloc; alloc.c, NPY_TRACE_DOMAIN, 1.22 to 2.5",
    .why    = "Users search with it for the memory that their arrays hold.",
    .hint   = "Track the handler's own allocations in another domain than 389047.",
    .looks  = "expected the traces of np.empty(1000) to be [1000]; seen [1000, 1064]");

PYTHON_PROPERTY(numpy, counted_once,
    .id     = "numpy.tracemalloc-once", .level = SHOULD, .basis = BASIS_QOI,
    .title  = "tracemalloc counts memory once",
    .clause = "tracemalloc counts the memory of an array once.",
    .source = "NumPy's page on tracemalloc; alloc.c, PyTraceMalloc_Track, 1.22 to 2.5; numpy#30900",
    .why    = "NumPy tracks each block itself, so totals and peaks become twice as large.",
    .hint   = "Allocate with malloc or mmap, not with PyMem_Malloc or PyMem_RawMalloc.",
    .looks  = "8 arrays of 1 MiB to add less than 12 MiB to the traced memory: 16 MiB");

/* ---- the end of a program ----------------------------------------------------------------- */

/* The blocks that the interpreter did not free hold what was written: the pattern of their size. */
static void expect_untouched(struct recorder *recorder)
{
    size_t count;
    struct interval *live = recorder_live(recorder, &count);
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
        load_subject(); /* a program that embeds Python may have its handler before it */
    start_python_now();
    load_subject();
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
    .id     = "numpy.finalises", .level = MUST, .basis = BASIS_CALLER, .slow_ms = 245,
    .ends_process = true, .fixture = FIXTURE_FRESH,
    .title  = "programs with live arrays end well",
    .clause = "A program that ends with live arrays ends with its own exit status.",
    .tests  = "At the end the live arrays are freed or unchanged.",
    .source = "NEP 49, PyDataMem_Handler thread safety and lifetime; C17 7.22.4.4 exit",
    .why    = "NumPy's modules hold arrays that are never freed, and a failing destructor changes "
              "the exit status.",
    .hint   = "In a destructor or atexit function report live blocks, but do not free them or "
              "abort.",
    .looks  = "CRASH: SIGABRT, while the program ends with 3 arrays alive")
{
    in_program(run_program, NULL);
}
