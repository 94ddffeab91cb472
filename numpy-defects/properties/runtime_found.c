/* SPDX-License-Identifier: BSD-3-Clause
 *
 * runtime: what tools/search found, where Python has no memory, and in dtypes of users and of
 * strings.
 */
#include "harness/harness.h"
#include "python/python.h"

#define NOT_YOURS "NumPy has to fix this; the handler cannot."

PROPERTY(runtime_array_method_out_of_memory,
    .id     = "runtime.array-method-out-of-memory",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError in frompyfunc",
    .clause = "If Python has no memory for the loop of a ufunc, np.frompyfunc raises MemoryError.",
    .source = "array_method.c boundarraymethod_dealloc, which looks into a method that there is "
              "not, 1.22 to 2.5",
    .why    = "A program that is short of memory crashes instead of getting an exception.",
    .hint   = NOT_YOURS,
    .looks  = "expected np.frompyfunc, with each request of Python's refused in turn, to raise "
              "MemoryError; seen NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_found", "array_method_out_of_memory");
}

PROPERTY(runtime_dot_out_of_memory,
    .id     = "runtime.dot-out-of-memory",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "exceptions in dot of records",
    .clause = "If Python has no memory for the dtype of records, np.dot, np.inner and np.correlate "
              "raise an exception.",
    .source = "multiarraymodule.c PyArray_MatrixProduct2, which does not look whether it has one, "
              "2.5",
    .why    = "A program that is short of memory crashes instead of getting an exception.",
    .hint   = NOT_YOURS,
    .looks  = "expected np.dot of records, with each request of Python's refused in turn, to raise "
              "an exception; seen NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_found", "dot_out_of_memory");
}

PROPERTY(runtime_index_out_of_memory,
    .id     = "runtime.index-out-of-memory",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "exceptions in array indexing",
    .clause = "If Python has no memory for a buffer, indexing an array by another array raises an "
              "exception.",
    .source = "mapping.c array_subscript and array_assign_subscript, which take another number for "
              "a failure than it is, 1.22 to 2.5",
    .why    = "A program that is short of memory crashes instead of getting an exception.",
    .hint   = NOT_YOURS " Workaround: index with arrays of np.intp.",
    .looks  = "expected array[index], with each request of Python's refused in turn, to raise an "
              "exception; seen NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_found", "index_out_of_memory");
}

PROPERTY(runtime_ufunc_at_out_of_memory,
    .id     = "runtime.ufunc-at-out-of-memory",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "np.add.at without memory",
    .clause = "If Python has no memory for a view of it, np.add.at writes only to the given items "
              "of the array.",
    .source = "ufunc_object.c ufunc_at__slow_iter, which does not look whether it has its views, "
              "1.22 to 2.5",
    .why    = "Items of another dtype are written, even past the end of the block.",
    .hint   = NOT_YOURS " Workaround: put red zones after the blocks to detect it.",
    .looks  = "expected np.add.at(whole[:1], [0], 1.5), with each request of Python's refused in "
              "turn, to write to no other item; seen others were written to",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_found", "ufunc_at_out_of_memory");
}

PROPERTY(runtime_setstate_of_unfit_list,
    .id     = "runtime.setstate-of-unfit-list",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "__setstate__ keeps exceptions",
    .clause = "__setstate__ raises the exception of an item that cannot be set.",
    .source = "methods.c _setlist_pkl, which does not look whether it could, 1.22 to 2.5",
    .why    = "NumPy raises SystemError instead, and a Python with assertions aborts.",
    .hint   = NOT_YOURS,
    .looks  = "expected the exception of a state whose list has no record to be 'ValueError'; seen "
              "'SystemError'",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_found", "setstate_of_unfit_list");
}

PROPERTY(runtime_scaled_float,
    .id     = "runtime.scaled-float",
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_RUNTIME,
    .title  = "scaled floats do not crash",
    .clause = "Every operation on scaled floats, a dtype of NumPy's own tests, returns an array or "
              "raises an exception.",
    .source = "_scaled_float_dtype.c, which lacks functions that others call without a look, 1.22 "
              "to 2.5",
    .why    = "A test that uses the dtype crashes. A private function is needed to create it.",
    .hint   = NOT_YOURS,
    .looks  = "expected np.nonzero(array), of scaled floats, to be something or an exception; seen "
              "NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_found", "scaled_float");
}

