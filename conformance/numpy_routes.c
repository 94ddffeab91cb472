/* SPDX-License-Identifier: BSD-3-Clause
 *
 * numpy, continued: the routes by which NumPy comes to its handler, each with as much memory as it
 * asks for and without.  conformance/numpy_routes.py has what each family consists of.
 */
#include "harness/harness.h"
#include "python/python.h"

/* ---- with memory ---------------------------------------------------------------------------- */

PYTHON_PROPERTY(numpy_routes, route_create,
    .id     = "numpy.route-create", .level = MUST, .basis = BASIS_CALLER,
    .title  = "new arrays are right",
    .clause = "Arrays that NumPy allocates with malloc equal those of NumPy's own handler, and no "
              "block leaks.",
    .source = "ctors.c PyArray_NewFromDescr_int, 1.22 to 2.5",
    .why    = "Every array starts here. An array without elements still takes one byte.",
    .hint   = "Return blocks of every size from one byte on that do not overlap.",
    .looks  = "expected each_size, part 65: byte 64 to be b'\\x1c' after other arrays were used; "
              "seen b'\\x00'");

PYTHON_PROPERTY(numpy_routes, route_zeros,
    .id     = "numpy.route-zeros", .level = MUST, .basis = BASIS_CALLER,
    .title  = "arrays of zeros are right",
    .clause = "Arrays that NumPy allocates with calloc hold zeros, and no block leaks.",
    .tests  = "Arrays that are too large have to raise MemoryError.",
    .source = "ctors.c PyArray_NewFromDescr_int (calloc(bytes, 1)), 1.22 to 2.5",
    .why    = "A bit that stays set is a wrong number, or a wild pointer in an array of objects.",
    .hint   = "Clear all memory that is not fresh from the kernel. Compute the size from both "
              "arguments.",
    .looks  = "expected zeros_of_each_size, part 14: byte 0 to be b'\\x00' as by NumPy's own; seen "
              "b'\\xff'");

PYTHON_PROPERTY(numpy_routes, route_resize,
    .id     = "numpy.route-resize", .level = MUST, .basis = BASIS_CALLER,
    .title  = "resized arrays keep their data",
    .clause = "A resized array keeps the elements that fit, and no block leaks.",
    .tests  = "Arrays are made larger, smaller and empty.",
    .source = "shape.c PyArray_Resize, 1.22 to 2.5",
    .why    = "ndarray.resize passes the block to realloc and relies on the result.",
    .hint   = "Store a block's size where realloc finds it, and update it on every change.",
    .looks  = "expected over_many_sizes, part 9: byte 3 to be b'\\x42' as it is by NumPy's own; "
              "seen b'\\x00'");

PYTHON_PROPERTY(numpy_routes, route_fromiter,
    .id     = "numpy.route-fromiter", .level = MUST, .basis = BASIS_CALLER,
    .title  = "np.fromiter holds every item",
    .clause = "The array that np.fromiter grows and finally cuts holds every item, and no block "
              "leaks.",
    .tests  = "In some runs the iterator raises an exception.",
    .source = "ctors.c PyArray_FromIter, 1.22 to 2.5",
    .why    = "NumPy resizes one block a dozen times, starting with one byte.",
    .hint   = "Make realloc accept blocks that realloc returned.",
    .looks  = "expected iterated_long, part 1: byte 256 to be b'\\x60' as it is by NumPy's own; "
              "seen b'\\x00'");

PYTHON_PROPERTY(numpy_routes, route_fromfile,
    .id     = "numpy.route-fromfile", .level = MUST, .basis = BASIS_CALLER,
    .title  = "np.fromfile holds the file",
    .clause = "The array of np.fromfile, cut to the length of the file, holds its data, and no "
              "block leaks.",
    .source = "ctors.c PyArray_FromFile, 1.22 to 2.5",
    .why    = "realloc cuts the block, in place or not, if the file is shorter than requested.",
    .hint   = "Keep the bytes that remain if realloc shrinks a block.",
    .looks  = "expected short_of_items: byte 32 to be b'\\x2d' as it is by NumPy's own; seen "
              "b'\\x00'");

