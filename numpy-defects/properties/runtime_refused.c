/* SPDX-License-Identifier: BSD-3-Clause
 *
 * runtime: what NumPy leaves behind where memory is refused, or a request is not what it expected.
 */
#include "harness/harness.h"
#include "python/python.h"

#define NOT_YOURS "NumPy has to fix this; the handler cannot."

PROPERTY(runtime_array_refused,
    .id     = "runtime.array-refused",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError for refused arrays",
    .clause = "If memory for an array that a function returns or works in is refused, the function "
              "raises MemoryError.",
    .source = "scalartypes.c.src gentype_subscript and dtype_transfer.c, which do not look whether "
              "they have one, 1.22 to 2.5; rows.c, 2.4 and 2.5",
    .why    = "A program that is short of memory crashes instead of getting an exception.",
    .hint   = NOT_YOURS,
    .looks  = "expected np.loadtxt([]), when its array is refused, to raise MemoryError; seen "
              "NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "array_refused");
}

PROPERTY(runtime_put_refused,
    .id     = "runtime.put-refused",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError in put and putmask",
    .clause = "If memory for the copy of a strided array is refused, put and putmask raise "
              "MemoryError.",
    .source = "item_selection.c PyArray_PutTo, which does not look whether it has one, up to 2.4",
    .why    = "A program that is short of memory crashes instead of getting an exception.",
    .hint   = NOT_YOURS " Workaround: put into a contiguous array.",
    .looks  = "expected put into array[::2], when its copy is refused, to raise MemoryError; seen "
              "NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "put_refused");
}

PROPERTY(runtime_string_operations,
    .id     = "runtime.string-operations",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "lexsort and byteswap of strings",
    .clause = "np.lexsort and byteswap of arrays of StringDType return an array or raise an "
              "exception.",
    .source = "item_selection.c PyArray_LexSort, which asks for an exception without the GIL, 2.0 "
              "to 2.5.4; methods.c PyArray_Byteswap, which calls what strings do not have, 2.0 to "
              "2.5.1",
    .why    = "A program that has enough memory crashes.",
    .hint   = NOT_YOURS,
    .looks  = "expected np.lexsort of array[::2], of StringDType, to be an array or an exception; "
              "seen NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "string_operations");
}

PROPERTY(runtime_promotion_out_of_memory,
    .id     = "runtime.promotion-out-of-memory",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError in promotions",
    .clause = "If memory to find the common dtype of records is refused, np.array raises "
              "MemoryError.",
    .source = "array_coercion.c handle_promotion, which takes any exception for two dtypes that "
              "have none in common, 1.24 to 2.5",
    .why    = "The array silently becomes one of objects.",
    .hint   = NOT_YOURS " Workaround: pass the dtype to np.array.",
    .looks  = "expected the dtypes of np.array([records, records]), with each request of Python's "
              "refused in turn, to be [\"[('x', '<i4')]\"]; seen [\"[('x', '<i4')]\", 'object']",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "promotion_out_of_memory");
}

PROPERTY(runtime_deepcopy_of_objects,
    .id     = "runtime.deepcopy-of-objects",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "exceptions in deep copies",
    .clause = "If copy.deepcopy is not available, a deep copy of an array of objects raises an "
              "exception.",
    .source = "methods.c array_deepcopy, which releases a function that it does not have, 1.24.1 "
              "to 2.5",
    .why    = "A program that is short of memory crashes instead of getting an exception.",
    .hint   = NOT_YOURS,
    .looks  = "expected a deep copy of objects, without copy.deepcopy, to raise an exception; seen "
              "NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "deepcopy_of_objects");
}

PROPERTY(runtime_dtype_copy_out_of_memory,
    .id     = "runtime.dtype-copy-out-of-memory",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError in dtype copies",
    .clause = "If memory to copy a dtype of dates is refused, NumPy raises MemoryError and drops "
              "no reference it did not take.",
    .source = "descriptor.c PyArray_DescrNew, which drops the copy before it has any, 1.22 to 2.5",
    .why    = "np.datetime64 is released while it is in use, and a NumPy with assertions aborts.",
    .hint   = NOT_YOURS,
    .looks  = "expected the dtype of np.datetime64(3, 's'), without memory for a copy, to raise "
              "MemoryError; seen references were lost",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "dtype_copy_out_of_memory");
}

