/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conform-engine.so: where it is preloaded into an interpreter's executable, this program's main is
 * what libc starts.  Every other program that it comes to on the way starts as it would.
 */
#include <dlfcn.h>

#include "base/reexec.h"

int main(int argc, char **argv);

static int start(int argc, char **argv, char **environment)
{
    (void)environment;
    return main(argc, argv);
}

typedef int main_function(int argc, char **argv, char **environment);

/* As glibc has it; before 2.34 programs brought init and fini along. */
int __libc_start_main(main_function *its, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);

__attribute__((visibility("default"))) int
__libc_start_main(main_function *its, int argc, char **argv, void (*init)(void), void (*fini)(void),
                  void (*rtld_fini)(void), void *stack_end)
{
    typeof(__libc_start_main) *libcs;
    *(void **)&libcs = dlsym(RTLD_NEXT, "__libc_start_main");
    return libcs(reexec_is_meant(argc, argv) ? start : its, argc, argv, init, fini, rtld_fini,
                 stack_end);
}