PYTHON_PROPERTY(numpy_routes, route_text,
    .id     = "numpy.route-text", .level = MUST, .basis = BASIS_CALLER,
    .title  = "arrays read from text are right",
    .clause = "Arrays read from text hold the right values, and no block leaks.",
    .tests  = "Some routes call realloc without the GIL.",
    .source = "ctors.c array_from_text, 1.22 to 2.5; textreading/rows.c read_rows, 1.23 to 2.5",
    .why    = "NumPy calls realloc without the GIL, doubles blocks, and cuts 32768 bytes to a few.",
    .hint   = "Use no Python API in realloc. Keep the bytes that remain if a block shrinks.",
    .looks  = "expected words, part 1: byte 16 to be b'\\x00' as it is by NumPy's own; seen "
              "b'\\xdd'");

PYTHON_PROPERTY(numpy_routes, route_pickle,
    .id     = "numpy.route-pickle", .level = MUST, .basis = BASIS_CALLER,
    .title  = "pickled and saved arrays are right",
    .clause = "Arrays come back from a pickle or np.save unchanged, and no block leaks.",
    .source = "methods.c array_setstate and array_reconstruct, 1.22 to 2.5",
    .why    = "Unpickling frees a block of one byte and allocates the real one right after.",
    .hint   = "Do not return a block that was freed with a small size for a larger request.",
    .looks  = "expected of_numbers: byte 8 to be b'\\xef' after other arrays were used; seen "
              "b'\\x00'");

PYTHON_PROPERTY(numpy_routes, route_setstate,
    .id     = "numpy.route-setstate", .level = MUST, .basis = BASIS_CALLER,
    .title  = "__setstate__ replaces the block",
    .clause = "__setstate__ frees an array's block and allocates one for the new data.",
    .source = "methods.c array_setstate, 1.22 to 2.5",
    .why    = "The array's handler frees the old block, and the active handler allocates the new "
              "one.",
    .hint   = "In free look up the size of the block. Do not use the size argument.",
    .looks  = "expected states_of_every_length, part 4: byte 900 to be b'\\x11'; seen b'\\x00'");

PYTHON_PROPERTY(numpy_routes, route_sort,
    .id     = "numpy.route-sort", .level = MUST, .basis = BASIS_CALLER,
    .title  = "sorted arrays are right",
    .clause = "Sorts and partitions give the same order as with NumPy's own handler, and no block "
              "leaks.",
    .tests  = "Data is sorted in place or, if strided or misaligned, in a buffer.",
    .source = "npysort and item_selection.c _new_sortlike, 1.22 to 2.5",
    .why    = "Strided or misaligned data is sorted in a buffer; up to 1.24 NumPy then frees NULL.",
    .hint   = "Treat the buffer as any block. free(NULL, n) does nothing.",
    .looks  = "expected strided, part 1: byte 0 to be b'\\x02' as it is by NumPy's own; seen "
              "b'\\x5a'");

PYTHON_PROPERTY(numpy_routes, route_argsort,
    .id     = "numpy.route-argsort", .level = MUST, .basis = BASIS_CALLER,
    .title  = "argsort gives the right positions",
    .clause = "argsort and similar functions give the same positions as with NumPy's own handler, "
              "and no block leaks.",
    .source = "item_selection.c _new_argsortlike, 1.22 to 2.5",
    .why    = "Two buffers are live besides the data, and NumPy frees NULL with the size of one.",
    .hint   = "Make free(NULL, n) do nothing, for any n.",
    .looks  = "expected across: byte 8 to be b'\\x03' as it is by NumPy's own; seen b'\\x00'");

PYTHON_PROPERTY(numpy_routes, route_structured_sort,
    .id     = "numpy.route-structured-sort", .level = MUST, .basis = BASIS_CALLER,
    .title  = "sorted records are right",
    .clause = "Arrays of records are sorted as with NumPy's own handler, and no block leaks.",
    .tests  = "Each comparison takes two small blocks.",
    .source = "arraytypes.c.src VOID_compare, 1.22 to 2.5",
    .why    = "Hundreds of tiny blocks come and go; without one, NumPy treats records as equal.",
    .hint   = "Reuse small freed blocks for the next malloc.",
    .looks  = "expected of_records, part 5: byte 11 to be b'\\x01' as it is by NumPy's own; seen "
              "b'\\x02'");

