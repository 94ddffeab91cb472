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
    .clause = "arrays that NumPy makes by malloc equal those of its own handler; no block is lost",
    .source = "ctors.c PyArray_NewFromDescr_int, 1.22 to 2.5",
    .why    = "every array begins here; one without elements still takes one byte",
    .hint   = "return blocks of every size from one byte on that overlap nothing",
    .looks  = "each_size, part 65: byte 64 to be b'\\x1c' after other arrays were used: b'\\x00'");

PYTHON_PROPERTY(numpy_routes, route_zeros,
    .id     = "numpy.route-zeros", .level = MUST, .basis = BASIS_CALLER,
    .title  = "arrays of zeros are right",
    .clause = "arrays that NumPy makes by calloc hold zeros, too large ones raise MemoryError, "
              "and no block is lost",
    .source = "ctors.c PyArray_NewFromDescr_int (calloc(bytes, 1)), 1.22 to 2.5",
    .why    = "a bit left set is a wrong number, and a pointer to nowhere in an array of objects",
    .hint   = "zero what is not fresh from the kernel; compute the size from both arguments",
    .looks  = "zeros_of_each_size, part 14: byte 0 to be b'\\x00' as by NumPy's own: b'\\xff'");

PYTHON_PROPERTY(numpy_routes, route_resize,
    .id     = "numpy.route-resize", .level = MUST, .basis = BASIS_CALLER,
    .title  = "resized arrays keep their data",
    .clause = "a resized array, larger, smaller or empty, keeps what fits; no block is lost",
    .source = "shape.c PyArray_Resize, 1.22 to 2.5",
    .why    = "ndarray.resize hands the block to realloc and trusts what comes back",
    .hint   = "keep a block's size where realloc finds it, and update it on every change",
    .looks  = "over_many_sizes, part 9: byte 3 to be b'\\x42' as it is by NumPy's own: b'\\x00'");

PYTHON_PROPERTY(numpy_routes, route_fromiter,
    .id     = "numpy.route-fromiter", .level = MUST, .basis = BASIS_CALLER,
    .title  = "np.fromiter holds every item",
    .clause = "np.fromiter's array, grown and cut in the end, holds every item, and no block is "
              "lost, even if the iterator raises",
    .source = "ctors.c PyArray_FromIter, 1.22 to 2.5",
    .why    = "the one block is resized a dozen times, from one byte on",
    .hint   = "let realloc accept what realloc returned",
    .looks  = "iterated_long, part 1: byte 256 to be b'\\x60' as it is by NumPy's own: b'\\x00'");

PYTHON_PROPERTY(numpy_routes, route_fromfile,
    .id     = "numpy.route-fromfile", .level = MUST, .basis = BASIS_CALLER,
    .title  = "np.fromfile holds the file",
    .clause = "np.fromfile's array, cut to what the file has, holds it, and no block is lost",
    .source = "ctors.c PyArray_FromFile, 1.22 to 2.5",
    .why    = "a file shorter than was asked for is cut by realloc, in place or not",
    .hint   = "keep the bytes that remain when realloc shrinks a block",
    .looks  = "short_of_items: byte 32 to be b'\\x2d' as it is by NumPy's own: b'\\x00'");

PYTHON_PROPERTY(numpy_routes, route_text,
    .id     = "numpy.route-text", .level = MUST, .basis = BASIS_CALLER,
    .title  = "arrays read from text are right",
    .clause = "arrays read from text, also without the GIL, are right, and no block is lost",
    .source = "ctors.c array_from_text, 1.22 to 2.5; textreading/rows.c read_rows, 1.23 to 2.5",
    .why    = "realloc is called without the GIL, doubles blocks and cuts 32768 bytes to a few",
    .hint   = "use nothing of Python's in realloc; keep the bytes that remain when a block shrinks",
    .looks  = "words, part 1: byte 16 to be b'\\x00' as it is by NumPy's own: b'\\xdd'");

PYTHON_PROPERTY(numpy_routes, route_pickle,
    .id     = "numpy.route-pickle", .level = MUST, .basis = BASIS_CALLER,
    .title  = "pickled and saved arrays are right",
    .clause = "arrays come out of a pickle or np.save as they went in, and no block is lost",
    .source = "methods.c array_setstate and array_reconstruct, 1.22 to 2.5",
    .why    = "unpickling gives a block of one byte back and takes the real one right after",
    .hint   = "do not hand a block that was freed with a small size out for a larger one",
    .looks  = "of_numbers: byte 8 to be b'\\xef' after other arrays were used: b'\\x00'");

