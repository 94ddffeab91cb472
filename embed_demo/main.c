/* SPDX-License-Identifier: BSD-3-Clause
 *
 * embed_demo: a C program that runs Python scripts and owns the memory of their NumPy arrays.
 *
 * main() stands at the end and says what happens in which order.  docs/embedding.md walks through
 * it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "memory.h" /* before subject.h, which then takes the struct of a handler from NumPy */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arguments.h"
#include "books.h"
#include "exception.h"
#include "host.h"
#include "interpreter.h"
#include "subject/subject.h"
#include "tables.h"
#include "tally.h"
#include "base/text.h"
#include "workers.h"

#ifndef SOURCE_DEMO
#error "SOURCE_DEMO is where demo.py is in the source tree"
#endif

/* The books of this program.  Static, because what NumPy was given lasts as long as the process. */
static struct books books;

/* demo.py stands beside this program, or in the source tree where that is another one. */
static char *demo_path(void)
{
    static char path[PATH_MAX + 16] = "";
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    while (length > 0 && path[length - 1] != '/')
        length--;
    if (length > 0)
        strcpy(path + length, "demo.py");
    if (length <= 0 || access(path, F_OK) != 0)
        snprintf(path, sizeof path, "%s", SOURCE_DEMO);
    return path;
}

/* Opens the script, before anything is started for it. */
static FILE *open_script(const char *path)
{
    struct stat status;
    FILE *file = fopen(path, "rbe");
    if (file == NULL || fstat(fileno(file), &status) != 0)
        exit(complain(STATUS_USAGE, "%s: %s; name a Python script", text_safe(path),
                      errno == ENOENT ? "there is no such file" : strerror(errno)));
    if (S_ISDIR(status.st_mode))
        exit(complain(STATUS_USAGE, "%s: is a directory; name a Python script", text_safe(path)));
    return file;
}

/* Loads the handler, for good: nothing unloads its code, which the last array may need.  By the
 * rules of nep49.h that happens under the GIL. */
static int load_handler(const struct subject_place *place, PyDataMem_Handler **handler)
{
    struct subject subject;
    char why[512] = "";
    const char *name = text_safe(place->argument);
    switch (subject_load(place, &subject, why, sizeof why)) {
    case LOAD_DONE:
        *handler = subject.handler;
        return 0;
    case LOAD_UNFIT:
        return complain(STATUS_CANNOT_WORK_HERE, "%s: it says that it cannot work here: %s", name,
                        why);
    default:
        return complain(STATUS_CANNOT_LOAD, "%s: %s", name, why);
    }
}

static int stdout_broke(void)
{
    return complain(STATUS_BROKE, "stdout cannot be written: %s", strerror(errno));
}

/* What happens while the interpreter is up.  The handler is installed after NumPy was imported, so
 * that NumPy's own arrays are no concern of it, and taken away again before the interpreter ends:
 * the arrays that are still alive then are freed by it none the less. */
static int run_with_handler(const struct subject_place *place, FILE *script,
                            const struct arguments *arguments)
{
    PyDataMem_Handler *handler = NULL;
    if (memory_import_numpy() != 0)
        return exception_complain("NumPy cannot be imported");
    int status = load_handler(place, &handler);
    if (status != 0)
        return status;
    const char *wrong = books_open(&books, handler, "main");
    if (wrong != NULL)
        return complain(STATUS_CANNOT_LOAD, "%s: %s", text_safe(place->argument), wrong);
    PyObject *before = memory_install(&books.handler, NULL);
    if (before == NULL)
        return exception_complain("NumPy does not take the handler");
    host_begin(&books);
    status = interpreter_run(script, arguments->script_argv[0], arguments->traceback);
    if (memory_restore(before) != 0)
        return exception_complain("NumPy does not take its own handler back");
    return status;
}

/* What can be said when Python has ended.  Where the script claimed something, a last line says
 * whether everything held. */
static int conclude(int status)
{
    bool claimed = tally_count() > 0;
    if (claimed)
        tables_prove_balance();
    if (tables_print(&books) != 0)
        return status != 0 ? status : stdout_broke();
    if (claimed) {
        putchar('\n');
        tally_end(status);
        if (fflush(stdout) != 0 && status == 0)
            return stdout_broke();
    }
    return status == 0 && !tally_held() ? 1 : status;
}

int main(int argc, char **argv)
{
    struct arguments arguments;
    arguments_read(argc, argv, &arguments);
    char *demo[] = {demo_path(), NULL};
    if (arguments.script_argc == 0) {
        arguments.script_argc = 1;
        arguments.script_argv = demo;
    }

    /* What can be wrong with the command line is found out before Python starts. */
    FILE *script = open_script(arguments.script_argv[0]);
    struct subject_place place;
    const char *wrong = subject_find(arguments.handler, &place);
    if (wrong != NULL)
        return complain(STATUS_CANNOT_LOAD, "%s", wrong);

    if (host_announce() != 0)
        return complain(STATUS_BROKE, "there is no memory");
    wrong = interpreter_start(arguments.python, arguments.isolated, arguments.script_argc,
                              arguments.script_argv);
    if (wrong != NULL)
        return complain(STATUS_BROKE, "%s: Python cannot be started: %s", arguments.python, wrong);
    int status = run_with_handler(&place, script, &arguments);
    tables_note_exit();
    status = interpreter_stop(status);

    if (books.handler.version != 0) {
        status = conclude(status);
        workers_end();
    }
    subject_place_free(&place);
    return status;
}
