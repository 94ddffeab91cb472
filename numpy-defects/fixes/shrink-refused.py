"""BUG: a shrink that is refused keeps the objects that were to go

They were released before realloc was asked.  They are set aside now, and released when the array
is the shorter one, since what they run when they end may look at it.  Behind that of
resize-dimensions-refused.py, after which nothing fails once realloc has been asked.
"""
import numpy_source


def fix(tree):
    with tree.function("numpy/_core/src/multiarray/shape.c", "PyArray_Resize_int") as code:
        code.replace(r"( +)if \(newnbytes < oldnbytes\) \{\n[^}]*\}\n +\}\n",
                     r"\1if (newnbytes < oldnbytes && PyDataType_REFCHK(PyArray_DESCR(self))) {"
                     r"""
\1    /* Cleared at the end: realloc may be refused */
\1    removed = PyMem_RawMalloc(oldnbytes - newnbytes);
\1    if (removed == NULL) {
\1        PyErr_NoMemory();
\1        return -1;
\1    }
\1    memcpy(removed, PyArray_BYTES(self) + newnbytes, oldnbytes - newnbytes);
\1}
""")
        code.before(r"^    /\* Convert to number of bytes", "char *removed = NULL;")
        code.after(r"if \(new_data == NULL\) \{", "PyMem_RawFree(removed);")
        code.before(r"^    return 0;\n\}", """
            if (removed != NULL) {
                int cleared = PyArray_ClearBuffer(PyArray_DESCR(self), removed, elsize,
                        oldsize - newsize, PyArray_ISALIGNED(self));
                PyMem_RawFree(removed);
                return cleared;
            }
            """)


if __name__ == "__main__":
    numpy_source.main(fix)