PYTHON_PROPERTY(numpy_routes, route_string_dtype,
    .id     = "numpy.route-string-dtype", .level = MUST, .basis = BASIS_CALLER,
    .title  = "arrays of StringDType are right",
    .clause = "Arrays of StringDType hold the same strings as with NumPy's own handler, and no "
              "block leaks.",
    .tests  = "The strings are compared after each of the routes.",
    .source = "ctors.c PyArray_NewFromDescr_int, shape.c PyArray_Resize; stringdtype/, 2.0 to 2.5",
    .why    = "An element is 16 bytes that NumPy reads as a reference, so it has to start as "
              "zeros.",
    .hint   = "See numpy.route-zeros and numpy.route-resize.",
    .looks  = "expected strings, part 2 to be ['a string'] as it is by NumPy's own; seen ['']");

PYTHON_PROPERTY(numpy_makers, route,
    .id     = "numpy.route-makers", .level = MUST, .basis = BASIS_CALLER, .slow_ms = 72,
    .title  = "other array functions are right",
    .clause = "Two hundred other functions that make arrays give the same results, and no block "
              "leaks.",
    .source = "PyArray_NewFromDescr's callers in ctors.c, convert.c, item_selection.c, mapping.c, "
              "iterators.c, nditer_constr.c, compiled_base.c, ufunc_object.c, reduction.c, 1.22 "
              "to 2.5",
    .why    = "Each function allocates and frees its scratch arrays in an order of its own.",
    .hint   = "Look at the NumPy expression in the report. Serve more call orders than the ones "
              "you tried.",
    .looks  = "expected into(row, lambda a: add.at(a, [1], 2)): byte 9 to be b'\\xc0'; seen "
              "b'\\x00'");

/* ---- without --------------------------------------------------------------------------------- */

/* The N-th request is refused for N = 1, 2, ... until the family needs no more: before the subject,
 * which then sees what NumPy does next, and beneath it, so that its own way out is taken.
 * What NumPy itself does not get through is left out here: runtime.* tells of it. */
#define WITHOUT_MEMORY_FOR(work)                                                                   \
    "If memory for " work " is refused, NumPy raises MemoryError or succeeds, live arrays stay "   \
    "intact, and no block leaks."
#define REFUSED_IN_TURN                                                                            \
    "Each request is refused in turn, once before it reaches the handler and once beneath the "    \
    "handler."

PYTHON_PROPERTY(numpy_routes, out_of_memory_create,
    .id     = "numpy.out-of-memory-create", .level = MUST, .basis = BASIS_CALLER,
    .ends_process = true,
    .title  = "refused memory: new arrays",
    .clause = WITHOUT_MEMORY_FOR("making and computing arrays"),
    .tests  = REFUSED_IN_TURN,
    .source = "ctors.c PyArray_NewFromDescr_int, 1.22 to 2.5",
    .why    = "Only the expression that requests too much may fail.",
    .hint   = "Return NULL and nothing else, and release every lock.",
    .looks  = "CRASH: SIGSEGV at address 0x40, in computed with request 3 of the handler's "
              "refused");

PYTHON_PROPERTY(numpy_routes, out_of_memory_zeros,
    .id     = "numpy.out-of-memory-zeros", .level = MUST, .basis = BASIS_CALLER,
    .ends_process = true,
    .title  = "refused memory: arrays of zeros",
    .clause = WITHOUT_MEMORY_FOR("arrays of zeros"),
    .tests  = REFUSED_IN_TURN,
    .source = "ctors.c PyArray_NewFromDescr_int, 1.22 to 2.5",
    .why    = "Programs find out with calloc that an array is too large.",
    .hint   = "In calloc return NULL before you clear memory or write a header.",
    .looks  = "CRASH: SIGSEGV at address 0, inside calloc(80, 1)");

