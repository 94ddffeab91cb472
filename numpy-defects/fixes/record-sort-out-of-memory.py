"""BUG: records that cannot be compared for want of memory are an error

Fields that are not aligned or not in the machine's byte order are compared in temporary blocks.
Where there was no memory for one, the records were taken for equal, and the sort went on to a wrong
order without an exception.  Sorts look for an exception when they end.
"""
import numpy_source


def fix(tree):
    with tree.function("numpy/_core/src/multiarray/arraytypes.c.src", "VOID_compare") as code:
        code.after(r"if \(nip[12] == NULL\) \{",
                   'npy_gil_error(PyExc_MemoryError, "no memory to compare records");', times=2)


if __name__ == "__main__":
    numpy_source.main(fix)
