"""BUG: a scaled float has what other functions ask of a dtype

Some call its ensure_canonical, some its nonzero, and do not look whether it has them.
"""
import numpy_source


def fix(tree):
    path = "numpy/_core/src/umath/_scaled_float_dtype.c"
    with tree.file(path) as code:
        code.before(r"^/\* Special DType methods", """
            static PyArray_Descr *
            sfloat_ensure_canonical(PyArray_Descr *self)
            {
                Py_INCREF(self);
                return self;
            }


            static npy_bool
            sfloat_nonzero(void *data, void *NPY_UNUSED(array))
            {
                double value;
                memcpy(&value, data, sizeof(value));
                return value != 0;
            }
            """)
        code.replace(r"(?=^/\* Special DType methods)", r"\n\n")
        code.after(r"\.common_instance = &sfloat_common_instance,",
                   ".ensure_canonical = &sfloat_ensure_canonical,")
        code.after(r"\.getitem = \(PyArray_GetItemFunc \*\)&sfloat_getitem,",
                   ".nonzero = &sfloat_nonzero,")


if __name__ == "__main__":
    numpy_source.main(fix)
