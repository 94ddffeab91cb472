"""BUG: an array method that had no memory is released as far as there is one

What releases a bound method asked the method for the number of its dtypes, also where there was no
memory for the method.
"""
import numpy_source


def fix(tree):
    path = "numpy/_core/src/multiarray/array_method.c"
    with tree.function(path, "boundarraymethod_dealloc") as code:
        code.replace(r"int nargs = (meth->method->nin \+ meth->method->nout);",
                     r"int nargs = meth->method == NULL ? 0 : \1;")
    with tree.function(path, "PyArrayMethod_FromSpec_int") as code:
        code.after(r"^    if \(res->method == NULL\) \{", """
            for (int i = 0; i < nargs; i++) {
                Py_XDECREF(res->dtypes[i]);
            }
            """)


if __name__ == "__main__":
    numpy_source.main(fix)
