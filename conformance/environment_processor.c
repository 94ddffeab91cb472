/* SPDX-License-Identifier: BSD-3-Clause
 *
 * env: the state of the processor, of floats and of string instructions.
 */
#include <fenv.h>

#include "harness/harness.h"
#include "harness/process_state.h"
#include "ordinary_use.h"

/* ---- floating point ---------------------------------------------------------------------- */

static void keep_float_state(const char *when)
{
    struct arithmetic before = note_arithmetic();
    use_in_every_way();
    expect_same_arithmetic(&before, when);
}

/* Each thread has a state of its own, which its first call may change. */
static void keep_state_of_thread(void *unused)
{
    (void)unused;
    keep_float_state("after the first calls of a thread");
    keep_float_state("after calls of a thread");
}

/* An average that is halved at each call comes below the least number there is. */
static void use_one_function_long(void)
{
    enum { COUNT = 1200 };
    void *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        blocks[i] = must_malloc(100);
    for (size_t i = 0; i < COUNT; i++)
        blocks[i] = must_realloc(blocks[i], 120);
    for (size_t i = 0; i < COUNT; i++)
        subject_free(blocks[i], 120);
}

/* NumPy's rounding, and no other, so that it does not take so long. */
static void keep_float_flags(bool raised, const char *when)
{
    if (is_instrumented()) /* valgrind knows no flags */
        return;
    struct arithmetic before = note_arithmetic(); /* which raises flags */
    set_float_flags(raised);
    use_in_every_way();
    use_large_blocks();
    use_one_function_long();
    expect_float_flags(raised, when);
    expect_same_arithmetic(&before, when);
    set_float_flags(false);
}

PROPERTY(env_float_state,
    .id     = "env.float-state", .level = MUST, .basis = BASIS_CALLER, .rule = HEAP_FLOAT_STATE,
    .clause = "rounding mode, traps, denormals, exception flags (except inexact) and empty x87 "
              "registers are the same after each call",
    .source = "NumPy 1.22 to 2.5: umath, npy_get_floatstatus; C17 7.6: a function changes no mode",
    .why    = "a flag that was set is a RuntimeWarning about a division that no code made",
    .hint   = "link without -ffast-math; compute sizes in integers, or restore by fesetenv",
    .looks  = "FAIL: the rounding mode to be 0x800 still, rounding upward; 0")
{
    static const struct {
        int mode;
        const char *when;
    } modes[] = {{FE_TONEAREST, "rounding to nearest"},
                 {FE_UPWARD, "rounding upward"},
                 {FE_DOWNWARD, "rounding downward"},
                 {FE_TOWARDZERO, "rounding toward zero"}};
    enum { LARGE = 2 << 20 };
    for (size_t i = 0; i < LENGTH(modes); i++) {
        if (fesetround(modes[i].mode) != 0)
            continue;
        keep_float_state(modes[i].when);
    }
    fesetround(FE_TONEAREST);
    in_threads(1, keep_state_of_thread, NULL, 0);
    struct arithmetic before = note_arithmetic();
    resize_and_free(subject_malloc(LARGE), LARGE, 2 * LARGE, 1);
    expect_same_arithmetic(&before, "after a large block was resized");
    keep_float_flags(false, "after calls of all four");
    keep_float_flags(true, "after calls of all four");
#ifdef __SSE__
    if (!is_instrumented()) { /* valgrind knows no such mode */
        __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
        keep_float_state("denormals being flushed to zero");
        __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~0x8040u);
    }
#endif
    if (!is_instrumented() && feenableexcept(FE_DIVBYZERO | FE_INVALID) != -1)
        keep_float_state("division by zero being trapped");
}

/* ---- which way memory is copied ------------------------------------------------------------ */

/* Forth and back, by one page and by many; what is large is not touched. */
static void resize_up_and_down(size_t size)
{
    unsigned char *p = subject_malloc(size), *q;
    const size_t steps[] = {size + 1, 2 * size, size + 5000, size / 2 + 1, 5000 + size};
    for (size_t i = 0; p != NULL && i < LENGTH(steps); i++) {
        if ((q = subject_realloc(p, steps[i])) == NULL)
            break;
        p = q;
        size = steps[i];
    }
    give_back(p, size);
}

PROPERTY(env_direction_flag,
    .id     = "env.direction-flag", .level = MUST, .basis = BASIS_CALLER,
    .answers_for = ABOUT(DIRECTION_FLAG_SET),
    .clause = "the direction flag of an x86 is clear after each call",
    .source = "System V ABI for AMD64, 3.2.1: clear on entry to a function and upon return",
    .why    = "the next memcpy or memset runs downward and overwrites what is before its block",
    .hint   = "add a cld after each std, on every path; or use memmove",
    .looks  = "FAIL: the direction flag to be clear after realloc of 8388608; it is set")
{
    static const size_t sizes[] = {100, 5000, 70000, 300000, 1 << 20, 3 << 20, 9 << 20};
#ifndef __x86_64__
    skip("only x86-64 has this flag");
#endif
    use_in_every_way(); /* each call is looked at where calls are made */
    use_large_blocks();
    for (size_t i = 0; i < LENGTH(sizes); i++)
        resize_up_and_down(sizes[i]);
}
