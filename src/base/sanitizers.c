/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the sanitizers are to do otherwise in a program that embeds CPython and drives handlers.
 * For the runtime that --enable-sanitizers links, or one that is preloaded; ASAN_OPTIONS and
 * TSAN_OPTIONS still have the last word.
 */

const char *__asan_default_options(void);
const char *__tsan_default_options(void);

/* Asked for by the runtime before main.  CPython keeps memory to its end, and a request for too
 * much is to be answered by NULL (C17 7.22.3), not by the end of the program; conform-engine.so
 * comes before a runtime that is preloaded. */
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "detect_leaks=0:allocator_may_return_null=1:verify_asan_link_order=0";
}

/* The same.  What CPython and we do by atomics, ThreadSanitizer does not see, and takes for races
 * of the library functions that were called there. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1:ignore_noninstrumented_modules=1";
}
