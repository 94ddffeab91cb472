/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of the host that others may look at and write to: Python by a capsule, anyone by DLPack.
 *
 * Whoever includes this has included Python.h.
 */
#ifndef EMBED_DEMO_LOAN_H
#define EMBED_DEMO_LOAN_H

#include <stddef.h>

/* Numbers that stay until the last of those who hold them has let go. */
struct loan {
    double *numbers;
    size_t count;
    int holders; /* the host is one of them; changed atomically */
};

/* Numbers, all 0, with the caller as their one holder; or NULL. */
struct loan *loan_new(size_t count);

/* One holder less, from any thread, with or without the GIL; the last one frees all. */
void loan_let_go(struct loan *loan);

/* How many hold it at this moment. */
int loan_holders(const struct loan *loan);

/* An array over the numbers, row by row, which holds them by a capsule as its base; so do its
 * views.  `ndim` lengths in `shape`.  NULL with an exception set. */
PyObject *loan_as_array(struct loan *loan, int ndim, const Py_ssize_t *shape);

/* An object with __dlpack__ and __dlpack_device__, which any from_dlpack() makes an array of, in
 * one dimension.  NULL with an exception set. */
PyObject *loan_as_dlpack(struct loan *loan);

#endif
