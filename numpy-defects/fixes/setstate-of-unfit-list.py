"""BUG: __setstate__ stops at an item that cannot be set

The exception was left behind, and came out as SystemError.
"""
import numpy_source


def fix(tree):
    with tree.function("numpy/_core/src/multiarray/methods.c", "_setlist_pkl") as code:
        code.replace(r"^( +)setitem\(theobject, iter->dataptr, self\);",
                     r"\1if (setitem(theobject, iter->dataptr, self) < 0) {\n"
                     r"\1    Py_DECREF(iter);\n"
                     r"\1    return -1;\n"
                     r"\1}")


if __name__ == "__main__":
    numpy_source.main(fix)
