"""BUG: PyDataMem_SetHandler refuses a handler that cannot work

NEP 49: "All the function pointers must be filled in, NULL is not accepted."  One with NULL, with a
version that is not known, or with a name without an end was put in force, and the next array
crashed.
"""
import numpy_source


def fix(tree):
    with tree.function("numpy/_core/src/multiarray/alloc.c", "PyDataMem_SetHandler") as code:
        code.before(r"token = PyContextVar_Set\(", """
            const PyDataMem_Handler *new_handler = (const PyDataMem_Handler *)
                    PyCapsule_GetPointer(handler, MEM_HANDLER_CAPSULE_NAME);
            const char *missing = NULL;
            if (new_handler->version != 1) {
                missing = "a version of 1";
            }
            else if (memchr(new_handler->name, 0, sizeof(new_handler->name)) == NULL) {
                missing = "a name that ends";
            }
            else if (new_handler->allocator.malloc == NULL ||
                     new_handler->allocator.calloc == NULL ||
                     new_handler->allocator.realloc == NULL ||
                     new_handler->allocator.free == NULL) {
                missing = "malloc, calloc, realloc and free";
            }
            if (missing != NULL) {
                Py_DECREF(old_handler);
                PyErr_Format(PyExc_ValueError, "a memory handler must have %s", missing);
                return NULL;
            }
            """)


if __name__ == "__main__":
    numpy_source.main(fix)
