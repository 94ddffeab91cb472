"""BUG: np.array of a buffer raises MemoryError where there is no memory to look at it

Any exception was taken for a buffer that cannot be had, and the buffer for a sequence then, of other
numbers.
"""
import numpy_source


def fix(tree):
    with tree.function("numpy/_core/src/multiarray/ctors.c", "_array_from_array_like") as code:
        code.before(r"/\* TODO: Should probably not blanket ignore errors", """
            if (PyErr_ExceptionMatches(PyExc_MemoryError)) {
                return NULL;
            }
            """)


if __name__ == "__main__":
    numpy_source.main(fix)
