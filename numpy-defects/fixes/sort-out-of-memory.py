"""BUG: a sort without memory clears no buffer that it does not have

The buffer of a strided sort, argsort, partition or argpartition is cleared before it goes, which
crashes for objects, records with objects and StringDType where there was no memory for it.
"""
import numpy_source

PATH = "numpy/_core/src/multiarray/item_selection.c"


def fix(tree):
    for function, buffer in ("_new_sortlike", "buffer"), ("_new_argsortlike", "valbuffer"):
        with tree.function(PATH, function) as code:
            code.replace(r"if \(needcopy\) \{(?=\n\s+PyArray_ClearBuffer\()",
                         "if (needcopy && %s != NULL) {" % buffer)


if __name__ == "__main__":
    numpy_source.main(fix)
