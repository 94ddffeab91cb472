"""BUG: realloc of a handler is called with the GIL, as its other functions are

fromstring and fromfile let go of the GIL to read a text, and grew their array without it.
"""
import numpy_source


def fix(tree):
    with tree.function("numpy/_core/src/multiarray/ctors.c", "array_from_text") as code:
        code.after(r"^    int stop_reading_flag = .*", "NPY_ALLOW_C_API_DEF")
        code.before(r"tmp = PyDataMem_UserRENEW\(", "NPY_ALLOW_C_API;", times=2)
        code.after(r"tmp = PyDataMem_UserRENEW\([^;]*;", "NPY_DISABLE_C_API;", times=2)


if __name__ == "__main__":
    numpy_source.main(fix)
