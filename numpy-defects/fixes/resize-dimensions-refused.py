"""BUG: a resize asks for room for its dimensions before anything changes

Where there was no memory for the lengths of more dimensions, the array had their number already,
and lengths from behind the end of its old ones; its data was of the new size.
"""
import numpy_source


def fix(tree):
    with tree.function("numpy/_core/src/multiarray/shape.c", "PyArray_Resize_int") as code:
        code.before(r"if \(oldnbytes != newnbytes\) \{", """
            if (new_nd > PyArray_NDIM(self)) {
                /* Room for more lengths comes first: nothing can fail once the data has changed */
                dimptr = PyDimMem_RENEW(PyArray_DIMS(self), 3 * new_nd);
                if (dimptr == NULL) {
                    PyErr_NoMemory();
                    return -1;
                }
                ((PyArrayObject_fields *)self)->dimensions = dimptr;
                ((PyArrayObject_fields *)self)->strides = dimptr + PyArray_NDIM(self);
            }

            """)
        code.cut(r"/\* Need new dimensions .*\n(.*\n)*?.*->dimensions = dimptr;(?=\n.*new_nd;)")
        code.replace(r"->strides = dimptr \+ new_nd;",
                     "->strides = PyArray_DIMS(self) + new_nd;")


if __name__ == "__main__":
    numpy_source.main(fix)
