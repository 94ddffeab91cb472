/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the sanitizers are to do otherwise in a program that embeds CPython and drives handlers.
 * For the runtime that --enable-sanitizers links, or one that is preloaded; ASAN_OPTIONS and
 * TSAN_OPTIONS still have the last word.
 */

const char *__asan_default_options(void);
const char *__tsan_default_options(void);
int __tsan_on_finalize(int failed);

/* Asked for by the runtime before main.  CPython keeps memory to its end, and a request for too
 * much is to be answered by NULL (C17 7.22.3), not by the end of the program; conform-engine.so
 * comes before a runtime that is preloaded. */
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "detect_leaks=0:allocator_may_return_null=1:verify_asan_link_order=0";
}

/* The same.  What CPython and we do by atomics, ThreadSanitizer does not see, and takes for races
 * of the library functions that were called there.  Workers fork, and what they fork starts
 * threads. What is no data race is not looked for.  The status is that of a runtime that does not
 * start: EXIT_HARNESS_BROKE. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1:ignore_noninstrumented_modules=1:die_after_fork=0:"
           "history_size=4:exitcode=4:detect_deadlocks=0:report_destroy_locked=0:"
           "report_mutex_bugs=0:report_signal_unsafe=0:report_thread_leaks=0";
}

/* Whether a process that had reports ends otherwise for it. */
__attribute__((visibility("default"))) int __tsan_on_finalize(int failed)
{
    (void)failed;
    return 0;
}
