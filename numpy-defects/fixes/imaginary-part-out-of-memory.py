"""BUG: the imaginary part of a scalar without memory is a MemoryError

The zeros that it is made of were read without a look whether there was memory for them, and so was
the dtype, which is made anew for dates.
"""
import numpy_source


def fix(tree):
    with tree.function("numpy/_core/src/multiarray/scalartypes.c.src", "gentype_imag_get") as code:
        code.after(r"typecode = PyArray_DescrFromScalar\(.*;", """
            if (typecode == NULL) {
                return NULL;
            }
            """)
        code.after(r"temp = npy_alloc_cache_zero\(.*;", """
            if (temp == NULL) {
                Py_DECREF(typecode);
                return PyErr_NoMemory();
            }
            """)


if __name__ == "__main__":
    numpy_source.main(fix)
