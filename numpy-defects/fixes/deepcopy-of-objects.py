"""BUG: a deep copy of objects without copy.deepcopy is an exception

Where the module did not give the function, for want of memory or because it has none, the function
was released all the same.
"""
import numpy_source


def fix(tree):
    with tree.function("numpy/_core/src/multiarray/methods.c", "array_deepcopy") as code:
        code.replace(r"^(  error:\n    Py_)DECREF\(deepcopy\);", r"\1XDECREF(deepcopy);")


if __name__ == "__main__":
    numpy_source.main(fix)