PYTHON_PROPERTY(numpy_routes, route_setstate,
    .id     = "numpy.route-setstate", .level = MUST, .basis = BASIS_CALLER,
    .title  = "__setstate__ replaces the block",
    .clause = "__setstate__ frees an array's block and allocates one for the new data",
    .source = "methods.c array_setstate, 1.22 to 2.5",
    .why    = "the block goes to the handler of the array, the new one comes from that in force",
    .hint   = "look up the size of a block in free; do not use the argument",
    .looks  = "states_of_every_length, part 4: byte 900 to be b'\\x11': b'\\x00'");

PYTHON_PROPERTY(numpy_routes, route_sort,
    .id     = "numpy.route-sort", .level = MUST, .basis = BASIS_CALLER,
    .title  = "sorted arrays are right",
    .clause = "sorts and partitions, in place or buffered, give the same order; no block is lost",
    .source = "npysort and item_selection.c _new_sortlike, 1.22 to 2.5",
    .why    = "strided or misaligned data is sorted in a buffer; up to 1.24 NumPy then frees NULL",
    .hint   = "treat the buffer as any block; free(NULL, n) does nothing",
    .looks  = "strided, part 1: byte 0 to be b'\\x02' as it is by NumPy's own: b'\\x5a'");

PYTHON_PROPERTY(numpy_routes, route_argsort,
    .id     = "numpy.route-argsort", .level = MUST, .basis = BASIS_CALLER,
    .title  = "argsort gives the right positions",
    .clause = "argsort and similar functions give the same positions, and no block is lost",
    .source = "item_selection.c _new_argsortlike, 1.22 to 2.5",
    .why    = "two buffers are live beside the data, and NULL is freed with the size of one",
    .hint   = "free(NULL, n) does nothing, whatever n is",
    .looks  = "across: byte 8 to be b'\\x03' as it is by NumPy's own: b'\\x00'");

PYTHON_PROPERTY(numpy_routes, route_structured_sort,
    .id     = "numpy.route-structured-sort", .level = MUST, .basis = BASIS_CALLER,
    .title  = "sorted records are right",
    .clause = "arrays of records sort the same, two small blocks per comparison; none is lost",
    .source = "arraytypes.c.src VOID_compare, 1.22 to 2.5",
    .why    = "hundreds of tiny blocks come and go; without one NumPy takes records for equal",
    .hint   = "reuse small freed blocks for the next malloc",
    .looks  = "of_records, part 5: byte 11 to be b'\\x01' as it is by NumPy's own: b'\\x02'");

PYTHON_PROPERTY(numpy_routes, route_string_dtype,
    .id     = "numpy.route-string-dtype", .level = MUST, .basis = BASIS_CALLER,
    .title  = "arrays of StringDType are right",
    .clause = "arrays of StringDType hold the same strings by every route; no block is lost",
    .source = "ctors.c PyArray_NewFromDescr_int, shape.c PyArray_Resize; stringdtype/, 2.0 to 2.5",
    .why    = "an element is 16 bytes that NumPy reads as a reference, so it has to begin as zeros",
    .hint   = "see numpy.route-zeros and numpy.route-resize",
    .looks  = "strings, part 2: 'a string' to be as it is by NumPy's own");

PYTHON_PROPERTY(numpy_makers, route,
    .id     = "numpy.route-makers", .level = MUST, .basis = BASIS_CALLER, .slow_ms = 72,
    .title  = "other array functions are right",
    .clause = "two hundred other functions that make arrays give the same; no block is lost",
    .source = "PyArray_NewFromDescr's callers in ctors.c, convert.c, item_selection.c, mapping.c, "
              "iterators.c, nditer_constr.c, compiled_base.c, ufunc_object.c, reduction.c, 1.22 "
              "to 2.5",
    .why    = "scratch arrays of each function come and go in an order of their own",
    .hint   = "see the line of NumPy in the report; serve more than the calls that you tried",
    .looks  = "into(row, lambda a: add.at(a, [1], 2)): byte 9 to be b'\\xc0': b'\\x00'");

/* ---- without --------------------------------------------------------------------------------- */

/* The N-th request is refused for N = 1, 2, ... until the family needs no more: before the subject,
 * which then sees what NumPy does next, and beneath it, so that its own way out is taken.
 * What NumPy itself does not get through is left out here: runtime.* tells of it. */
