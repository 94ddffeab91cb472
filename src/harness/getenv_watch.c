/* SPDX-License-Identifier: BSD-3-Clause
 *
 * As interpose.c: functions that stand before libc's own.
 */
#include "harness/getenv_watch.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/instrumented.h"
#include "harness/interpose.h"

static atomic_bool watching;
static struct asked_variable asked[ASKED_VARIABLES + 1];

const struct asked_variable *getenv_asked(void)
{
    return asked;
}

#if !CONFORM_SANITIZED /* which ask before anything of this program is ready */

static void note_asked(const char *name, const void *by)
{
    if (interpose_depth == 0 || !atomic_load(&watching) || strlen(name) >= sizeof asked->name)
        return;
    for (size_t i = 0; i < ASKED_VARIABLES; i++) {
        struct asked_variable *variable = &asked[i];
        if (variable->times == 0) {
            variable->by = by;
            strcpy(variable->name, name);
        }
        if (strcmp(variable->name, name) == 0) {
            variable->times++;
            return;
        }
    }
}

#pragma GCC visibility push(default)

char *getenv(const char *name)
{
    static char *(*libcs)(const char *);
    note_asked(name, __builtin_return_address(0));
    if (libcs == NULL)
        *(void **)&libcs = dlsym(RTLD_NEXT, "getenv");
    return libcs(name);
}

char *secure_getenv(const char *name)
{
    static char *(*libcs)(const char *);
    note_asked(name, __builtin_return_address(0));
    if (libcs == NULL)
        *(void **)&libcs = dlsym(RTLD_NEXT, "secure_getenv");
    return libcs(name);
}

#pragma GCC visibility pop

#endif

bool getenv_watch(void)
{
    char *(*volatile ask)(const char *) = getenv;
    atomic_store(&watching, true);
    interpose_enter();
    ask("PATH");
    interpose_leave();
    bool works = asked[0].times != 0;
    memset(asked, 0, sizeof asked);
    return works;
}
