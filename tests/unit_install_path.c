/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/place.c: where an installation is that was moved.
 */
#include "unit.h"

#include "base/install_path.h"

static const struct {
    const char *folder, *bindir, *configured, *moved; /* NULL: not such a place */
} moves[] = {
    {"/usr/local/bin", "/usr/local/bin", "/usr/local/lib/conform", "/usr/local/lib/conform"},
    {"/tmp/x/usr/local/bin", "/usr/local/bin", "/usr/local/lib/conform",
     "/tmp/x/usr/local/lib/conform"},
    {"/home/you/tools/bin", "/usr/local/bin", "/usr/local/share/conform/memcheck.supp",
     "/home/you/tools/share/conform/memcheck.supp"},
    {"/usr/bin", "/bin", "/lib/conform", "/usr/lib/conform"},
    {"/bin", "/bin", "/lib/conform", "/lib/conform"},
    {"/x/opt/c/bin", "/opt/c/bin", "/usr/lib/conform", "/x/usr/lib/conform"},
    {"/opt/c/bin", "/opt/c/bin", "/opt/c/bin/handlers", "/opt/c/bin/handlers"},
    {"/elsewhere", "/opt/c", "/opt/c/lib", "/elsewhere/lib"},
    {"/usr/lib/tools", "/usr/local/lib/tools", "/usr/local/lib64/conform", "/usr/lib64/conform"},
    {"/home/you/conform", "/usr/local/bin", "/usr/local/lib/conform", NULL},
    {"/home/you/cabin", "/usr/local/bin", "/usr/local/lib/conform", NULL},
    {"/bin", "/opt/c/bin", "/usr/lib/conform", NULL},
    {"", "/usr/local/bin", "/usr/local/lib/conform", NULL},
};

START_TEST(moved_as_the_table_says)
{
    char path[PATH_MAX] = "";
    bool found = relocated_path(moves[_i].folder, moves[_i].bindir, moves[_i].configured, path);
    ck_assert_int_eq(found, moves[_i].moved != NULL);
    if (found)
        ck_assert_str_eq(path, moves[_i].moved);
}
END_TEST

TCase *case_install_path(void)
{
    TCase *tcase = tcase_create("install_path");
    tcase_add_loop_test(tcase, moved_as_the_table_says, 0, ROWS(moves));
    return tcase;
}
