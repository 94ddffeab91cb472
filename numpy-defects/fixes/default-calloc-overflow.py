"""BUG: the default calloc refuses a product that size_t does not hold

A handler that passes calls on to the default one, with lengths that are not NumPy's own, was given
a block that is shorter than it asked for.
"""
import numpy_source

PATH = "numpy/_core/src/multiarray/alloc.c"


def fix(tree):
    for function, count, size in (("default_calloc", "nelem", "elsize"),
                                  ("npy_alloc_cache_zero", "nmemb", "size")):
        with tree.function(PATH, function) as code:
            code.after(r"size_t sz = ", """
                if (%s != 0 && sz / %s != %s) {
                    return NULL;
                }
                """ % (size, size, count))


if __name__ == "__main__":
    numpy_source.main(fix)
