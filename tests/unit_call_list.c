/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/repro/call_list.c: logged calls with addresses become a list of calls with block numbers.
 */
#include "unit.h"

#include <stdio.h>
#include <sys/mman.h>

#include "repro/call_log.h"

enum { FIRST = 7, CHILD = 8, OTHER = 9, MOST = 12 };

struct entry {
    pid_t process;
    enum step_kind kind;
    uintptr_t given, result;
    uint64_t first, word; /* 0: the block has not one word again and again */
};

static const struct {
    const char *words; /* "m0:24 f0:24x3": kind, block, `first`, and `times` if more than one */
    enum list_of which;
    bool tidy;
    struct entry log[MOST]; /* up to one without a process */
} cases[] = {
    {"m0:24 m1:25 r0:48 m2:26 f0:48 f2:26 n0:7 r1:100 f1:25",
     OF_LAST_PROCESS,
     false,
     {{FIRST, STEP_MALLOC, 0, 0x1000, 24, 0},
      {FIRST, STEP_MALLOC, 0, 0x2000, 25, 0},
      {FIRST, STEP_REALLOC, 0x1000, 0x3000, 48, 0},
      {FIRST, STEP_MALLOC, 0, 0x1000, 26, 0}, /* again, and another block */
      {FIRST, STEP_FREE, 0x3000, 0, 48, 0},
      {FIRST, STEP_FREE, 0x1000, 0, 26, 0},
      {FIRST, STEP_FREE, 0, 0, 7, 0},
      {FIRST, STEP_FREE, 0x4000, 0, 1, 0},      /* of no known block */
      {FIRST, STEP_REALLOC, 0x2000, 0, 100, 0}, /* refused: the block stays */
      {FIRST, STEP_FREE, 0x2000, 0, 25, 0}}},
    {"m0:8 w0:255 f0:8",
     OF_LAST_PROCESS,
     false,
     {{FIRST, STEP_MALLOC, 0, 0x1000, 8, 0}, {FIRST, STEP_FREE, 0x1000, 0, 8, 255}}},
    {"m0:1 m1:3 f0:1",
     OF_LAST_PROCESS,
     false,
     {{FIRST, STEP_MALLOC, 0, 0x1000, 1, 0},
      {OTHER, STEP_MALLOC, 0, 0x2000, 2, 0},
      {CHILD, STEP_MALLOC, 0, 0x2000, 3, 0},
      {FIRST, STEP_MALLOC, 0, 0x2000, 4, 0}, /* meanwhile */
      {CHILD, STEP_FREE, 0x1000, 0, 1, 0}}},
    {"m0:1 m1:4",
     OF_FIRST_PROCESS,
     false,
     {{FIRST, STEP_MALLOC, 0, 0x1000, 1, 0},
      {CHILD, STEP_MALLOC, 0, 0x2000, 3, 0},
      {FIRST, STEP_MALLOC, 0, 0x2000, 4, 0}}},
    {"M0:40x2 m1:16x3 f1:16x2 f3:17",
     OF_LAST_PROCESS,
     true,
     {{FIRST, STEP_MALLOC, 0, 0x1000, 40, 0},
      {FIRST, STEP_FREE, 0x1000, 0, 40, 0},
      {FIRST, STEP_MALLOC, 0, 0x1000, 40, 0},
      {FIRST, STEP_FREE, 0x1000, 0, 40, 0},
      {FIRST, STEP_MALLOC, 0, 0x1000, 16, 0},
      {FIRST, STEP_MALLOC, 0, 0x2000, 16, 0},
      {FIRST, STEP_MALLOC, 0, 0x3000, 16, 0},
      {FIRST, STEP_FREE, 0x1000, 0, 16, 0},
      {FIRST, STEP_FREE, 0x2000, 0, 16, 0},
      {FIRST, STEP_FREE, 0x3000, 0, 17, 0}}}, /* a wrong size is no row with the others */
    {"", OF_LAST_PROCESS, true, {{0, STEP_MALLOC, 0, 0, 0, 0}}},
};

START_TEST(addresses_become_blocks)
{
    static const char letters[] = " mcrfMCnw";
    char words[256] = "";
    size_t used = 0;
    struct call_log *log = call_log_create();
    ck_assert_ptr_nonnull(log);
    log->process = FIRST;
    for (const struct entry *entry = cases[_i].log; entry->process != 0; entry++)
        log->calls[log->count++] = (struct logged){.step = {.kind = (uint8_t)entry->kind,
                                                            .times = 1,
                                                            .pointer = (const void *)entry->given,
                                                            .first = entry->first},
                                                   .process = entry->process,
                                                   .result = (const void *)entry->result,
                                                   .word = entry->word,
                                                   .has_word = entry->word != 0};
    struct call_list list = call_list_of(log, cases[_i].which);
    if (cases[_i].tidy)
        call_list_tidy(&list);
    for (size_t i = 0; i < list.count && used < sizeof words; i++) {
        const struct step *step = &list.at[i];
        used += (size_t)snprintf(words + used, sizeof words - used, "%s%c%u:%zu", i > 0 ? " " : "",
                                 letters[step->kind], step->block, (size_t)step->first);
        if (step->times > 1)
            used += (size_t)snprintf(words + used, sizeof words - used, "x%u", step->times);
    }
    ck_assert_str_eq(words, cases[_i].words);
    call_list_free(&list);
    munmap(log, sizeof *log);
}
END_TEST

TCase *case_call_list(void)
{
    TCase *tcase = tcase_create("call_list");
    tcase_add_loop_test(tcase, addresses_become_blocks, 0, sizeof cases / sizeof *cases);
    return tcase;
}
