"""BUG: __setstate__ without memory leaves the array as it was

The array had its new shape when the block was refused, and no data.  What it needs is asked for
before anything of it goes.
"""
import numpy_source


def fix(tree):
    with tree.function("numpy/_core/src/multiarray/methods.c", "array_setstate") as code:
        code.after(r"^    PyObject \*result = NULL;", """
            npy_intp *new_dimensions = NULL;
            PyObject *new_handler = NULL;
            char *new_data = NULL;
            """)
        # Asked for first, and all of it.  Bytes are borrowed where they are many and can be used
        # as they are.
        code.before(r"^    /\*\n     \* Get rid of everything", """
            if (nd > 0) {
                new_dimensions = npy_alloc_cache_dim(2 * nd);
                if (new_dimensions == NULL) {
                    PyErr_NoMemory();
                    goto end;
                }
            }
            int borrow = !PyDataType_FLAGCHK(typecode, NPY_LIST_PICKLE) && len > 1000 &&
                    PyDataType_ISNOTSWAPPED(typecode) &&
                    (typecode->alignment <= 1 || typecode->elsize % typecode->alignment == 0);
            if (!borrow) {
                new_handler = PyDataMem_GetHandler();
                if (new_handler == NULL) {
                    goto end;
                }
                new_data = PyDataMem_UserNEW(nbytes == 0 ? 1 : nbytes, new_handler);
                if (new_data == NULL) {
                    if (!PyErr_Occurred()) {
                        PyErr_NoMemory();
                    }
                    goto end;
                }
            }
            """)
        code.replace(r"        fa->dimensions = npy_alloc_cache_dim\(2 \* nd\);\n"
                     r"        if \(fa->dimensions == NULL\) \{[^}]*\}\n",
                     "        fa->dimensions = new_dimensions;\n"
                     "        new_dimensions = NULL;\n")
        code.replace(r"if \(!IsAligned\(self\) \|\| swap \|\| \(len <= 1000\)\) \{",
                     "if (!borrow) {")
        # Both places that make a block take that one.
        code.replace(r"( +)npy_intp num = PyArray_NBYTES\(self\);\n +if \(num == 0\) \{[^}]*\}\n",
                     "", times=2)
        code.replace(r"( +)fa->mem_handler = PyDataMem_GetHandler\(\);\n"
                     r" +if \(fa->mem_handler == NULL\) \{[^}]*\}\n"
                     r" +fa->data = PyDataMem_UserNEW\([^;]*;\n"
                     r" +if \(PyArray_DATA\(self\) == NULL\) \{[^}]*\}\n",
                     r"\1fa->mem_handler = new_handler;" "\n"
                     r"\1fa->data = new_data;" "\n"
                     r"\1new_handler = NULL;" "\n"
                     r"\1new_data = NULL;" "\n", times=2)
        code.before(r"Py_XDECREF\(\(PyObject \*\)typecode\);", """
            if (new_data != NULL) {
                PyDataMem_UserFREE(new_data, nbytes == 0 ? 1 : nbytes, new_handler);
            }
            Py_XDECREF(new_handler);
            if (new_dimensions != NULL) {
                npy_free_cache_dim(new_dimensions, 2 * nd);
            }
            """)


if __name__ == "__main__":
    numpy_source.main(fix)
