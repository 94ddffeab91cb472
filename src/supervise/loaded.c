/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The wording of a load that failed.
 */
#include "supervise/loaded.h"

#include "base/text.h"
#include "model/options.h"
#include "model/record.h"

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
