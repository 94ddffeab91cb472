/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The wording of a load that failed.
 */
#include "supervise/loaded.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "model/options.h"
#include "model/record.h"
#include "subject/static_tls.h"
#include "supervise/interrupt.h"

void loaded_start_again(int state, const char *why, char **argv)
{
    bool failed = state == LOAD_UNFIT || state == LOAD_FAILED;
    if (failed && static_tls_was_short(why) && interrupt_came() == 0)
        static_tls_start_again(argv, NULL, NULL);
}

void loaded_or_leave(const char *argument, int state, const char *why)
{
    if (state == LOAD_FAILED)
        leave_with(EXIT_CANNOT_LOAD, "%s: %s", text_safe(argument), text_safe(why));
    if (state == LOAD_CONTRADICTED)
        leave_with(EXIT_USAGE, "%s: %s", text_safe(argument), text_safe(why));
    if (state == LOAD_UNFIT)
        leave_with(EXIT_CANNOT_WORK_HERE, "%s: it says that it cannot work here: %s",
                   text_safe(argument), text_safe(why));
}
