/* SPDX-License-Identifier: BSD-3-Clause
 *
 * free: the pointer and the size it is given, NULL and wrong ones among them.
 */
#include "block_checks.h"
#include "harness/growth.h"
#include "scenarios.h"

GROUP(free, 5, "What free accepts: NULL, wrong sizes, any order.",
      .rank = {RANK_ONE_FUNCTION, RANK_IN_USE, 36}, .function = STEP_FREE);

PROPERTY(free_null,
    .id     = "free.null", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_BY_ITSELF, RANK_AT_LENGTH, 5}, .answers_for = ABOUT(FREE_NULL_ZERO),
    .scenarios = true, .ends_process = true, .quick = true,
    .title  = "free(NULL, 0) does nothing",
    .clause = "free(NULL, 0) does nothing, at any time.",
    .source = "C17 7.22.3.3 paragraph 2",
    .why    = "Cleanup code frees pointers that it may not have allocated.",
    .wrong  = "header = (struct header *)p - 1;",
    .right  = "if (p == NULL)\n"
              "    return;",
    .hint   = "Return if the pointer is NULL, before you read a header or decrement a counter.",
    .looks  = "CRASH: SIGSEGV at address 0xfffffffffffffff0, inside free((nil), 0)")
{
    const struct scenario_limits limits = {
        .most_size = 4096,
        .most_bytes = 1 << 20,
        .level = {[FACTOR_FREE_SIZE] = FROM_TO(NULL_AS_WELL, NULL_AS_WELL),
                  [FACTOR_REPETITION] = FROM_TO(0, 3)}};
    check_scenarios_about(FACTOR_FREE_SIZE, 4000, &limits);
}

PROPERTY(free_null_with_size,
    .id     = "free.null-with-size", .level = MUST, .basis = BASIS_CALLER,
    .rank = {RANK_BY_ITSELF, RANK_AT_LENGTH, 5}, .answers_for = ABOUT(FREE_NULL),
    .scenarios = true, .ends_process = true, .quick = true,
    .title  = "free(NULL, n) does nothing",
    .clause = "free of NULL does nothing, for any size argument.",
    .source = "C17 7.22.3.3; item_selection.c _new_argsortlike, 1.22 to 2.5; _new_sortlike to 1.24",
    .why    = "Every argsort of a contiguous array calls free(NULL, 8 * n).",
    .hint   = "Return if the pointer is NULL, before the size selects a free list or changes a "
              "counter.",
    .looks  = "CRASH: SIGSEGV, inside free((nil), 40)")
{
    const struct scenario_limits limits = {
        .most_size = 8192,
        .most_bytes = 1 << 20,
        .level = {[FACTOR_FREE_SIZE] = FROM_TO(NULL_OF_ANY_SIZE, NULL_OF_ANY_SIZE),
                  [FACTOR_REPETITION] = FROM_TO(0, 3)}};
    check_scenarios_about(FACTOR_FREE_SIZE, 10000, &limits);
}

/* ---- wrong sizes ------------------------------------------------------------------------- */

/* Blocks of these sizes are made, and freed with the size at `told`. */
static void use_and_free(void *told)
{
    static const size_t sizes[] = {2, 8, 56, 112, 448, 4000, 65536, 98304, 1 << 20, 1 << 20};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        unsigned char *p = i % 3 == 2 ? must_calloc(sizes[i], 1) : must_malloc(sizes[i]);
        p[0] = p[sizes[i] - 1] = 1;
        subject_free(p, told != NULL ? *(size_t *)told : sizes[i]);
    }
}

static void use_and_free_rightly(void *told)
{
    (void)told;
    use_and_free(NULL);
}

