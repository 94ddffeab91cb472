/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Detects valgrind, a sanitizer or an emulator around this process, and counts valgrind's errors.
 */
#ifndef CONFORM_SANITIZER_DETECT_H
#define CONFORM_SANITIZER_DETECT_H

#include <stdbool.h>
#include <stdint.h>

/* True under memcheck, or another tool of valgrind. */
bool memcheck_is_running(void);

/* Errors of this process and those it was forked from; 0 without valgrind. */
uint64_t memcheck_error_count(void);

/* Disable and enable the report of errors of this thread and processes that it forks.  Calls nest.
 */
void memcheck_disable(void);
void memcheck_enable(void);

/* 1 in a build with AddressSanitizer or ThreadSanitizer. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONFORM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CONFORM_SANITIZED 1
#endif
#endif
#ifndef CONFORM_SANITIZED
#define CONFORM_SANITIZED 0
#endif

/* True if AddressSanitizer or ThreadSanitizer is in this process, built in or preloaded. */
bool sanitizer_is_running(void);
bool tsan_is_running(void);

/* True under qemu-user, whose own memory counts as this process's. */
bool emulator_is_running(void);

#endif
