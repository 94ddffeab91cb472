/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What runs this process beside the processor: valgrind, a sanitizer or an emulator, and what
 * valgrind has found so far.
 */
#ifndef CONFORM_SANITIZER_DETECT_H
#define CONFORM_SANITIZER_DETECT_H

#include <stdbool.h>
#include <stdint.h>

/* Memcheck, or another tool of valgrind's. */
bool memcheck_is_running(void);

/* Errors of this process and those it was forked from; 0 without valgrind. */
uint64_t memcheck_error_count(void);

/* From now on memcheck passes over the errors of this thread, and of processes that it forks; then
 * no more.  What it has passed over once, it can report later.  Calls can be nested. */
void memcheck_disable(void);
void memcheck_enable(void);

/* 1 in a build with AddressSanitizer or ThreadSanitizer: gcc and clang tell in different ways. */
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

/* Whether AddressSanitizer or ThreadSanitizer is in this process, built in or preloaded. */
bool sanitizer_is_running(void);
bool tsan_is_running(void);

/* Whether it is no Linux that answers, but a program that stands for it (qemu-user): memory that
 * program takes for itself counts as this process's. */
bool emulator_is_running(void);

#endif
