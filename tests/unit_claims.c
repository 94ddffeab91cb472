/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/model/claims.c: reading what a subject promises.
 */
#include "unit.h"

#include <string.h>

#include "model/claims.h"

static const struct {
    const char *words;
    size_t alignment;
    const char *wrong; /* how the line begins, or NULL */
} rows[] = {
    {"", 0, NULL},
    {"alignment=64", 64, NULL},
    {"\talignment=64\n", 64, NULL},
    {"alignment=064", 64, NULL},
#if SIZE_MAX > UINT32_MAX
    {"alignment=1099511627776", (size_t)1 << 40, NULL},
#endif
    {"alignment=16 alignment=64", 64, NULL}, /* each is a promise, and 64 keeps both */
    {"alignment=64 alignment=16", 64, NULL},
    {"alignment=2199023255552", 0, "alignment=2199023255552: "},
    {"alignment=18446744073709551616", 0, "alignment=18446744073709551616: "},
    {"alignment=0", 0, "alignment=0: "},
    {"alignment=48", 0, "alignment=48: "},
    {"alignment=-64", 0, "alignment=-64: "},
    {"alignment=0x40", 0, "alignment=0x40: "},
    {"alignment=", 0, "alignment=: "},
    {"alignment =64", 0, "alignment: "},
    {"alignmen=64", 0, "alignmen=64: "},
    {"alignment=64,numa", 0, "alignment=64,numa: "},
    {"alignment=64 numa=0", 0, "numa=0: "},
    {"=64", 0, "=64: "},
    {"hugepage=18446744073709551615", 0, "hugepage=18446744073709551615: too"},
    {"hugepage=0", 0, "hugepage=0: not a"},
    {"numa=local@1 numa=local@4096", 0, NULL},
    {"numa=bind:0-2@9 numa=bind:2,0,1@9", 0, NULL},
    {"numa=interleave:1023@1", 0, NULL},
    {"numa=bind:1024@1", 0, "numa=bind:1024@1: nodes"},
    {"numa=bind:3-1@1", 0, "numa=bind:3-1@1: there is no"},
    {"numa=bind:@1", 0, "numa=bind:@1: nodes"},
    {"numa=bind:0-1-2@1", 0, "numa=bind:0-1-2@1: nodes"},
    {"numa=bind@1", 0, "numa=bind@1: not "},
    {"numa=local:0@1", 0, "numa=local:0@1: not "},
    {"numa=local", 0, "numa=local: not "},
    {"numa=local@", 0, "numa=local@: not a"},
    {"numa=local@0", 0, "numa=local@0: not a"},
    {"numa=bind:0@1 numa=local@1", 0, "numa=local@1: contradicts "},
    {"numa=bind:0@1 numa=bind:1@1", 0, "numa=bind:1@1: contradicts "},
    {"guard=after guard=before", 0, "guard=before: contradicts "},
    {"guard=after guard=after", 0, NULL},
};

START_TEST(the_stronger_of_two_is_kept)
{
    struct claims claims;
    ck_assert_ptr_null(
        claims_parse("shm=4096 hugepage=9 pinned=7 alignment=64 numa=local@6", &claims));
    ck_assert_ptr_null(
        claims_add("shm=8192 hugepage=8 pinned=70 alignment=32 numa=local@8", &claims));
    ck_assert_uint_eq(claims.shm, 4096);
    ck_assert_uint_eq(claims.hugepage, 8);
    ck_assert_uint_eq(claims.pinned, 7);
    ck_assert_uint_eq(claims.numa_from, 6);
    ck_assert_uint_eq(claims.alignment, 64);
}
END_TEST

START_TEST(claims_read_as_the_table_says)
{
    struct claims claims;
    const char *wrong = claims_parse(rows[_i].words, &claims);
    if (rows[_i].wrong == NULL) {
        ck_assert_pstr_eq(wrong, NULL);
        ck_assert_uint_eq(claims.alignment, rows[_i].alignment);
        return;
    }
    ck_assert_ptr_nonnull(wrong);
    ck_assert_msg(strncmp(wrong, rows[_i].wrong, strlen(rows[_i].wrong)) == 0,
                  "\"%s\" does not begin with \"%s\"", wrong, rows[_i].wrong);
    ck_assert_uint_gt(strlen(wrong), strlen(rows[_i].wrong)); /* and says what is wrong */
}
END_TEST

TCase *case_claims(void)
{
    TCase *tcase = tcase_create("claims");
    tcase_add_test(tcase, the_stronger_of_two_is_kept);
    tcase_add_loop_test(tcase, claims_read_as_the_table_says, 0, ROWS(rows));
    return tcase;
}
