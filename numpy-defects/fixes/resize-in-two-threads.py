"""BUG: ndarray.resize and __setstate__ are critical sections of their array

Without a GIL, two threads that resized or unpickled into one array freed its block twice.
"""
import numpy_source

FOLDER = "numpy/_core/src/multiarray/"
LEAVES = ["runtime.resize-while-read"]  # a reader would have to keep the block


def fix(tree):
    with tree.function(FOLDER + "methods.c", "array_resize") as code:
        code.replace(r"^    int ret = PyArray_Resize_int\((.*)\);",
                     "    int ret;\n"
                     "    Py_BEGIN_CRITICAL_SECTION(self);\n"
                     "    ret = PyArray_Resize_int(\\1);\n"
                     "    Py_END_CRITICAL_SECTION();")
    with tree.file(FOLDER + "shape.c") as code:  # Python has them from 3.13 on
        code.after(r'^#include "npy_config.h"', '#include "npy_pycompat.h"')
    with tree.function(FOLDER + "shape.c", "PyArray_Resize") as code:
        code.replace(r"^    if \((PyArray_Resize_int\(.*\)) < 0\) \{",
                     "    int ret;\n"
                     "    Py_BEGIN_CRITICAL_SECTION(self);\n"
                     "    ret = \\1;\n"
                     "    Py_END_CRITICAL_SECTION();\n"
                     "    if (ret < 0) {")
    with tree.function(FOLDER + "methods.c", "array_setstate") as code:
        code.before(r"^    Py_INCREF\(typecode\);\n    Py_INCREF\(rawdata\);",
                    "Py_BEGIN_CRITICAL_SECTION(self);")
        code.before(r"^    return result;", "Py_END_CRITICAL_SECTION();")


if __name__ == "__main__":
    numpy_source.main(fix)
