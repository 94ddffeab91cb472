/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/harness/breakpoint.c: stopping a thread at each instruction of a function, here zlib's.
 */
#include "unit.h"

#include <stdint.h>
#include <zlib.h>

#include "base/sanitizer_detect.h"
#include "harness/breakpoint.h"

static const unsigned char data[] = "what is summed up";
static struct points points;
static size_t pauses;
enum { NEVER = 1 << 20 }; /* instructions: the function has fewer */

static void count_pause(void)
{
    pauses++;
}

static uLong sum(void)
{
    return adler32(1, data, sizeof data);
}

static bool can_stop(void)
{
    return !CONFORM_SANITIZED && !memcheck_is_running() && breakpoint_begin();
}

START_TEST(trace_finds_instructions)
{
    if (!can_stop())
        return;
    uLong expected = sum();
    breakpoint_stop_behind((uintptr_t)adler32, NEVER, &points, count_pause);
    uLong traced = sum();
    breakpoint_clear();
    ck_assert_uint_eq(traced, expected);
    ck_assert_uint_gt(points.count, sizeof data / 4);
    ck_assert_uint_eq(points.at[0], (uintptr_t)adler32);
}
END_TEST

START_TEST(each_instruction_stops_once)
{
    if (!can_stop())
        return;
    uLong expected = sum();
    breakpoint_stop_behind((uintptr_t)adler32, NEVER, &points, count_pause);
    sum();
    breakpoint_clear();
    for (size_t i = 0; i < points.count; i++) {
        pauses = 0;
        breakpoint_set(points.at[i], count_pause);
        uLong stopped = sum(), after = sum();
        breakpoint_clear();
        assert_in_loop(pauses == 1 && stopped == expected && after == expected);
    }
}
END_TEST

TCase *case_breakpoint(void)
{
    TCase *tcase = tcase_create("breakpoint");
    tcase_add_test(tcase, trace_finds_instructions);
    tcase_add_test(tcase, each_instruction_stops_once);
    return tcase;
}
