"""BUG: PyDataMem_SetHandler keeps no reference where it refuses a capsule

It had fetched the handler in force, and did not let go of it.
"""
import numpy_source


def fix(tree):
    with tree.function("numpy/_core/src/multiarray/alloc.c", "PyDataMem_SetHandler") as code:
        code.before(r"PyErr_SetString\(PyExc_ValueError, \"Capsule must",
                    "Py_DECREF(old_handler);")


if __name__ == "__main__":
    numpy_source.main(fix)
