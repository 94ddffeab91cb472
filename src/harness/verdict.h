/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a property ends.
 *
 * A property runs alone in its process and ends at the first thing that is wrong; so none of this
 * returns errors.  Everything here may be called from any thread.
 */
#ifndef CONFORM_VERDICT_H
#define CONFORM_VERDICT_H

#include "base/text.h"
#include "model/record.h"

/* The clause does not hold: FAIL for a MUST, WARN for a SHOULD.  `expected` says what should have
 * been (text() helps), `seen` what was.  Both are one line. */
#define fail(expected, ...) fail_at(__LINE__, expected, __VA_ARGS__)
_Noreturn void fail_at(int line, const char *expected, const char *seen, ...)
    __attribute__((format(printf, 3, 4)));

/* As fail, where `condition` does not hold. */
#define expect(condition, expected, ...)                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_at(__LINE__, expected, __VA_ARGS__);                                              \
    } while (0)

/* What fails from now on is what the property `id` is about, and came of `call`: where
 * that property fails as well, or one about such calls, it says so, and this one is a SKIP. */
void attribute_to(const char *id, const struct call *call);

/* It cannot be tested on this subject or this machine, for that reason. */
_Noreturn void skip(const char *reason, ...) __attribute__((format(printf, 1, 2)));

/* It is about a claim that the handler does not make. */
_Noreturn void skip_unclaimed(void);

/* The harness could not do its part: never the subject's fault. */
_Noreturn void harness_broke(const char *what, ...) __attribute__((format(printf, 1, 2)));

/* What it is about is not tried to its end, for that reason.  The property goes on; where nothing
 * has failed it is INCOMPLETE, and not PASS. */
void stopped_short(const char *reason, ...) __attribute__((format(printf, 1, 2)));

/* Where a debugger stops: the verdict is made, and all is still there.  `latest` is the call into
 * the subject that this thread made last, and `code` the subject's function, which gdb names. */
void conform_fail(const char *expected, const char *seen, const char *latest, void (*code)(void));

/* It passes.  Reaching the end of a property's code says the same. */
_Noreturn void pass(void);

/* Says what comes next, for the report of a crash or a hang outside the subject. */
void step(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The calls from here on are those of that part of a program, for the report of a crash or a hang
 * inside them as well. */
void program_part(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What comes in between is a control: all that the property does but for what it is about, which
 * `when` says.  Whichever property finds what goes wrong there answers for it, and this one does
 * where nobody else does. */
void control_begin(const char *when);
void control_end(void);

#endif