PROPERTY(runtime_date_out_of_memory,
    .id     = "runtime.date-out-of-memory",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError in arrays of dates",
    .clause = "If memory for the dtype of a date is refused, making an array of it raises "
              "MemoryError.",
    .source = "dtypemeta.c discover_datetime_and_timedelta_from_pyobject, which does not look "
              "whether it has one, up to 2.4",
    .why    = "A program that is short of memory crashes instead of getting an exception.",
    .hint   = NOT_YOURS,
    .looks  = "expected np.array(np.datetime64(3, 's')), with each request of Python's refused in "
              "turn, to raise MemoryError; seen NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_found", "date_out_of_memory");
}

PROPERTY(runtime_buffer_out_of_memory,
    .id     = "runtime.buffer-out-of-memory",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError in array(buffer)",
    .clause = "If memory to examine a buffer is refused, np.array raises MemoryError.",
    .source = "ctors.c _array_from_array_like, which takes any exception for a buffer that cannot "
              "be had, 1.22 to 2.5",
    .why    = "The array silently gets another dtype.",
    .hint   = NOT_YOURS " Workaround: pass the dtype to np.array.",
    .looks  = "expected the dtypes of np.array(buffer of int32), with each request of Python's "
              "refused in turn, to be ['int32']; seen ['int32', 'int64']",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_found", "buffer_out_of_memory");
}

PROPERTY(runtime_string_allocators,
    .id     = "runtime.string-allocators",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "arrays keep their own strings",
    .clause = "flat, put, np.place and np.fromiter store the given strings in an array of "
              "StringDType.",
    .source = "iterators.c, item_selection.c, compiled_base.c and ctors.c, which take one array's "
              "strings for another's, 2.0 to 2.5.1",
    .why    = "A program that has enough memory crashes, or reads other strings.",
    .hint   = NOT_YOURS,
    .looks  = "expected np.place, of StringDType, to have the strings that it was given; seen "
              "NumPy crashed, or there are others",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_found", "string_allocators");
}

PROPERTY(runtime_record_item_out_of_memory,
    .id     = "runtime.record-item-out-of-memory",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError in record items",
    .clause = "If memory for an item of a record is refused, NumPy raises MemoryError.",
    .source = "arraytypes.c.src VOID_getitem, which puts what it does not have into a tuple, 1.22 "
              "to 2.5",
    .why    = "A program that catches MemoryError gets SystemError, and C code finds NULL in a "
              "tuple.",
    .hint   = NOT_YOURS,
    .looks  = "expected tolist of records, with each request of Python's refused in turn, to raise "
              "MemoryError; seen SystemError, or a crash",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_found", "record_item_out_of_memory");
}

PROPERTY(runtime_string_assignment_out_of_memory,
    .id     = "runtime.string-assignment-out-of-memory",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError in assignments",
    .clause = "If Python has no memory for an assigned string, NumPy raises MemoryError, and the "
              "item keeps its string or has the new one.",
    .tests  = "Items of arrays of StringDType are assigned.",
    .source = "stringdtype/dtype.c free_and_copy and static_string.c NpyString_pack, which give "
              "the old string back first, 2.0 to 2.5; NpyString_dup, which crashes, up to 2.4",
    .why    = "A program that is short of memory crashes, or finds an empty string after the "
              "exception.",
    .hint   = NOT_YOURS,
    .looks  = "expected array[:2] = array[2:], with each request of Python's refused in turn, to "
              "leave strings that were or are assigned; seen NumPy crashed, or there are others",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_found", "string_assignment_out_of_memory");
}

PROPERTY(runtime_string_dtype_out_of_memory,
    .id     = "runtime.string-dtype-out-of-memory",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError in string copies",
    .clause = "If Python has no memory for the StringDType of a copy, NumPy raises MemoryError.",
    .source = "stringdtype/dtype.c stringdtype_finalize_descr, which does not look whether it has "
              "one, 2.0 to 2.5.0",
    .why    = "A program that is short of memory crashes instead of getting an exception.",
    .hint   = NOT_YOURS,
    .looks  = "expected a copy of an array of StringDType, with each request of Python's refused "
              "in turn, to raise MemoryError; seen NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime_found", "string_dtype_out_of_memory");
}
