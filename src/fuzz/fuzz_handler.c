/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A fuzz target of a handler, for libFuzzer, AFL++ and Honggfuzz: compile it with your handler,
 * link both with libconform-fuzz.a, and see docs/fuzzing.md.
 */
#include <stddef.h>
#include <stdint.h>

#define NEP49_WITHOUT_NUMPY
#include "nep49.h"

/* The handler, by either of the two names of nep49.h. */
extern PyDataMem_Handler nep49_handler __attribute__((weak));
PyDataMem_Handler *nep49_get_handler(const char **why) __attribute__((weak));

/* In libconform-fuzz.a. */
void conform_fuzz_begin(PyDataMem_Handler *handler, const char *why);
void conform_fuzz_one(const uint8_t *bytes, size_t length);
size_t conform_fuzz_put_head(uint8_t *bytes, size_t length, size_t room);

/* libFuzzer's own mutations of bytes; other fuzzers do not call the function below. */
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t length, size_t room) __attribute__((weak));

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t room, unsigned seed);

/* What cannot be had is refused, as always; AddressSanitizer would end the process. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *why = "neither nep49_handler nor nep49_get_handler is linked";
    (void)argc, (void)argv;
    conform_fuzz_begin(nep49_get_handler != NULL ? nep49_get_handler(&why) : &nep49_handler, why);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    conform_fuzz_one(bytes, length);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t room, unsigned seed)
{
    (void)seed;
    return conform_fuzz_put_head(bytes, LLVMFuzzerMutate(bytes, length, room), room);
}
