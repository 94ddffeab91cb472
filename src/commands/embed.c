/* SPDX-License-Identifier: BSD-3-Clause
 *
 * By its libpython, or from inside its executable, where it was found before.
 */
#include "commands/embed.h"

#include <stddef.h>

#include "base/inside.h"
#include "base/text.h"
#include "python/api.h"
#include "python/interpreter.h"
#include "subject/static_tls.h"
#include "supervise/interrupt.h"

/* NULL, or one line. */
static const char *start_inside(const struct interpreter *python, char **argv)
{
    if (interrupt_came() != 0)
        interrupt_die(); /* nobody would know of it */
    static_tls_pass_on();
    return text("%s has no libpython, the shared library, %s", text_safe(python->executable),
                inside_start(python->program, python->executable, argv));
}

const char *embed(const struct options *options, bool wants_numpy, char **argv)
{
    struct interpreter python = {0};
    const char *wrong = NULL;
    if (inside_python() != NULL)
        python =
            (struct interpreter){.executable = inside_python(), .library = "", .has_numpy = true};
    else
        wrong = interpreter_find(options->python, &python);
    if (wrong != NULL && interrupt_came() != 0)
        interrupt_die(); /* that may be why */
    if (wrong == NULL && wants_numpy && !python.has_numpy)
        wrong = text("%s has no NumPy: %s -m pip install numpy", text_safe(python.executable),
                     text_shell(python.executable));
    if (wrong == NULL && *python.library == '\0' && inside_python() == NULL)
        wrong = start_inside(&python, argv);
    if (wrong == NULL)
        wrong = python_api_open(python.library);
    if (wrong != NULL)
        leave_with(python.is_late && options->python == NULL ? EXIT_HARNESS_BROKE : EXIT_USAGE,
                   "%s", wrong);
    return python.executable;
}
