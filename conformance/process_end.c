/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process: the ends of the interpreter and of the program.
 */
#include <signal.h>

#include "base/clock.h"
#include "harness/harness.h"
#include "harness/property_child.h"
#include "ordinary_use.h"
#include "python/api.h"
#include "shims/recorder.h"

/* ---- the interpreter's end --------------------------------------------------------------- */

PROPERTY(process_late_free,
    .id     = "process.late-free", .level = MUST, .basis = BASIS_CALLER, .slow_ms = 46,
    .ends_process = true,
    .title  = "calls work during interpreter shutdown",
    .clause = "Blocks can be freed, resized and made while the interpreter shuts down.",
    .source = "NEP 49, PyDataMem_Handler thread safety and lifetime; array_dealloc, 1.22 to 2.5",
    .why    = "Arrays in modules and cycles are freed after atexit functions ran: a crash fails "
              "the program.",
    .hint   = "Release nothing in an atexit function, and do not import or call Python from free.",
    .looks  = "CRASH: SIGSEGV at address 0, inside free(0x55d0c8a0b2a0, 8000)")
{
    struct recorder *recorder = recorder_create(subject_traced(), NULL);
    install_handler(recorder != NULL ? recorder_handler(recorder) : NULL);
    python_call("process", "leave_arrays_behind");
    size_t freed = recorder_counts(recorder).free_calls;
    step("the interpreter shuts down");
    Py_FinalizeEx();
    struct recorder_counts counts = recorder_counts(recorder);
    if (counts.notes[NOTE_OVERLAPS] > 0) {
        attribute_to("malloc.disjoint", NULL);
        fail("blocks that do not overlap", "a block in the memory of a live one");
    }
    if (counts.notes[NOTE_FOREIGN_FREE] + counts.notes[NOTE_FOREIGN_REALLOC] > 0)
        harness_broke("NumPy freed a block twice while the interpreter shut down");
    if (counts.free_calls == freed)
        skip("NumPy frees nothing while this interpreter shuts down");
}

/* ---- the end of the program ------------------------------------------------------------------ */

static struct blocks left_to_exit, large_left_to_exit;

static void never_freed_at_exit(int number)
{
    (void)number;
    fail("free to return in an exit function", "no end after %.3g s", hang_limit());
}

static void use_at_exit(void)
{
    step("an exit function that is older than the handler uses and frees blocks");
    blocks_verify(&left_to_exit, "in an exit function");
    for (size_t i = 0; i < left_to_exit.count; i += 2) {
        struct block *b = &left_to_exit.at[i];
        size_t size = b->size + 100;
        b->p = must_realloc(b->p, size);
        expect_pattern(b->p, b->size, b->number, "after realloc in an exit function");
        subject_free(b->p, size);
        b->p = must_calloc(1, b->size);
        pattern_fill(b->p, b->size, b->number);
    }
    blocks_verify(&left_to_exit, "behind others that an exit function made");
    blocks_free_all(&left_to_exit);
    signal(SIGALRM, never_freed_at_exit);
    alarm_in(hang_limit());
    while (large_left_to_exit.count > 0)
        blocks_free(&large_left_to_exit, large_left_to_exit.count - 1);
    alarm_in(0);
}

/* More blocks than the rows are long in which they wait for a thread of the handler's to unmap
 * them; nobody writes to them. */
static void leave_large_to_exit(void)
{
    enum { MANY = 72, LARGE = (1 << 20) + 100 };
    if (is_instrumented() || lacking_memory((size_t)MANY * LARGE) != NULL || subject_fills_blocks())
        return;
    for (size_t i = 0; i < MANY; i++) {
        void *p = subject_malloc(LARGE);
        if (p == NULL)
            return;
        blocks_add_unwritten(&large_left_to_exit, p, LARGE);
    }
}

/* Exit functions run in the reverse of the order in which they were registered. */
static void leave_to_exit(void *unused)
{
    (void)unused;
    if (atexit(use_at_exit) != 0)
        harness_broke("no room for an exit function");
    load_subject();
    blocks_add_neighbours(&left_to_exit, 30);
    for (size_t size = 5000; size <= 500000; size *= 10) {
        blocks_add(&left_to_exit, must_malloc(size), size);
        blocks_add(&left_to_exit, must_calloc(1, size), size);
    }
    leave_large_to_exit();
}

static void load_use_and_free_all(void *unused)
{
    load_subject();
    use_and_free_all(unused);
}

PROPERTY(process_use_at_exit,
    .id     = "process.use-at-exit", .level = MUST, .basis = BASIS_CALLER, .ends_process = true,
    .fixture = FIXTURE_UNLOADED,
    .title  = "calls work in atexit() functions",
    .clause = "A function registered earlier with atexit() can still use, resize, make and free "
              "blocks.",
    .source = "NEP 49, PyDataMem_Handler thread safety and lifetime; C17 7.22.4.4: reverse order",
    .why    = "Py_FinalizeEx in atexit, and destructors of static C++ objects, free arrays there.",
    .hint   = "Release nothing in an atexit function or static destructor: the kernel frees the "
              "memory.",
    .looks  = "CRASH: SIGSEGV at address 0x80, inside free(0x557b3a256080, 1858)")
{
    control_begin("before a program ends");
    in_child(load_use_and_free_all, NULL); /* here it would be the first call */
    control_end();
    if (!program_survives(load_use_and_free_all, NULL)) {
        attribute_to("numpy.finalises", NULL);
        in_program(load_use_and_free_all, NULL);
    }
    in_program(leave_to_exit, NULL);
}

/* What is worth a line at the end may be how much there was. */
static void use_much(void)
{
    enum { SMALL = 40, SOME = 100, OFTEN = 1200, LARGE = 5 << 20 };
    static const double a_moment = 0.2;
    uint64_t begun = clock_now();
    for (size_t i = 0; i < OFTEN && clock_since(begun) < a_moment; i += SOME)
        subject_malloc_and_free(SMALL, SOME);
    give_back(subject_malloc(LARGE), LARGE);
    give_back(subject_calloc(1, LARGE), LARGE);
    resize_and_free(subject_malloc(SMALL), SMALL, LARGE, LARGE);
    ask_too_much();
}

/* Of a program that goes on from here. */
static void expect_quiet_end(void)
{
    size_t before = output_so_far();
    if (!program_survives(use_and_free_all, NULL)) {
        attribute_to("numpy.finalises", NULL);
        in_program(use_and_free_all, NULL);
    }
    size_t after = output_so_far();
    expect(after == before, "nothing to be printed at the end of the program", "%zu bytes",
           after - before);
}

PROPERTY(process_ends_quietly,
    .id     = "process.ends-quietly", .level = SHOULD, .basis = BASIS_QOI,
    .title  = "no output at the end",
    .clause = "If a program freed all blocks, the handler prints nothing when the program ends.",
    .source = "good practice",
    .why    = "An extra line at the end of each program and each child breaks programs that parse "
              "the output.",
    .hint   = "Print statistics only if an environment variable requests them.",
    .looks  = "expected nothing to be printed at the end of the program; seen 31 bytes")
{
    control_run(use_and_free_all, NULL, "before a program ends");
    expect_quiet_end(); /* before there is more than a pipe holds of who prints all the time */
    use_much();
    expect_quiet_end();
}
