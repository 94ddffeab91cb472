"""BUG: ufunc.at looks whether it has the views that it works in

Where there was no memory for the one that is written to, the iterator made an array of another dtype
in its place, and was then led to the array, past the end of which it wrote.
"""
import numpy_source


def fix(tree):
    path = "numpy/_core/src/umath/ufunc_object.c"
    with tree.function(path, "ufunc_at__slow_iter") as code:
        code.before(r"/\* Set up the flags \*/", """
            for (int i = 0; i < nop; i++) {
                if (array_operands[i] == NULL) {
                    for (int j = 0; j < nop; j++) {
                        Py_XDECREF(array_operands[j]);
                    }
                    return -1;
                }
            }
            """)


if __name__ == "__main__":
    numpy_source.main(fix)