PROPERTY(runtime_scalar_part_refused,
    .id     = "runtime.scalar-part-refused",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError in imaginary parts",
    .clause = "If memory for the imaginary part of a scalar, or for its dtype, is refused, NumPy "
              "raises MemoryError.",
    .source = "scalartypes.c.src gentype_imag_get, which does not look whether it has them, 1.22 "
              "to 2.5",
    .why    = "A program that is short of memory crashes instead of getting an exception.",
    .hint   = NOT_YOURS,
    .looks  = "expected np.bytes_(5000 bytes).imag, without memory, to raise MemoryError; seen "
              "NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "scalar_part_refused");
}

PROPERTY(runtime_resize_dimensions_refused,
    .id     = "runtime.resize-dimensions-refused",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "resize to more dimensions",
    .clause = "If memory for more dimensions is refused, a resized array keeps a shape that fits "
              "its block.",
    .source = "shape.c PyArray_Resize, which sets the number of dimensions before their memory, "
              "1.22 to 2.5",
    .why    = "The shape is whatever follows the old one in memory, and free later gets a wrong "
              "size.",
    .hint   = NOT_YOURS,
    .looks  = "expected an array to keep its shape, when request 2 of Python's in a resize to 11 "
              "dimensions is refused; seen 11 dimensions, the first of 4000 elements",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "resize_dimensions_refused");
}

PROPERTY(runtime_setstate_refused,
    .id     = "runtime.setstate-refused",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "arrays survive __setstate__",
    .clause = "If memory for __setstate__ is refused, the array stays usable.",
    .source = "methods.c array_setstate, which leaves the new shape and no block, 1.22 to 2.5",
    .why    = "The next use of the array crashes.",
    .hint   = NOT_YOURS " Workaround: drop an array that could not be unpickled.",
    .looks  = "expected an array that __setstate__ had no memory for, of numbers, to be one that "
              "can be used; seen NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "setstate_refused");
}

PROPERTY(runtime_setstate_of_short_list,
    .id     = "runtime.setstate-of-short-list",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "__setstate__ checks lengths",
    .clause = "__setstate__ refuses a list with fewer objects than the shape has.",
    .source = "methods.c _setlist_pkl, which reads on behind the list, 1.22 to 2.5",
    .why    = "A damaged pickle crashes the program.",
    .hint   = NOT_YOURS,
    .looks  = "expected a state of 3000 objects with a list of one to be refused; seen NumPy "
              "crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "setstate_of_a_short_list");
}

PROPERTY(runtime_shrink_refused,
    .id     = "runtime.shrink-refused",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "a refused shrink keeps elements",
    .clause = "An array whose shrinking raises MemoryError keeps all its elements.",
    .source = "shape.c PyArray_Resize, which clears those that are to go before it asks, 2.3 to "
              "2.5",
    .why    = "Objects are lost in a resize that did not take place.",
    .hint   = NOT_YOURS " Workaround: do not fail in realloc if a block shrinks.",
    .looks  = "expected an array of O, whose shrinking was refused, to be [1, 2, 3, 4]; seen [1, "
              "2, None, None]",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "shrink_refused");
}

PROPERTY(runtime_free_size_of_new_dtype,
    .id     = "runtime.free-size-of-new-dtype",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_RUNTIME,
    .title  = "free gets size after new dtype",
    .clause = "NumPy passes free the requested size if a new dtype removed all elements of an "
              "array.",
    .source = "NEP 49, PyDataMemAllocator: free's size; getset.c array_descr_set, 1.22 to 2.4",
    .why    = "A handler that relies on the size puts the block into the wrong list.",
    .hint   = NOT_YOURS " Workaround: look up the size in free.",
    .looks  = "expected free to be told the size asked for after .dtype = (i4, (0,)); seen "
              "free(0x55d0c0a8, 1) of a block of 16 bytes",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "free_size_of_new_dtype");
}

PROPERTY(runtime_void_untraced,
    .id     = "runtime.void-untraced",
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_RUNTIME,
    .title  = "tracemalloc forgets np.void",
    .clause = "tracemalloc does not show the memory of an np.void that was freed.",
    .source = "alloc.c npy_free_cache, which keeps small blocks and does not untrack them, 1.22 to "
              "2.5",
    .why    = "tracemalloc shows memory that is not allocated.",
    .hint   = NOT_YOURS,
    .looks  = "expected the sizes traced after three np.void of 900 bytes are gone to be []; seen "
              "[900, 900, 900]",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "void_untraced");
}
