"""DOC: what handlers have to know, and examples that do what they say

The page said nothing of NULL, of sizes of 0, of the GIL, and of where memory of PyDataMem_NEW goes.
The destructor of its capsule had another type than PyCapsule_Destructor, and buf was lost where the
array or the capsule could not be made.  The second snapshot of its example of tracemalloc showed
nothing of ``a*a``, which was gone.
"""
import numpy_source

CONTRACT = """\
What NumPy asks of the functions of a handler:

* all four are there: ``NULL`` is not accepted;
* ``malloc``, ``calloc`` and ``realloc`` return ``NULL`` where there is no memory, and NumPy raises
  ``MemoryError``; a block that ``realloc`` did not resize stays as it is;
* a size of 0 does not come from NumPy's arrays, which ask for one byte where they have no elements;
  other callers may pass it, and ``ptr`` may be ``NULL`` for ``realloc`` and ``free``;
* the ``size`` that ``free`` is told is a best guess: a handler that needs it keeps it itself;
* the GIL need not be held, and several threads may call at once.

"""
OWNDATA = """\
Memory that :c:func:`PyDataMem_NEW` gave does not belong into such an array, for ``free()`` need not
be where it came from: give it back by :c:func:`PyDataMem_FREE`.

"""
EXAMPLE = """\
.. code-block:: c

    /* the destructor of the capsule, with the deallocator that goes with buf */
    static void
    free_wrap(PyObject *capsule)
    {
        free(PyCapsule_GetPointer(capsule, "my_wrapped_buffer"));
    }

    /* an array of n doubles, in a buffer of our own */
    static PyObject *
    make_array(npy_intp n)
    {
        double *buf = (double *)calloc(n, sizeof(double));
        if (buf == NULL) {
            return PyErr_NoMemory();
        }
        PyObject *capsule = PyCapsule_New(buf, "my_wrapped_buffer", free_wrap);
        if (capsule == NULL) {
            free(buf);
            return NULL;
        }
        PyObject *arr = PyArray_SimpleNewFromData(1, &n, NPY_DOUBLE, buf);
        if (arr == NULL) {
            Py_DECREF(capsule);
            return NULL;
        }
        /* takes the reference to the capsule, whether it fails or not */
        if (PyArray_SetBaseObject((PyArrayObject *)arr, capsule) < 0) {
            Py_DECREF(arr);
            return NULL;
        }
        return arr;
    }

"""


def fix(tree):
    with tree.file("doc/source/reference/c-api/data_memory.rst") as text:
        text.before(r"^For an example of setting up and using the PyDataMem_Handler", CONTRACT)
        text.replace(r"(?<=\n\n)(?=A better technique would be)", OWNDATA)
        text.replace(r"^\.\. code-block:: c\n\n    /\* define a PyCapsule_Destructor"
                     r"(?:\n|.*\n)*?(?=^Example of memory tracing)",
                     EXAMPLE.replace("\\", "\\\\"))
        text.replace(r"^    c = np\.sum\(a\*a\)$", "    c = a * a")


if __name__ == "__main__":
    numpy_source.main(fix)
