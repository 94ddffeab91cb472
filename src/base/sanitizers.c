/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the sanitizers are to do otherwise in a program that embeds CPython and drives handlers.
 * For the runtime that --enable-sanitizers links, or one that is preloaded; ASAN_OPTIONS,
 * TSAN_OPTIONS and the like still have the last word.
 */

const char *__asan_default_options(void);
const char *__lsan_default_options(void);
const char *__tsan_default_options(void);
const char *__ubsan_default_options(void);
int __tsan_on_finalize(int failed);

/* Called by the runtime before main.  CPython keeps memory to its end; malloc of too much has to
 * return NULL (C17 7.22.3); and conform-engine.so comes before a preloaded runtime. */
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=8192:"
           "verify_asan_link_order=0";
}

/* ThreadSanitizer does not see atomics of CPython and this program.  Workers fork, and their
 * children start threads.  Only data races count.  A runtime that does not start exits as
 * EXIT_HARNESS_BROKE. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1:ignore_noninstrumented_modules=1:die_after_fork=0:"
           "history_size=4:exitcode=4:detect_deadlocks=0:report_destroy_locked=0:"
           "report_mutex_bugs=0:report_signal_unsafe=0:report_thread_leaks=0";
}

/* Leaks are counted by properties, and CPython keeps memory to its end. */
__attribute__((visibility("default"))) const char *__lsan_default_options(void)
{
    return "detect_leaks=0:allocator_may_return_null=1";
}

/* What is undefined counts, and is not only printed.  Signals are another matter. */
__attribute__((visibility("default"))) const char *__ubsan_default_options(void)
{
    return "halt_on_error=1:print_stacktrace=1:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:"
           "handle_sigill=0:handle_abort=0";
}

/* Whether a process that had reports ends otherwise for it. */
__attribute__((visibility("default"))) int __tsan_on_finalize(int failed)
{
    (void)failed;
    return 0;
}