#define WITHOUT_MEMORY_FOR(work)                                                                   \
    "if memory for " work " is refused at any request, NumPy raises MemoryError or is right; "     \
    "live arrays stay, and no block is lost"

PYTHON_PROPERTY(numpy_routes, out_of_memory_create,
    .id     = "numpy.out-of-memory-create", .level = MUST, .basis = BASIS_CALLER,
    .ends_process = true,
    .title  = "refused memory: new arrays",
    .clause = WITHOUT_MEMORY_FOR("making and computing arrays"),
    .source = "ctors.c PyArray_NewFromDescr_int, 1.22 to 2.5",
    .why    = "the expression that asks for too much must fail alone",
    .hint   = "return NULL and nothing else, and keep no lock",
    .looks  = "CRASH: SIGSEGV at address 0x40, in computed with request 3 of the handler's refused");

PYTHON_PROPERTY(numpy_routes, out_of_memory_zeros,
    .id     = "numpy.out-of-memory-zeros", .level = MUST, .basis = BASIS_CALLER,
    .ends_process = true,
    .title  = "refused memory: arrays of zeros",
    .clause = WITHOUT_MEMORY_FOR("arrays of zeros"),
    .source = "ctors.c PyArray_NewFromDescr_int, 1.22 to 2.5",
    .why    = "calloc is how programs find out that an array is too large",
    .hint   = "calloc returns NULL before it zeroes or writes a header",
    .looks  = "CRASH: SIGSEGV at address 0, inside calloc(80, 1)");

PYTHON_PROPERTY(numpy_routes, out_of_memory_resize,
    .id     = "numpy.out-of-memory-resize", .level = MUST, .basis = BASIS_CALLER,
    .title  = "refused memory: resize",
    .clause = WITHOUT_MEMORY_FOR("a resize"),
    .source = "shape.c PyArray_Resize, 1.22 to 2.5",
    .why    = "the array goes on to use its old block",
    .hint   = "a realloc that fails leaves the block as it was, its header as well",
    .looks  = "grown_and_shrunk: byte 0 to be b'\\xef' with request 2 refused: b'\\x00'");

PYTHON_PROPERTY(numpy_routes, out_of_memory_fromiter,
    .id     = "numpy.out-of-memory-fromiter", .level = MUST, .basis = BASIS_CALLER,
    .ends_process = true,
    .title  = "refused memory: np.fromiter",
    .clause = WITHOUT_MEMORY_FOR("np.fromiter, at each growth"),
    .source = "ctors.c PyArray_FromIter, 1.22 to 2.5",
    .why    = "the array so far is freed with what it has, a MemoryError pending",
    .hint   = "a realloc that fails leaves the block to be freed",
    .looks  = "CRASH: SIGABRT, inside free(0x55d0c0a8b2a0, 56)");

PYTHON_PROPERTY(numpy_routes, out_of_memory_fromfile,
    .id     = "numpy.out-of-memory-fromfile", .level = MUST, .basis = BASIS_CALLER,
    .ends_process = true,
    .title  = "refused memory: np.fromfile",
    .clause = WITHOUT_MEMORY_FOR("np.fromfile and its cut"),
    .source = "ctors.c PyArray_FromFile, 1.22 to 2.5",
    .why    = "the cut that fails is no reason to lose the block",
    .hint   = "a realloc that shrinks may fail like any other: NULL, and the block stays",
    .looks  = "CRASH: SIGABRT, inside free(0x55d0c0a8b2a0, 72)");

PYTHON_PROPERTY(numpy_routes, out_of_memory_text,
    .id     = "numpy.out-of-memory-text", .level = MUST, .basis = BASIS_CALLER,
    .ends_process = true,
    .title  = "refused memory: reading text",
    .clause = WITHOUT_MEMORY_FOR("reading text, without the GIL too"),
    .source = "ctors.c array_from_text, 1.22 to 2.5; textreading/rows.c read_rows, 1.23 to 2.5",
    .why    = "after a refused growth NumPy may call realloc on the same block again, to cut it",
    .hint   = "a realloc that fails leaves the block as it was; set no exception there",
    .looks  = "CRASH: SIGSEGV, while NumPy works on many_words with request 2 refused");

