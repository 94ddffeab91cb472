"""BUG: indexing by arrays looks whether the iterator has its buffers

NpyIter_Reset says so by 0, and a negative number was looked for.
"""
import numpy_source


def fix(tree):
    with tree.file("numpy/_core/src/multiarray/mapping.c") as code:
        code.replace(r"if \(NpyIter_Reset\(mit->outer, NULL\) < 0\)",
                     "if (!NpyIter_Reset(mit->outer, NULL))", times=2)


if __name__ == "__main__":
    numpy_source.main(fix)
