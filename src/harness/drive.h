/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the code of a property is written in: how it ends, and calls into the subject that
 * leave a trace of what was under way.
 *
 * A property runs alone in its process and ends at the first thing that is wrong; so
 * none of this returns errors.  Everything here may be called from any thread.
 */
#ifndef CONFORM_DRIVE_H
#define CONFORM_DRIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "base/text.h"
#include "model/property.h"
#include "model/record.h"
#include "nep49.h"
#include "subject/claims.h"
#include "subject/subject.h"

/* ---- how a property ends ---------------------------------------------------------------- */

/* The clause does not hold: FAIL for a MUST, WARN for a SHOULD.  `expected` says what should have
 * been (text() helps), `seen` what was.  Both are one line. */
#define fail(expected, ...) fail_at(__LINE__, expected, __VA_ARGS__)
_Noreturn void fail_at(int line, const char *expected, const char *seen, ...)
    __attribute__((format(printf, 3, 4)));

/* As broken, where `condition` does not hold. */
#define expect(condition, expected, ...)                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_at(__LINE__, expected, __VA_ARGS__);                                              \
    } while (0)

/* What is found broken from now on is what the property `id` is about, and came of `call`: where
 * that property is broken as well, or one about such calls, it says so, and this one is a SKIP. */
void attribute_to(const char *id, const struct call *call);

/* It cannot be tested on this subject or this machine, for that reason. */
_Noreturn void skip(const char *reason, ...) __attribute__((format(printf, 1, 2)));

/* The harness could not do its part: never the subject's fault. */
_Noreturn void harness_broke(const char *what, ...) __attribute__((format(printf, 1, 2)));

/* What it is about is not tried to its end, for that reason.  The property goes on; where nothing
 * is found broken it is INCOMPLETE, and not PASS. */
void stopped_short(const char *reason, ...) __attribute__((format(printf, 1, 2)));

/* It holds.  Reaching the end of a property's code says the same. */
_Noreturn void pass(void);

