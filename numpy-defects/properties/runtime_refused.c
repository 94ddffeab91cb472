/* SPDX-License-Identifier: BSD-3-Clause
 *
 * runtime: what NumPy leaves behind where memory is refused, or a request is not what it expected.
 */
#include "harness/harness.h"
#include "python/python.h"

#define NOT_YOURS "this is NumPy's: the handler can do nothing about it"

PROPERTY(runtime_array_refused,
    .id     = "runtime.array-refused",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError if refused",
    .clause = "where an array that a function is to return or works in is refused, it raises "
              "MemoryError",
    .source = "scalartypes.c.src gentype_subscript and dtype_transfer.c, which do not look whether "
              "they have one, 1.22 to 2.5; rows.c, 2.4 and 2.5",
    .why    = "a program that is short of memory crashes instead of getting an exception",
    .hint   = NOT_YOURS,
    .looks  = "np.loadtxt([]), when its array is refused, to raise MemoryError: NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "array_refused");
}

PROPERTY(runtime_put_refused,
    .id     = "runtime.put-refused",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError in put and putmask",
    .clause = "where the copy is refused that a strided array is put into, put and putmask raise "
              "MemoryError",
    .source = "item_selection.c PyArray_PutTo, which does not look whether it has one, up to 2.4",
    .why    = "a program that is short of memory crashes instead of getting an exception",
    .hint   = NOT_YOURS "; put into a contiguous array",
    .looks  = "put into array[::2], when its copy is refused, to raise MemoryError: NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "put_refused");
}

PROPERTY(runtime_string_operations,
    .id     = "runtime.string-operations",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "lexsort and byteswap of strings",
    .clause = "np.lexsort and byteswap of an array of StringDType are an array or an exception",
    .source = "item_selection.c PyArray_LexSort, which asks for an exception without the GIL, 2.0 "
              "to 2.5.4; methods.c PyArray_Byteswap, which calls what strings do not have, 2.0 to "
              "2.5.1",
    .why    = "a program crashes that has all the memory it wants",
    .hint   = NOT_YOURS,
    .looks  = "np.lexsort of array[::2], of StringDType, to be an array or an exception: NumPy "
              "crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "string_operations");
}

PROPERTY(runtime_promotion_out_of_memory,
    .id     = "runtime.promotion-out-of-memory",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError in promotions",
    .clause = "where there is no memory to find the dtype that records have in common, np.array "
              "raises MemoryError",
    .source = "array_coercion.c handle_promotion, which takes any exception for two dtypes that "
              "have none in common, 1.24 to 2.5",
    .why    = "the array is one of objects, and nothing says so",
    .hint   = NOT_YOURS "; give np.array the dtype",
    .looks  = "the dtypes of np.array([records, records]), with each request of Python's refused "
              "in turn, to be [\"[('x', '<i4')]\"]: [\"[('x', '<i4')]\", 'object']",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "promotion_out_of_memory");
}

PROPERTY(runtime_deepcopy_of_objects,
    .id     = "runtime.deepcopy-of-objects",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "exceptions in deep copies",
    .clause = "where copy.deepcopy cannot be had, a deep copy of an array of objects raises an "
              "exception",
    .source = "methods.c array_deepcopy, which releases a function that it does not have, 1.24.1 "
              "to 2.5",
    .why    = "a program that is short of memory crashes instead of getting an exception",
    .hint   = NOT_YOURS,
    .looks  = "a deep copy of objects, without copy.deepcopy, to raise an exception: NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "deepcopy_of_objects");
}

PROPERTY(runtime_dtype_copy_out_of_memory,
    .id     = "runtime.dtype-copy-out-of-memory",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError in dtype copies",
    .clause = "where there is no memory to copy a dtype of dates, NumPy raises MemoryError, and "
              "drops no reference that it did not take",
    .source = "descriptor.c PyArray_DescrNew, which drops the copy before it has any, 1.22 to 2.5",
    .why    = "np.datetime64 is released while it is in use; a NumPy with assertions aborts",
    .hint   = NOT_YOURS,
    .looks  = "the dtype of np.datetime64(3, 's'), without memory for a copy, to raise "
              "MemoryError: references were lost",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "dtype_copy_out_of_memory");
}