PROPERTY(free_best_guess_size,
    .id     = "free.best-guess-size", .level = MUST, .basis = BASIS_NEP,
    .answers_for = ABOUT(FREE_WRONG_SIZE), .scenarios = true, .slow_ms = 44,
    .title  = "wrong sizes from NumPy are harmless",
    .clause = "free handles the wrong sizes that NumPy is known to pass: the block is freed, and "
              "later blocks are intact.",
    .source = "NEP 49, NumPy C-API functions: the size is a best guess; NumPy 1.22 to 2.5: "
              "arrayobject.c array_dealloc, ctors.c array_from_text, PyArray_FromIter and "
              "PyArray_FromFile, alloc.c PyDataMem_UserNEW_ZEROED; 1.22: methods.c array_setstate",
    .why    = "a.resize(0), fromstring('x', sep=' ') and other calls free a block with a different "
              "size.",
    .wrong  = "munmap(p, size); /* size is only NumPy's best guess */",
    .right  = "munmap(header, header->length);",
    .hint   = "Look up the size by the block (header, table or size class). Do not use the size "
              "argument.",
    .looks  = "expected byte 32 of 1000 to be 0x1f as it was written, after wrong sizes; seen 0x5a")
{
    const struct scenario_limits limits = {
        .most_size = 256 << 10,
        .most_bytes = 4 << 20,
        .level = {[FACTOR_FREE_SIZE] = FROM_TO(NUMPY_SIZE, NUMPY_SIZE),
                  [FACTOR_REPETITION] = FROM_TO(0, 3)}};
    size_t told = 1;
    check_scenarios_about(FACTOR_FREE_SIZE, 10000, &limits);
    expect_no_growth(300, use_and_free, use_and_free_rightly, &told,
                     "blocks are freed with the wrong sizes that NumPy is known to pass");
    check_huge_best_guess();
}

PROPERTY(free_any_size,
    .id     = "free.any-size", .level = SHOULD, .basis = BASIS_NEP,
    .answers_next_for = ABOUT(FREE_WRONG_SIZE), .scenarios = true,
    .title  = "any size argument is harmless",
    .clause = "free handles every size argument without harm.",
    .tests  = "The sizes include 0, values one off, and SIZE_MAX.",
    .source = "NEP 49, NumPy C-API functions: the size is a best guess, without a bound",
    .why    = "Extension modules call the handler too, and later NumPy versions may guess "
              "differently.",
    .hint   = "Do not read the size argument, or use it for statistics only.",
    .looks  = "expected memory to stop growing while blocks are freed with sizes that are wrong")
{
    const struct level_range any = FROM_TO(ANY_TOLD_SIZE, ANY_TOLD_SIZE);
    const struct scenario_limits small = {
        .most_size = 128 << 10,
        .most_bytes = 16 << 20,
        .level = {[FACTOR_FREE_SIZE] = any, [FACTOR_REPETITION] = FROM_TO(0, 3)}};
    const struct scenario_limits large = {
        .least_size = 64 << 10,
        .most_size = 4 << 20,
        .most_bytes = 32 << 20,
        .level = {[FACTOR_FREE_SIZE] = any,
                  [FACTOR_SIZES] = FROM_TO(ANY_SIZE, ANY_SIZE),
                  [FACTOR_MADE_BY] = FROM_TO(BY_MALLOC, BY_MALLOC),
                  [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 1),
                  [FACTOR_REPETITION] = FROM_TO(1, 1)}};
    static size_t told[] = {0, SIZE_MAX};
    check_scenarios_about(FACTOR_FREE_SIZE, 10000, &small);
    check_scenarios_about(FACTOR_FREE_SIZE, 20000, &large);
    for (size_t i = 0; i < LENGTH(told); i++)
        expect_no_growth(60, use_and_free, use_and_free_rightly, &told[i],
                         "blocks are freed with sizes that are wrong");
}

/* ---- contents ---------------------------------------------------------------------------- */

PROPERTY(free_any_contents,
    .id     = "free.any-contents", .level = MUST, .basis = BASIS_C, .scenarios = true,
    .ends_process = true, .quick = true,
    .title  = "block contents do not confuse free",
    .clause = "realloc and free accept a block regardless of the bytes in it and in the block "
              "before it.",
    .source = "C17 7.22.3.3, 7.22.3.5: the pointer alone says which block; 6.2.6.1: any bytes",
    .why    = "An array can hold anything, including the contents of a file or of freed memory.",
    .hint   = "Identify a block by its address, not by a marker in it or before it.",
    .looks  = "CRASH: SIGABRT, inside free(0x7f1240, 64)")
{
    enum { SIZE_16 = 5 };
    const struct scenario_limits limits = {.most_size = 3 << 10,
                                           .most_bytes = 1 << 20,
                                           .level[FACTOR_CONTENTS] = FROM_TO(ZEROS, HEADERS)};
    const struct scenario_limits small = {.most_bytes = 1 << 20,
                                          .level = {[FACTOR_SIZE] = FROM_TO(SIZE_16, SIZE_129),
                                                    [FACTOR_CONTENTS] = FROM_TO(HEADERS, HEADERS),
                                                    [FACTOR_REPETITION] = FROM_TO(1, 3)}};
    check_scenarios_about(FACTOR_CONTENTS, 3000, &limits);
    check_scenarios_about(FACTOR_CONTENTS, 8000, &small);
}
