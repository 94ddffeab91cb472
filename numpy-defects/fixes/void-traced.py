"""BUG: tracemalloc forgets a block that is kept for later

Small blocks of np.void and others that are no arrays go to a cache, and were still shown.
"""
import numpy_source


def fix(tree):
    with tree.function("numpy/_core/src/multiarray/alloc.c", "npy_free_cache") as code:
        code.before(r"_npy_free_cache\(", """
            // ignore -2 return when tracemalloc is disabled
            PyTraceMalloc_Untrack(NPY_TRACE_DOMAIN, (npy_uintp)p);
            """)


if __name__ == "__main__":
    numpy_source.main(fix)