/* Says what comes next, for the report of a crash or a hang outside the subject. */
void step(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The calls from here on are those of that part of a program, for the report of a crash or a hang
 * inside them as well. */
void program_part(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- the subject ------------------------------------------------------------------------ */

/* The handler that is driven, as it was handed over. */
PyDataMem_Handler *subject_handler(void);
const struct subject *subject(void);
const struct subject_place *subject_place(void);

/* Its claims, with those that cannot be read left out. */
struct claims subject_claims(void);

/* Only in FIXTURE_UNLOADED and FIXTURE_FRESH: load the subject now.  It is broken where that fails.
 */
void subject_load_now(void);

/* Only in FIXTURE_FRESH: start the interpreter and import NumPy now; the GIL is then held. */
void start_python_now(void);

/* Calls `function` of conformance/MODULE.py without arguments, GIL held.  Where it raises, the
 * property is broken: it expected NumPy to work as it does with its default handler. */
void python_call(const char *module, const char *function);

/* The four functions, called as NumPy calls them.  They return what the subject returns. */
void *subject_malloc(size_t size);
void *subject_calloc(size_t nelem, size_t elsize);
void *subject_realloc(void *p, size_t size);
void subject_free(void *p, size_t size);

/* The same, of a handler that is not the subject's own (a twin of it). */
void *handler_malloc(PyDataMem_Handler *handler, size_t size);
void *handler_calloc(PyDataMem_Handler *handler, size_t nelem, size_t elsize);
void *handler_realloc(PyDataMem_Handler *handler, void *p, size_t size);
void handler_free(PyDataMem_Handler *handler, void *p, size_t size);

/* Likewise, where NULL would leave nothing to test: a refusal of up to 1 MiB with little
 * else live is broken; a refusal of more is the subject's right, and SKIPs with that reason. */
void *must_malloc(size_t size);
void *must_calloc(size_t nelem, size_t elsize);
void *must_realloc(void *p, size_t size);

/* The subject as a handler whose functions are those above: what NumPy and shims are given, so
 * that a crash behind them is attributed to the call it happened in.  Name and version show
 * through. */
PyDataMem_Handler *subject_traced(void);

/* True where the subject takes its time over a block of 64 MiB that nobody has written to, because
 * it fills what it makes or frees: gigabytes would take it seconds. */
bool subject_fills_blocks(void);

/* For loops that make or keep much: what a refusal means is then the property's to say. */
bool refusal_is_fair(size_t size, size_t live_bytes, size_t live_blocks);

/* ---- chance, threads, memory ------------------------------------------------------------ */

/* This property's own stream of random numbers, from the seed of the run. */
struct random *rng(void);

/* Runs `body(data[i])` in `count` threads and waits for all; `element` is the size of one.  SKIPs
 * where so many cannot be started, for more than a few. */
void in_threads(size_t count, void (*body)(void *), void *data, size_t element);

/* Runs `body` in a child process and waits for it.  What it finds broken, skips or crashes on
 * becomes this property's verdict; where it passes or returns, this returns. */
void in_child(void (*body)(void *data), void *data);

/* As in_child, but where the child dies by that signal this returns false, and nothing follows of
 * it: for what may not be possible with every subject. */
bool in_child_unless(int killed_by, void (*body)(void *data), void *data);

/* The same in two parts, for a parent that works meanwhile: one child at a time. */
struct child {
    pid_t pid;
    int done;
};
struct child start_child(void (*body)(void *data), void *data);
void await_child(struct child child);

/* As in_child, of a body that makes the child a whole program: where it returns, the child goes
 * through exit(), with the atexit functions and destructors of the subject. */
void in_program(void (*body)(void *data), void *data);

/* Runs `body` in a child process and waits for it: true where it returned, false where the child
 * was ended on the way.  Nothing in it decides the property's verdict. */
bool child_survives(void (*body)(void *data), void *data);

/* The same, of a child that goes through exit() where `body` returns. */
bool program_survives(void (*body)(void *data), void *data);

/* Runs `body`, which is all that the property does but for what it is about, in a child process.
 * What is broken there, crashes or hangs is a defect of another kind: whichever property finds that
 * answers for it, and this one does where nobody else does.  `when` says without what it is. */
void control_run(void (*body)(void *data), void *data, const char *when);

/* The same in this process: what comes in between is a control. */
void control_begin(const char *when);
void control_end(void);

/* What fits on this machine: SKIPs where `bytes` of touched memory would be more than half of what
 * the address-space limit, the free memory or the control group allows. */
void ask_for_memory(size_t bytes);

/* The same without the SKIP: NULL, or why they do not fit (good until the next calls of text()). */
const char *lacking_memory(size_t bytes);

/* The descriptor that keeps the captured output open, whatever the subject does to the low ones. */
enum { OUTPUT_FD = 200 };

/* How much the property's process has printed so far, stdio flushed. */
size_t output_so_far(void);

/* True where memcheck runs this, or a sanitizer is built in: loops may then be shorter. */
bool is_instrumented(void);

/* Seconds after which something that ought to be done at once hangs: well before the property's own
 * limit, so that there is time to say so. */
double hang_limit(void);

/* SIGALRM then; 0: never. */
void alarm_in(double seconds);

/* The time that this property may take, in seconds, and whether half of it is over, because the
 * subject is slow or the machine busy: then it comes to an end, and says that it stopped_short. */
double time_limit(void);
bool time_is_up(void);

/* How far a loop over many sizes goes at a time: 1, or `longer` where is_instrumented, and when
 * time_is_up, with which the property has stopped_short. */
size_t stride(size_t longer);

/* ---- for the worker, which runs properties ---------------------------------------------- */

struct drive_setup {
    const struct property *property;
    const struct subject_place *place;
    struct record *record;
    struct load *load; /* to be filled in, or NULL */
    uint64_t seed;
    const char *python_path;
    double limit;         /* seconds until this process is ended; 0: never */
    void (*at_end)(void); /* instead of leaving the process: --no-fork */
};

/* Makes this process the property's: remembers the set-up and catches fatal signals. */
void drive_begin(const struct drive_setup *setup);
void drive_load_subject(void);

/* The property that runs. */
const struct property *drive_property(void);

#endif