PYTHON_PROPERTY(numpy_routes, out_of_memory_resize,
    .id     = "numpy.out-of-memory-resize", .level = MUST, .basis = BASIS_CALLER,
    .title  = "refused memory: resize",
    .clause = WITHOUT_MEMORY_FOR("a resize"),
    .tests  = REFUSED_IN_TURN,
    .source = "shape.c PyArray_Resize, 1.22 to 2.5",
    .why    = "The array continues to use its old block.",
    .hint   = "If realloc fails, leave the block and its header unchanged.",
    .looks  = "expected grown_and_shrunk: byte 0 to be b'\\xef' with request 2 refused; seen "
              "b'\\x00'");

PYTHON_PROPERTY(numpy_routes, out_of_memory_fromiter,
    .id     = "numpy.out-of-memory-fromiter", .level = MUST, .basis = BASIS_CALLER,
    .ends_process = true,
    .title  = "refused memory: np.fromiter",
    .clause = WITHOUT_MEMORY_FOR("a growth of np.fromiter"),
    .tests  = REFUSED_IN_TURN,
    .source = "ctors.c PyArray_FromIter, 1.22 to 2.5",
    .why    = "NumPy frees the unfinished array with its current size while a MemoryError is "
              "pending.",
    .hint   = "If realloc fails, keep the block valid, so that free accepts it.",
    .looks  = "CRASH: SIGABRT, inside free(0x55d0c0a8b2a0, 56)");

PYTHON_PROPERTY(numpy_routes, out_of_memory_fromfile,
    .id     = "numpy.out-of-memory-fromfile", .level = MUST, .basis = BASIS_CALLER,
    .ends_process = true,
    .title  = "refused memory: np.fromfile",
    .clause = WITHOUT_MEMORY_FOR("np.fromfile or its cut"),
    .tests  = REFUSED_IN_TURN,
    .source = "ctors.c PyArray_FromFile, 1.22 to 2.5",
    .why    = "A cut that fails must not lose the block.",
    .hint   = "A realloc that shrinks may fail too: return NULL and keep the block.",
    .looks  = "CRASH: SIGABRT, inside free(0x55d0c0a8b2a0, 72)");

PYTHON_PROPERTY(numpy_routes, out_of_memory_text,
    .id     = "numpy.out-of-memory-text", .level = MUST, .basis = BASIS_CALLER,
    .ends_process = true,
    .title  = "refused memory: reading text",
    .clause = WITHOUT_MEMORY_FOR("reading text"),
    .tests  = REFUSED_IN_TURN,
    .source = "ctors.c array_from_text, 1.22 to 2.5; textreading/rows.c read_rows, 1.23 to 2.5",
    .why    = "After a refused growth NumPy may call realloc on the same block again, to cut it.",
    .hint   = "If realloc fails, leave the block as it was, and set no exception.",
    .looks  = "CRASH: SIGSEGV, while NumPy works on many_words with request 2 refused");

PYTHON_PROPERTY(numpy_routes, out_of_memory_pickle,
    .id     = "numpy.out-of-memory-pickle", .level = MUST, .basis = BASIS_CALLER,
    .title  = "refused memory: unpickling",
    .clause = WITHOUT_MEMORY_FOR("unpickling"),
    .tests  = REFUSED_IN_TURN,
    .source = "methods.c array_setstate and array_reconstruct, 1.22 to 2.5",
    .why    = "NumPy frees the unfinished array while a MemoryError is pending.",
    .hint   = "Free exactly the block that is passed to free, regardless of earlier failures.",
    .looks  = "expected the blocks left over of of_numbers with request 2 refused to be 0; seen 1");

PYTHON_PROPERTY(numpy_routes, out_of_memory_setstate,
    .id     = "numpy.out-of-memory-setstate", .level = MUST, .basis = BASIS_CALLER,
    .ends_process = true,
    .title  = "refused memory: __setstate__",
    .clause = WITHOUT_MEMORY_FOR("__setstate__"),
    .tests  = REFUSED_IN_TURN,
    .source = "methods.c array_setstate, 1.22 to 2.5",
    .why    = "The array has no block left and must not free one.",
    .hint   = "Make free(NULL, n) do nothing, for any n.",
    .looks  = "CRASH: SIGSEGV at address 0xfffffffffffffff0, inside free((nil), 32)");