PROPERTY(runtime_scalar_part_refused,
    .id     = "runtime.scalar-part-refused",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError in imaginary parts",
    .clause = "where there is no memory for the imaginary part of a scalar, or for its dtype, NumPy "
              "raises MemoryError",
    .source = "scalartypes.c.src gentype_imag_get, which does not look whether it has them, 1.22 "
              "to 2.5",
    .why    = "a program that is short of memory crashes instead of getting an exception",
    .hint   = NOT_YOURS,
    .looks  = "np.bytes_(5000 bytes).imag, without memory, to raise MemoryError: NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "scalar_part_refused");
}

PROPERTY(runtime_resize_dimensions_refused,
    .id     = "runtime.resize-dimensions-refused",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "resize to more dimensions",
    .clause = "an array that is to have more dimensions, and has no memory for their lengths, "
              "keeps a shape that its block is large enough for",
    .source = "shape.c PyArray_Resize, which sets the number of dimensions before their memory, "
              "1.22 to 2.5",
    .why    = "its shape is whatever lies behind the old one, and its end tells free a wrong size",
    .hint   = NOT_YOURS,
    .looks  = "an array to keep its shape, when request 2 of Python's in a resize to 11 "
              "dimensions is refused; 11 dimensions, the first of 4000 elements",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "resize_dimensions_refused");
}

PROPERTY(runtime_setstate_refused,
    .id     = "runtime.setstate-refused",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "arrays survive __setstate__",
    .clause = "an array that __setstate__ had no memory for is one that can be used",
    .source = "methods.c array_setstate, which leaves the new shape and no block, 1.22 to 2.5",
    .why    = "the next use of the array crashes",
    .hint   = NOT_YOURS "; drop an array that could not be unpickled",
    .looks  = "an array that __setstate__ had no memory for, of numbers, to be one that can be "
              "used: NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "setstate_refused");
}

PROPERTY(runtime_setstate_of_short_list,
    .id     = "runtime.setstate-of-short-list",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "__setstate__ checks lengths",
    .clause = "__setstate__ refuses a list of fewer objects than the shape has",
    .source = "methods.c _setlist_pkl, which reads on behind the list, 1.22 to 2.5",
    .why    = "a pickle that is damaged crashes the program",
    .hint   = NOT_YOURS,
    .looks  = "a state of 3000 objects with a list of one to be refused: NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "setstate_of_a_short_list");
}

PROPERTY(runtime_shrink_refused,
    .id     = "runtime.shrink-refused",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "a refused shrink keeps elements",
    .clause = "an array whose shrinking raises MemoryError has all of its elements",
    .source = "shape.c PyArray_Resize, which clears those that are to go before it asks, 2.3 to "
              "2.5",
    .why    = "objects are lost by a resize that did not happen",
    .hint   = NOT_YOURS "; a realloc that shrinks a block need not fail",
    .looks  = "an array of O, whose shrinking was refused, to be [1, 2, 3, 4]: [1, 2, None, None]",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "shrink_refused");
}

PROPERTY(runtime_free_size_of_new_dtype,
    .id     = "runtime.free-size-of-new-dtype",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_RUNTIME,
    .title  = "free-size after a new dtype",
    .clause = "free is told the size that was asked for where a new dtype has taken all elements "
              "from an array, too",
    .source = "NEP 49, PyDataMemAllocator: free's size; getset.c array_descr_set, 1.22 to 2.4",
    .why    = "a handler that believes the size puts the block where it does not belong",
    .hint   = NOT_YOURS "; look the size up",
    .looks  = "free to be told the size asked for after .dtype = (i4, (0,)): free(0x55d0c0a8, 1) "
              "of a block of 16 bytes",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "free_size_of_new_dtype");
}

PROPERTY(runtime_void_untraced,
    .id     = "runtime.void-untraced",
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_RUNTIME,
    .title  = "tracemalloc forgets np.void",
    .clause = "tracemalloc no longer shows the memory of an np.void that is gone",
    .source = "alloc.c npy_free_cache, which keeps small blocks and does not untrack them, 1.22 to "
              "2.5",
    .why    = "memory is shown that nobody has",
    .hint   = NOT_YOURS,
    .looks  = "WARN: the sizes traced after three np.void of 900 bytes are gone to be []: [900, "
              "900, 900]",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_refused", "void_untraced");
}
