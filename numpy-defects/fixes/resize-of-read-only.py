"""BUG: ndarray.resize fills what it adds to a read-only array as well

It left there what was in the block before: old contents, or, for objects, a crash.
"""
import numpy_source


def fix(tree):
    with tree.function("numpy/_core/src/multiarray/shape.c", "PyArray_Resize_int") as code:
        code.replace(r"if \(newnbytes > oldnbytes && PyArray_ISWRITEABLE\(self\)\) \{",
                     "if (newnbytes > oldnbytes) {")


if __name__ == "__main__":
    numpy_source.main(fix)