PYTHON_PROPERTY(numpy_routes, out_of_memory_sort,
    .id     = "numpy.out-of-memory-sort", .level = MUST, .basis = BASIS_CALLER,
    .title  = "refused memory: sort",
    .clause = WITHOUT_MEMORY_FOR("the buffer of a sort"),
    .tests  = REFUSED_IN_TURN,
    .source = "item_selection.c _new_sortlike, 1.22 to 2.5",
    .why    = "NumPy frees the buffer that it did not get: NULL, with its size.",
    .hint   = "Make free(NULL, n) do nothing, for any n.",
    .looks  = "expected byte 12 of 700 to be 0x4e after arrays that there was no memory for; seen "
              "0x00");

PYTHON_PROPERTY(numpy_routes, out_of_memory_argsort,
    .id     = "numpy.out-of-memory-argsort", .level = MUST, .basis = BASIS_CALLER,
    .title  = "refused memory: argsort",
    .clause = WITHOUT_MEMORY_FOR("the buffers of argsort"),
    .tests  = REFUSED_IN_TURN,
    .source = "item_selection.c _new_argsortlike, 1.22 to 2.5",
    .why    = "Of two buffers one may exist and the other not, and NumPy frees both.",
    .hint   = "Make free(NULL, n) do nothing, for any n.",
    .looks  = "expected byte 12 of 700 to be 0x4e after arrays that there was no memory for; seen "
              "0x00");

PYTHON_PROPERTY(numpy_routes, out_of_memory_structured_sort,
    .id     = "numpy.out-of-memory-structured-sort", .level = MUST, .basis = BASIS_CALLER,
    .title  = "refused memory: sorting records",
    .clause = WITHOUT_MEMORY_FOR("comparing records"),
    .tests  = REFUSED_IN_TURN,
    .source = "arraytypes.c.src VOID_compare, 1.22 to 2.5",
    .why    = "NumPy treats a comparison without memory as equal, and no record may be lost.",
    .hint   = "If a small malloc fails, leave everything else unchanged.",
    .looks  = "expected byte 12 of 30 to be 0x4e after arrays that there was no memory for; seen "
              "0x00");

PYTHON_PROPERTY(numpy_routes, out_of_memory_string_dtype,
    .id     = "numpy.out-of-memory-string-dtype", .level = MUST, .basis = BASIS_CALLER,
    .ends_process = true,
    .title  = "refused memory: StringDType",
    .clause = WITHOUT_MEMORY_FOR("arrays of StringDType"),
    .tests  = REFUSED_IN_TURN,
    .source = "ctors.c PyArray_NewFromDescr_int, shape.c PyArray_Resize; stringdtype/, 2.0 to 2.5",
    .why    = "The strings of an array depend on its block.",
    .hint   = "See numpy.route-create, numpy.route-zeros and numpy.route-resize.",
    .looks  = "CRASH: SIGSEGV at address 0x40, while NumPy works on strings with request 1 "
              "refused");

PYTHON_PROPERTY(numpy_makers, out_of_memory,
    .id     = "numpy.out-of-memory-makers", .level = MUST, .basis = BASIS_CALLER, .slow_ms = 148,
    .ends_process = true,
    .title  = "refused memory: other functions",
    .clause = WITHOUT_MEMORY_FOR("other functions that make arrays"),
    .tests  = REFUSED_IN_TURN,
    .source = "as numpy.route-makers; what this NumPy itself does not get through is left out",
    .why    = "Most of these functions hold several blocks when one is refused, and free them on a "
              "rare path.",
    .hint   = "Return NULL and nothing else, and release every lock.",
    .looks  = "CRASH: SIGSEGV at address 0x40, in unpackbits(packbits(bits)) with request 2 "
              "refused");
