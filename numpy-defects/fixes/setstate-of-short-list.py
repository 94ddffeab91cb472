"""BUG: __setstate__ takes no list that is shorter than the shape

Items behind the end of the list were taken for objects.
"""
import numpy_source


def fix(tree):
    with tree.function("numpy/_core/src/multiarray/methods.c", "_setlist_pkl") as code:
        code.before(r"setitem = PyDataType_GetArrFuncs", """
            if (PyList_GET_SIZE(list) < PyArray_SIZE(self)) {
                PyErr_Format(PyExc_ValueError,
                        "a list of %zd objects for an array of %" NPY_INTP_FMT,
                        PyList_GET_SIZE(list), PyArray_SIZE(self));
                return -1;
            }
            """)


if __name__ == "__main__":
    numpy_source.main(fix)
