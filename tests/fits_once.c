/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A handler that says from the second process on that it cannot work, as one does whose device is
 * gone.  The file that FITS_ONCE names is there then.
 */
#include <fcntl.h>
#include <unistd.h>

#include "sound/base.h"

NEP49_EXPORT PyDataMem_Handler *nep49_get_handler(const char **why)
{
    static PyDataMem_Handler handler = {
        .name = "fits_once", .version = 1, .allocator = {FUNCTIONS(base)}};
    int file = open(getenv("FITS_ONCE"), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (file < 0)
        *why = "the device is gone";
    else
        close(file);
    return file < 0 ? NULL : &handler;
}
