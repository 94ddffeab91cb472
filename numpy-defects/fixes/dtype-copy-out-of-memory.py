"""BUG: a copy of a dtype that fails gives nothing up that it does not have

Where there was no memory for the unit of a dtype of dates, or for a subarray's shape, what had been
made of the copy was released with references that it had not taken.
"""
import numpy_source


def fix(tree):
    with tree.function("numpy/_core/src/multiarray/descriptor.c", "PyArray_DescrNew") as code:
        code.replace(r"^    if \(base->c_metadata != NULL\) \{\n(?:.*\n)*?    \}\n"
                     r"(?=\n    if \(newdescr->fields == Py_None)",
                     "    newdescr->c_metadata = NULL;\n")
        code.cut(r"^    Py_XINCREF\(newdescr->typeobj\);\n    Py_XINCREF\(newdescr->metadata\);")
        code.after(r"Py_XINCREF\(newdescr->names\);", """
            Py_XINCREF(newdescr->typeobj);
            Py_XINCREF(newdescr->metadata);
            """)
        code.before(r"newdescr->hash = -1;", """
            if (base->c_metadata != NULL) {
                newdescr->c_metadata = NPY_AUXDATA_CLONE(base->c_metadata);
                if (newdescr->c_metadata == NULL) {
                    Py_DECREF(newdescr);
                    return (PyArray_Descr *)PyErr_NoMemory();
                }
            }
            """)


if __name__ == "__main__":
    numpy_source.main(fix)
