/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A C program that runs a Python script and owns the memory of the script's NumPy arrays.
 *
 *     cc -o minimal minimal.c -DPYTHON="\"$(python3 -c 'import sys; print(sys.executable)')\"" \
 *         -I"$(python3 -c 'import numpy; print(numpy.get_include())')" \
 *         $(python3-config --includes) $(python3-config --embed --ldflags)
 *     ./minimal script.py
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifndef NPY_TARGET_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION /* the first NumPy that has handlers */
#endif
#include <numpy/arrayobject.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* The handler: libc's own functions, and a count of blocks.  Any thread that has arrays calls it,
 * and realloc comes without the GIL now and then: so the counts are atomic. */
static struct counts {
    atomic_long made, alive;
} counts;

static void *count(struct counts *c, void *block)
{
    c->made += block != NULL;
    c->alive += block != NULL;
    return block;
}

static void *counting_malloc(void *ctx, size_t size)
{
    return count(ctx, malloc(size > 0 ? size : 1));
}

static void *counting_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return count(ctx, calloc(nelem, elsize));
}

static void *counting_realloc(void *ctx, void *ptr, size_t size)
{
    if (ptr == NULL)
        return counting_malloc(ctx, size);
    return realloc(ptr, size > 0 ? size : 1); /* with 0, libc's would free the block */
}

/* ptr can be NULL.  The size that NumPy says is now and then wrong. */
static void counting_free(void *ctx, void *ptr, size_t size)
{
    (void)size;
    ((struct counts *)ctx)->alive -= ptr != NULL;
    free(ptr);
}

/* Static: an array goes back to the handler that made it, perhaps after Python has ended. */
static PyDataMem_Handler handler = {
    .name = "counting",
    .version = 1,
    .allocator = {&counts, counting_malloc, counting_calloc, counting_realloc, counting_free},
};

/* NumPy finds the handler in a capsule of this name, to which each array and each context that has
 * it takes a reference: ours can go.  0, or -1 with an exception set. */
static int install_handler(void)
{
    if (_import_array() != 0) /* the macro import_array() would return from here in its own way */
        return -1;
    PyObject *capsule = PyCapsule_New(&handler, "mem_handler", NULL);
    PyObject *before = capsule != NULL ? PyDataMem_SetHandler(capsule) : NULL;
    Py_XDECREF(capsule);
    Py_XDECREF(before);
    return before != NULL ? 0 : -1;
}

int main(int argc, char **argv)
{
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    config.parse_argv = 0; /* options are the script's, not Python's */
    /* The interpreter whose packages are wanted; that of a virtual environment will do. */
    PyStatus status = PyConfig_SetBytesString(&config, &config.program_name, PYTHON);
    if (!PyStatus_Exception(status) && argc > 1)
        status = PyConfig_SetBytesString(&config, &config.run_filename, argv[1]);
    if (!PyStatus_Exception(status) && argc > 1)
        status = PyConfig_SetBytesArgv(&config, argc - 1, argv + 1);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status))
        Py_ExitStatusException(status); /* prints why, and exits */
    if (install_handler() != 0) {
        PyErr_Print();
        return 1;
    }
    int result = Py_RunMain(); /* ends Python; if the script calls sys.exit(), also the process */
    printf("%ld blocks were made, %ld are left\n", (long)counts.made, (long)counts.alive);
    return result != 0 ? result : counts.alive != 0;
}
