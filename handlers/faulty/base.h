/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What mutants are made with: each is the plain handler of sound/base.h with one defect.
 *
 * A mutant is one MUTANT block: its name says the defect, and beside it stand the ids of the
 * properties that must catch it.  All mutants of a file, and all files of this folder that the
 * Makefile lists under faulty.la, end up in one object, handlers/faulty/.libs/faulty.so:
 *
 *     ./conform --handler handlers/faulty/.libs/faulty.so:calloc_ignores_elsize
 *
 * tests/mutants.py runs each and compares.
 */
#ifndef CONFORM_FAULTY_BASE_H
#define CONFORM_FAULTY_BASE_H

#include "sound/base.h"

/* MUTANT(defect, "property.id other.id", .malloc = its_malloc, ...): a handler that is the base's
 * but for the allocator members named, under the symbol `defect`. */
#define MUTANT(defect, kills, ...)                                                                 \
    NEP49_EXPORT const char kills_##defect[] = kills;                                              \
    FAULTY_HANDLER(defect, __VA_ARGS__)
#define FAULTY_HANDLER(defect, ...)                                                                \
    NEP49_EXPORT PyDataMem_Handler defect = {                                                      \
        .name = #defect, .version = 1, .allocator = {BASE_FUNCTIONS, __VA_ARGS__}}

/* The same of a defect in sizes that a size_t of 32 bits has not: there the handler is sound, or
 * what is about such sizes alone, `and_kills`, does not find it. */
#if SIZE_MAX > UINT32_MAX
#define MUTANT_OF_64_BITS MUTANT
#define MUTANT_ALSO_OF_64_BITS(defect, kills, and_kills, ...)                                      \
    MUTANT(defect, kills " " and_kills, __VA_ARGS__)
#else
#define MUTANT_ALSO_OF_64_BITS(defect, kills, and_kills, ...)                                      \
    NEP49_EXPORT const char sound_here_##defect[] = and_kills;                                     \
    MUTANT(defect, kills, __VA_ARGS__)
#define MUTANT_OF_64_BITS(defect, kills, ...)                                                      \
    NEP49_EXPORT const char sound_here_##defect[] = kills;                                         \
    FAULTY_HANDLER(defect, __VA_ARGS__)
#endif

/* MUTANT_GETTER(defect, "ids"): the same where the object is made by a function, the body of
 * which follows: PyDataMem_Handler *defect(const char **why) { ... } */
#define MUTANT_GETTER(defect, kills)                                                               \
    NEP49_EXPORT const char kills_##defect[] = kills;                                              \
    NEP49_EXPORT PyDataMem_Handler *defect(const char **why);                                      \
    PyDataMem_Handler *defect(const char **why)

#endif
