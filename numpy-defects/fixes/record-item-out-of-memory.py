"""BUG: an item of a record that cannot be made is an exception, and no hole in a tuple

What a field's getitem returned was put into the tuple of the record also where it was NULL, and the
tuple was returned with an exception set.
"""
import numpy_source


def fix(tree):
    with tree.function("numpy/_core/src/multiarray/arraytypes.c.src", "VOID_getitem") as code:
        code.after(r"^        ret = PyTuple_New\(n\);", """
            if (ret == NULL) {
                return NULL;
            }
            """)
        code.replace(r"^( +)PyTuple_SET_ITEM\(ret, i, (PyArray_GETITEM\(dummy_arr, ip\+offset\))\);",
                     r"\1PyObject *item = \2;""\n"
                     r"\1if (item == NULL) {""\n"
                     r"\1    Py_DECREF(ret);""\n"
                     r"\1    return NULL;""\n"
                     r"\1}""\n"
                     r"\1PyTuple_SET_ITEM(ret, i, item);")


if __name__ == "__main__":
    numpy_source.main(fix)
