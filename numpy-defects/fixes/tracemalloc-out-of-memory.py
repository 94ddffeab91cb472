"""BUG: a block that tracemalloc has no memory for is kept unrecorded

A resize freed the new block there, while the array still had the old one, which realloc had freed.
calloc's was given back with the size of one element.
"""
import numpy_source

PATH = "numpy/_core/src/multiarray/alloc.c"


def fix(tree):
    for function in "PyDataMem_UserRENEW", "PyDataMem_RENEW":
        with tree.function(PATH, function) as code:
            code.replace(r"    (?:ret = )(PyTraceMalloc_Track\([^;]*;)\n    if \(ret == -1\) \{[^}]*\}\n",
                         "    // one that cannot be recorded is kept: ptr is gone\n"
                         r"    (void)\1" "\n")
    with tree.function(PATH, "PyDataMem_UserNEW_ZEROED") as code:
        code.replace(r"(allocator\.free\(.*, )size\);", r"\1nmemb * size);")


if __name__ == "__main__":
    numpy_source.main(fix)
