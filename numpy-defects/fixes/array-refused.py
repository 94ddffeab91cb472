"""BUG: functions look whether they have the array that they made

A scalar that is indexed and loadtxt of a text without rows used an array that they had no memory
for; the transfer function of a user's dtype returned NPY_FAIL, which is 0, to callers that take a
negative number for a failure.  loadtxt's last resize, where it fails, has its converters released
a second time no more.
"""
import numpy_source

FOLDER = "numpy/_core/src/multiarray/"


def fix(tree):
    with tree.function(FOLDER + "scalartypes.c.src", "gen_arrtype_subscript") as code:
        code.after(r"res = PyArray_FromScalar\(.*;", """
            if (res == NULL) {
                return NULL;
            }
            """)
    with tree.function(FOLDER + "textreading/rows.c", "read_rows") as code:
        code.after(r"PyArray_Empty\([^;]*;", """
            if (data_array == NULL) {
                return NULL;
            }
            """)
        code.after(r"PyMem_FREE\(conv_funcs\);(?=\n    \}\n\n    if \(data_array == NULL\))",
                   "conv_funcs = NULL;")
    with tree.function(FOLDER + "dtype_transfer.c", "wrap_copy_swap_function") as code:
        code.replace(r"return NPY_FAIL;", "return -1;", times=2)


if __name__ == "__main__":
    numpy_source.main(fix)
