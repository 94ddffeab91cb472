"""DOC: the sample of NEP 49 compiles, and keeps the contract

As printed it did not compile, for a line that was left over.  Its realloc returned NULL + 64 where
there was no memory and left the old size in the header, its calloc multiplied without a look and
made a header for each element, and sizes were written as text.  This one passes conform's battery.
"""
import os
import textwrap

import numpy_source

INCLUDES = """\
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>

"""
HANDLER = """
static Allocator new_handler_ctx = {malloc, calloc, realloc, free};

static PyDataMem_Handler new_handler = {
    "secret_data_allocator",
    1,
    {
        &new_handler_ctx,
        shift_malloc,
        shift_calloc,
        shift_realloc,
        shift_free
    }
};
"""


def fix(tree):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "sample.c")) as file:
        sample = INCLUDES + file.read() + HANDLER
    with tree.file("doc/neps/nep-0049-data-allocation-strategies.rst") as text:
        text.replace(r"^This code adds a 64-byte header[^.]*\.[^.]*\.\n\n\.\. code-block:: c\n"
                     r"(?:\n|    .*\n)*",
                     "This code puts a header of 64 bytes before each block, which says what was\n"
                     "asked for.  Before a block is freed, the size that ``free`` is told is\n"
                     "compared with it; the one in the header is the right one.\n\n"
                     ".. code-block:: c\n\n"
                     + (textwrap.indent(sample, "    ") + "\n").replace("\\", r"\\"))


if __name__ == "__main__":
    numpy_source.main(fix)
