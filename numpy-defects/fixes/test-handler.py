"""TST: the handler of test_mem_policy keeps the contract

data_memory.rst recommends it as the example.  Its realloc returned NULL + 64 where there was no
memory, left the old size in the header, so that each array that was resized was told as an
unmatched free, and its calloc made a header for each element.
"""
import os
import textwrap

import numpy_source


def fix(tree):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "sample.c")) as file:
        sample = textwrap.indent(file.read(), " " * 8).replace("\\n", "\\\\n")
    with tree.file("numpy/_core/tests/test_mem_policy.py") as text:
        text.replace(r"^        /\*\n         \* This struct allows(.*\n)*?"
                     r"(?=        /\* As an example, we use)", sample.replace("\\", "\\\\"))
        text.replace(r"static SecretDataAllocatorFuncs ", "static Allocator ")
        text.replace(r"shift_alloc,  ", "shift_malloc, ")
        text.replace(r"shift_zero,  ", "shift_calloc,")
        text.replace(r"void warn_on_free\(void \*capsule\) \{((?:.*\n)*?) +\};",
                     r"static void warn_on_free(PyObject *capsule) {\1        }")
        text.replace(r"\(PyCapsule_Destructor\)&warn_on_free", "warn_on_free")


if __name__ == "__main__":
    numpy_source.main(fix)