PYTHON_PROPERTY(numpy_routes, out_of_memory_pickle,
    .id     = "numpy.out-of-memory-pickle", .level = MUST, .basis = BASIS_CALLER,
    .title  = "refused memory: unpickling",
    .clause = WITHOUT_MEMORY_FOR("unpickling"),
    .source = "methods.c array_setstate and array_reconstruct, 1.22 to 2.5",
    .why    = "the half-made array is freed while a MemoryError is pending",
    .hint   = "free only what is said to be freed, whatever failed before",
    .looks  = "the blocks left over of of_numbers with request 2 refused to be 0: 1");

PYTHON_PROPERTY(numpy_routes, out_of_memory_setstate,
    .id     = "numpy.out-of-memory-setstate", .level = MUST, .basis = BASIS_CALLER,
    .ends_process = true,
    .title  = "refused memory: __setstate__",
    .clause = WITHOUT_MEMORY_FOR("__setstate__"),
    .source = "methods.c array_setstate, 1.22 to 2.5",
    .why    = "the array has no block left and must not free one",
    .hint   = "free(NULL, n) does nothing",
    .looks  = "CRASH: SIGSEGV at address 0xfffffffffffffff0, inside free((nil), 32)");

PYTHON_PROPERTY(numpy_routes, out_of_memory_sort,
    .id     = "numpy.out-of-memory-sort", .level = MUST, .basis = BASIS_CALLER,
    .title  = "refused memory: sort",
    .clause = WITHOUT_MEMORY_FOR("the buffer of a sort"),
    .source = "item_selection.c _new_sortlike, 1.22 to 2.5",
    .why    = "NumPy frees the buffer that it did not get: NULL, with its size",
    .hint   = "free(NULL, n) does nothing, whatever n is",
    .looks  = "byte 12 of 700 to be 0x4e after arrays that there was no memory for: 0x00");

PYTHON_PROPERTY(numpy_routes, out_of_memory_argsort,
    .id     = "numpy.out-of-memory-argsort", .level = MUST, .basis = BASIS_CALLER,
    .title  = "refused memory: argsort",
    .clause = WITHOUT_MEMORY_FOR("the buffers of argsort"),
    .source = "item_selection.c _new_argsortlike, 1.22 to 2.5",
    .why    = "of two buffers one may be there and the other not, and both are freed",
    .hint   = "free(NULL, n) does nothing, whatever n is",
    .looks  = "byte 12 of 700 to be 0x4e after arrays that there was no memory for: 0x00");

PYTHON_PROPERTY(numpy_routes, out_of_memory_structured_sort,
    .id     = "numpy.out-of-memory-structured-sort", .level = MUST, .basis = BASIS_CALLER,
    .title  = "refused memory: sorting records",
    .clause = WITHOUT_MEMORY_FOR("comparing records"),
    .source = "arraytypes.c.src VOID_compare, 1.22 to 2.5",
    .why    = "a comparison without memory counts as equal: no record may be lost",
    .hint   = "a small malloc that fails leaves everything else as it was",
    .looks  = "byte 12 of 30 to be 0x4e after arrays that there was no memory for: 0x00");

PYTHON_PROPERTY(numpy_routes, out_of_memory_string_dtype,
    .id     = "numpy.out-of-memory-string-dtype", .level = MUST, .basis = BASIS_CALLER,
    .ends_process = true,
    .title  = "refused memory: StringDType",
    .clause = WITHOUT_MEMORY_FOR("arrays of StringDType"),
    .source = "ctors.c PyArray_NewFromDescr_int, shape.c PyArray_Resize; stringdtype/, 2.0 to 2.5",
    .why    = "the strings of an array depend on its block",
    .hint   = "see numpy.route-create, numpy.route-zeros and numpy.route-resize",
    .looks  = "CRASH: SIGSEGV at address 0x40, while NumPy works on strings with request 1 refused");

PYTHON_PROPERTY(numpy_makers, out_of_memory,
    .id     = "numpy.out-of-memory-makers", .level = MUST, .basis = BASIS_CALLER, .slow_ms = 148,
    .ends_process = true,
    .title  = "refused memory: other functions",
    .clause = WITHOUT_MEMORY_FOR("other functions that make arrays"),
    .source = "as numpy.route-makers; what this NumPy itself does not get through is left out",
    .why    = "most hold several blocks when one is refused, and free them on a rare path",
    .hint   = "return NULL and nothing else, and keep no lock",
    .looks  = "CRASH: SIGSEGV at address 0x40, in unpackbits(packbits(bits)) with request 2 "
              "refused");
