"""BUG: np.array does not take a lack of memory for dtypes that have none in common

Where there was no memory to promote two dtypes of records, the array was one of objects, and nothing
said so.  One such exception came as a TypeError, for PyObject_IsInstance said -1, which was taken for
a yes.
"""
import numpy_source


def fix(tree):
    with tree.function("numpy/_core/src/multiarray/array_coercion.c", "handle_promotion") as code:
        code.replace(r"if \(fixed_DType != NULL \|\| "
                     r"(PyErr_ExceptionMatches\()(PyExc_FutureWarning\))\) \{",
                     r"if (fixed_DType != NULL || \1\2 ||""\n"
                     r"                \1PyExc_MemoryError)) {")
    with tree.function("numpy/_core/src/multiarray/descriptor.c",
                       "_convert_from_array_descr") as code:
        if "PyArray_StringDType" in code.text:  # which is gone from NumPy's main since 2.5
            code.replace(r"PyObject_IsInstance"
                         r"(\(\(PyObject \*\)conv, )\(PyObject \*\)&PyArray_StringDType\)",
                         r"PyObject_TypeCheck\1(PyTypeObject *)&PyArray_StringDType)")


if __name__ == "__main__":
    numpy_source.main(fix)
