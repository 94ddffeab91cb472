/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/runner/memcheck.c: which errors of a log are the same.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/memcheck.h"

static char folder[] = "unit-memcheck-XXXXXX", log_path[sizeof folder + 8];

static void make_folder(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(log_path, sizeof log_path, "%s/7", folder);
}

static void remove_folder(void)
{
    char command[sizeof folder + 16];
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* Lines behind "==7== ", as valgrind 3.19 wrote them. */
static void write_log(const char *lines)
{
    FILE *file = fopen(log_path, "w");
    ck_assert_ptr_nonnull(file);
    while (*lines != '\0') {
        size_t length = strcspn(lines, "\n");
        fprintf(file, "==7== %.*s\n", (int)length, lines);
        lines += length + (lines[length] == '\n');
    }
    fclose(file);
}

static struct memcheck_errors errors_in(const char *lines)
{
    struct memcheck_errors errors = {0};
    write_log(lines);
    memcheck_read_log(&errors, folder, 7);
    return errors;
}

#define CONDITION "Conditional jump or move depends on uninitialised value(s)\n"
#define INNER                                                                                      \
    "   at 0xAB3D822: Py_DECREF (object.h:537)\n"                                                  \
    "   by 0xAB3D822: load_put (_pickle.c:6417)\n"                                                 \
    "   by 0xAB3F169: _pickle_loads (_pickle.c.h:834)\n"                                           \
    "   by 0x49F9331: cfunction_vectorcall (methodobject.c:443)\n"
#define CALLER "   by 0x49AABA2: _PyEval_EvalFrame (ceval.c:4769)\n"
#define READ                                                                                       \
    "Invalid read of size 8\n"                                                                     \
    "   at 0x10947C: sum (loops.c:8)\n"                                                            \
    "   by 0x10949F: array_sum (array.c:47)\n"
#define BEHIND " Address 0x4a4104a is 0 bytes after a block of size 10 alloc'd\n"
#define INSIDE " Address 0x4a4104a is 2 bytes inside a block of size 10 free'd\n"
#define MADE "   at 0x48417B4: malloc (in /usr/libexec/valgrind/vgpreload_memcheck.so)\n"
#define OF_HANDLER MADE "   by 0x109403: handler_malloc (calls.c:152)\n"
#define OF_OTHER MADE "   by 0x109403: PyMem_Malloc (obmalloc.c:77)\n"

/* Two logs, and whether what they have is the same. */
static const struct {
    const char *what, *one, *other;
    int same;
} pairs[] = {
    {"as they are", CONDITION INNER CALLER, CONDITION INNER CALLER, 1},
    {"another kind", CONDITION INNER CALLER, "Use of uninitialised value of size 8\n" INNER CALLER,
     0},
    {"another thread", CONDITION INNER CALLER, "Thread 2:\n" CONDITION INNER CALLER, 1},
    {"another fourth", CONDITION INNER CALLER,
     CONDITION INNER "   by 0x49AABA2: partial_vectorcall (_functoolsmodule.c:223)\n", 0},
    {"another fifth", CONDITION INNER CALLER "   by 0x1: main (main.c:1)\n",
     CONDITION INNER CALLER "   by 0x1: other (other.c:1)\n", 1},
    {"another address", CONDITION "   at 0x1000: f (f.c:1)\n",
     CONDITION "   at 0x2000: f (f.c:1)\n", 1},
    {"no name", CONDITION "   at 0x1040: ??? (in /lib/p.so)\n",
     CONDITION "   at 0x2040: ??? (in /lib/p.so)\n", 1},
    {"no name, another place", CONDITION "   at 0x1040: ??? (in /lib/p.so)\n",
     CONDITION "   at 0x1048: ??? (in /lib/p.so)\n", 0},
    {"an address in words", "Source and destination overlap in memcpy(0x1, 0x2, 5)\n" INNER,
     "Source and destination overlap in memcpy(0x3, 0x4, 5)\n" INNER, 1},
    {"another's block", READ BEHIND OF_OTHER, READ INSIDE OF_OTHER, 1},
    {"a block of the handler", READ BEHIND OF_OTHER, READ BEHIND OF_HANDLER, 0},
    {"where in that", READ BEHIND OF_HANDLER, READ INSIDE OF_HANDLER, 0},
    {"how far from that", READ BEHIND OF_HANDLER,
     READ " Address 0x5000000 is 8 bytes after a block of size 200 alloc'd\n" OF_HANDLER, 1},
};

START_TEST(which_are_the_same)
{
    struct memcheck_errors one = errors_in(pairs[_i].one), other = errors_in(pairs[_i].other);
    ck_assert_msg(one.count == 1 && other.count == 1, "%s: not one each", pairs[_i].what);
    memcheck_subtract(&one, &other);
    ck_assert_msg(one.count == (pairs[_i].same ? 0 : 1), "%s", pairs[_i].what);
    memcheck_errors_free(&one);
    memcheck_errors_free(&other);
}
END_TEST

/* Logs, how many errors they have, and the first message. */
static const struct {
    const char *log;
    size_t count;
    const char *message;
} logs[] = {
    {"", 0, NULL},
    {"Warning: set address range perms: large range [0x1, 0x2) (undefined)\n", 0, NULL},
    {"\n\nProcess terminating with default action of signal 11 (SIGSEGV)\n"
     " Access not within mapped region at address 0x10\n" INNER "\n",
     0, NULL},
    {READ BEHIND OF_HANDLER "\n" CONDITION INNER CALLER "\n\n", 2,
     "Invalid read of size 8 at sum (loops.c:8), from array_sum (array.c:47)"},
    {READ BEHIND OF_HANDLER "\n" READ BEHIND OF_HANDLER "\n", 1,
     "Invalid read of size 8 at sum (loops.c:8), from array_sum (array.c:47)"},
    {"Invalid write of size 1\n"
     "   at 0x1: m (errs.c:13)\n   by 0x2: handler_malloc (calls.c:152)\n   by 0x3: main (m.c:1)\n",
     1, "Invalid write of size 1 at m (errs.c:13)"},
    {"Invalid write of size 1\n   at 0x1", 1, "Invalid write of size 1 at "}, /* cut off */
};

START_TEST(what_is_an_error)
{
    struct memcheck_errors errors = errors_in(logs[_i].log);
    ck_assert_uint_eq(errors.count, logs[_i].count);
    if (logs[_i].message != NULL)
        ck_assert_str_eq(errors.all[0].message, logs[_i].message);
    memcheck_errors_free(&errors);
}
END_TEST

TCase *case_memcheck(void)
{
    TCase *tcase = tcase_create("memcheck");
    tcase_add_unchecked_fixture(tcase, make_folder, remove_folder);
    tcase_add_loop_test(tcase, which_are_the_same, 0, ROWS(pairs));
    tcase_add_loop_test(tcase, what_is_an_error, 0, ROWS(logs));
    return tcase;
}
