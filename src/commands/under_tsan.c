/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --tsan: this program once more, with the runtime of ThreadSanitizer in it.
 */
#include "commands/under_tsan.h"

#include <stdlib.h>
#include <sys/personality.h>

#include "base/inside.h"
#include "base/instrumented.h"
#include "base/text.h"
#include "model/options.h"
#include "subject/object_file.h"

#define PRELOADED "LD_PRELOAD"
#define DONE "CONFORM_TSAN" /* tells the process that is started that it was */

/* The runtime wants some ranges of addresses for itself, where randomization may put others. */
static const char *start_again(char **argv, const char *runtime)
{
    const char *others = getenv(PRELOADED);
    bool has_others = others != NULL && *others != '\0';
    setenv(DONE, "1", 1);
    setenv(PRELOADED, has_others ? text("%s:%s", runtime, others) : runtime, 1);
    int persona = personality(0xffffffff);
    if (persona != -1)
        personality((unsigned long)persona | ADDR_NO_RANDOMIZE);
    return inside_start_again((const char *const[]){NULL}, argv);
}

void tsan_enter(char **argv, const struct subject_place *place)
{
    char runtime[OBJECT_NAME] = "";
    bool was_started = getenv(DONE) != NULL;
    const char *name = text_safe(place->argument);
    unsetenv(DONE);
    if (place->module != NULL)
        leave_with(EXIT_USAGE, "--tsan: %s is in a Python module; name a shared object", name);
    if (!object_file_wants_tsan(place->path, runtime))
        leave_with(EXIT_USAGE,
                   "--tsan: %s is not compiled for ThreadSanitizer; build another one, with: cc "
                   "-g -fsanitize=thread -shared -fPIC",
                   name);
    if (tsan_is_running())
        return;
    if (was_started || *runtime == '\0')
        leave_with(EXIT_HARNESS_BROKE,
                   "--tsan: %s: the runtime %s; begin the command with LD_PRELOAD=$(gcc "
                   "-print-file-name=libtsan.so), or clang and its libclang_rt.tsan-x86_64.so",
                   name, was_started ? text("%s is not found", runtime) : "is not named in it");
    leave_with(EXIT_HARNESS_BROKE, "--tsan: %s", start_again(argv, runtime));
}
