/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What AddressSanitizer is to do otherwise in a program that embeds CPython and drives handlers.
 * For the runtime that --enable-sanitizers links, or one that is preloaded; ASAN_OPTIONS still has
 * the last word.
 */

const char *__asan_default_options(void);

/* Asked for by the runtime before main.  CPython keeps memory to its end, and a request for too
 * much is to be answered by NULL (C17 7.22.3), not by the end of the program. */
const char *__asan_default_options(void)
{
    return "detect_leaks=0:allocator_may_return_null=1";
}
