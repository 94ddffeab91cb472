/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/model/options.c: which properties --run and --skip take.  What the command line says no to
 * ends the program, and is tested by tests/command_line.py.
 */
#include "unit.h"

#include "model/options.h"

/* --run and --skip in their order: "+glob" and "-glob". */
static const struct {
    const char *filters[4];
    const char *id;
    bool taken;
} rows[] = {
    {{NULL}, "malloc.extent", true},
    {{"+malloc.extent"}, "malloc.extent", true},
    {{"+malloc.extent"}, "malloc.zero", false},
    {{"+malloc.*"}, "malloc.extent", true},
    {{"+malloc.*"}, "calloc.product", false},
    {{"+m*"}, "malloc.extent", true}, /* * runs over the dot */
    {{"+[!m]alloc.extent"}, "malloc.extent", false},
    {{"+MALLOC.*"}, "malloc.extent", false},
    {{"+malloc.*", "+calloc.*"}, "malloc.extent", true},
    {{"+malloc.*", "+calloc.*"}, "free.null", false},
    {{"-malloc.*"}, "malloc.extent", false},
    {{"-malloc.*"}, "free.null", true},
    {{"+malloc.*", "-malloc.zero"}, "malloc.zero", false},
    {{"+malloc.*", "-malloc.zero"}, "malloc.extent", true},
    {{"-malloc.zero", "+malloc.*"}, "malloc.zero", true}, /* the last match decides */
    {{"-malloc.*", "+malloc.zero"}, "malloc.zero", true},
    {{"-malloc.*", "+malloc.zero"}, "malloc.extent", false},
    {{"-malloc.*", "+malloc.zero"}, "free.null", false}, /* there is a --run */
    {{"+*", "-malloc.*", "+malloc.zero"}, "free.null", true},
    {{"+*", "-malloc.*", "+malloc.zero"}, "malloc.extent", false},
    {{"+malloc.[extent"}, "malloc.extent", false}, /* not a pattern at all */
};

START_TEST(filters_take_what_the_table_says)
{
    struct filter filters[4];
    struct options options = {.filters = filters};
    while (options.filter_count < 4 && rows[_i].filters[options.filter_count] != NULL) {
        const char *word = rows[_i].filters[options.filter_count];
        filters[options.filter_count++] = (struct filter){word[0] == '+', word + 1, NULL};
    }
    ck_assert(options_take(&options, rows[_i].id) == rows[_i].taken);
}
END_TEST

TCase *case_options(void)
{
    TCase *tcase = tcase_create("options");
    tcase_add_loop_test(tcase, filters_take_what_the_table_says, 0, ROWS(rows));
    return tcase;
}
