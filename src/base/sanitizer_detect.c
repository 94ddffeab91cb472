/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Asking valgrind, by the requests that its header compiles into this program, and looking for
 * the runtime of a sanitizer and for a kernel that is none.
 */
#include "base/sanitizer_detect.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <sys/prctl.h>

#ifdef HAVE_VALGRIND_MEMCHECK_H
#include <valgrind/memcheck.h>
#endif

bool memcheck_is_running(void)
{
#ifdef HAVE_VALGRIND_MEMCHECK_H
    return RUNNING_ON_VALGRIND != 0;
#else
    return false;
#endif
}

uint64_t memcheck_error_count(void)
{
#ifdef HAVE_VALGRIND_MEMCHECK_H
    return VALGRIND_COUNT_ERRORS;
#else
    return 0;
#endif
}

void memcheck_disable(void)
{
#ifdef HAVE_VALGRIND_MEMCHECK_H
    VALGRIND_DISABLE_ERROR_REPORTING;
#endif
}

void memcheck_enable(void)
{
#ifdef HAVE_VALGRIND_MEMCHECK_H
    VALGRIND_ENABLE_ERROR_REPORTING;
#endif
}

bool tsan_is_running(void)
{
    return dlsym(RTLD_DEFAULT, "__tsan_init") != NULL;
}

bool sanitizer_is_running(void)
{
    static enum { NOT_ASKED, NO, YES } known;
    if (known == NOT_ASKED)
        known = CONFORM_SANITIZED || dlsym(RTLD_DEFAULT, "__asan_init") != NULL || tsan_is_running()
                    ? YES
                    : NO;
    return known == YES;
}

bool emulator_is_running(void)
{
    static enum { NOT_ASKED, NO, YES } known;
    int ignored; /* each Linux since 3.4 tells it */
    if (known == NOT_ASKED)
        known = prctl(PR_GET_CHILD_SUBREAPER, &ignored) != 0 && errno == EINVAL ? YES : NO;
    return known == YES;
}
