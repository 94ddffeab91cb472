"""BUG: free is told the size of the block that a text was read into

The array that fromstring and fromfile read a text into has as many elements as its block from the
first growth on, so that one that is given up goes back with its size; a text without numbers ends
with a block of one byte, as other arrays without elements do.
"""
import numpy_source


def fix(tree):
    with tree.function("numpy/_core/src/multiarray/ctors.c", "array_from_text") as code:
        code.after(r"\)->data = tmp;(?=\n\s+dptr = )", "PyArray_DIMS(r)[0] += size;")
        code.replace(r"PyArray_MAX\(\*nread, *1\) *\* *dtype->elsize",
                     "(*nread == 0 && dtype->elsize != 0) ? 1 : *nread * dtype->elsize")


if __name__ == "__main__":
    numpy_source.main(fix)
