/* SPDX-License-Identifier: BSD-3-Clause
 *
 * numpy, continued: the routes by which NumPy comes to its handler, each with as much memory as it
 * asks for and without.  conformance/numpy_routes.py has what each family consists of.
 */
#include "harness/harness.h"
#include "python/python.h"

/* ---- with memory ---------------------------------------------------------------------------- */

PROPERTY(numpy_route_create,
    .id     = "numpy.route-create",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "arrays that NumPy makes by malloc hold what NumPy's own handler would have them "
              "hold, and every block comes back",
    .source = "ctors.c PyArray_NewFromDescr_int, 1.22 to 2.5",
    .why    = "every array begins here; one without elements still takes one byte",
    .hint   = "malloc has to give blocks of every size from one byte that overlap nothing",
    .looks  = "each_size, part 65: byte 64 to be b'\\x1c' after other arrays were used: b'\\x00'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "route_create");
}

PROPERTY(numpy_route_zeros,
    .id     = "numpy.route-zeros",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "arrays that NumPy makes by calloc hold zeros, empty ones of objects and strings "
              "among them, more than there is of memory is a MemoryError, and every block comes "
              "back",
    .source = "ctors.c PyArray_NewFromDescr_int (calloc(bytes, 1)), 1.22 to 2.5",
    .why    = "a bit left set is a wrong number, and a pointer to nowhere in an array of objects",
    .hint   = "zero what calloc gives unless it is fresh from the kernel, and compute its size "
              "from both arguments",
    .looks  = "zeros_of_each_size, part 14: byte 0 to be b'\\x00' as it is by NumPy's own: "
              "b'\\xff'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "route_zeros");
}

PROPERTY(numpy_route_resize,
    .id     = "numpy.route-resize",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "an array that is resized, growing, shrinking, to nothing and back, keeps what "
              "fits, and every block comes back",
    .source = "shape.c PyArray_Resize, 1.22 to 2.5",
    .why    = "ndarray.resize hands the block to realloc and trusts what comes back",
    .hint   = "keep the size of a block where realloc finds it, and write it anew whenever it "
              "changes",
    .looks  = "over_many_sizes, part 9: byte 3 to be b'\\x42' as it is by NumPy's own: b'\\x00'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "route_resize");
}

PROPERTY(numpy_route_fromiter,
    .id     = "numpy.route-fromiter",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "np.fromiter's array, which grows by half as much again and is cut to size in the "
              "end, holds every item, and every block comes back, where the iterator raises as "
              "well",
    .source = "ctors.c PyArray_FromIter, 1.22 to 2.5",
    .why    = "the one block is resized a dozen times, from one byte on",
    .hint   = "realloc has to work on what realloc gave",
    .looks  = "iterated_long, part 1: byte 256 to be b'\\x60' as it is by NumPy's own: b'\\x00'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "route_fromiter");
}

PROPERTY(numpy_route_fromfile,
    .id     = "numpy.route-fromfile",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "np.fromfile's array, which is cut to what the file has, holds it, and every block"
              " comes back",
    .source = "ctors.c PyArray_FromFile, 1.22 to 2.5",
    .why    = "a file shorter than was asked for is cut by realloc, in place or not",
    .hint   = "a realloc that shrinks keeps the bytes that remain",
    .looks  = "short_of_items: byte 32 to be b'\\x2d' as it is by NumPy's own: b'\\x00'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "route_fromfile");
}

PROPERTY(numpy_route_text,
    .id     = "numpy.route-text",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "arrays read from text (loadtxt, fromstring, fromfile with sep), some of it "
              "without the GIL, hold the numbers that are written there, and every block comes "
              "back",
    .source = "ctors.c array_from_text, which lets go of the GIL, 1.22 to 2.5; "
              "textreading/rows.c read_rows, 1.23 to 2.5",
    .why    = "realloc is called without the GIL, growing by doubling and cutting 32768 bytes to"
              " a few",
    .hint   = "use nothing of Python's in realloc; keep the bytes that remain when a block "
              "shrinks a lot",
    .looks  = "words, part 1: byte 16 to be b'\\x00' as it is by NumPy's own: b'\\xdd'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "route_text");
}

PROPERTY(numpy_route_pickle,
    .id     = "numpy.route-pickle",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "arrays come out of a pickle or a file of np.save as they went in, by every "
              "protocol, and every block comes back",
    .source = "methods.c array_setstate and array_reconstruct, 1.22 to 2.5",
    .why    = "unpickling gives a block of one byte back and takes the real one right after",
    .hint   = "do not hand a block that was freed with a small size out for a larger one",
    .looks  = "of_numbers: byte 8 to be b'\\xef' after other arrays were used: b'\\x00'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "route_pickle");
}

PROPERTY(numpy_route_setstate,
    .id     = "numpy.route-setstate",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "__setstate__ on an array gives its block back and takes one of the new size, "
              "which holds the new data",
    .source = "methods.c array_setstate, 1.22 to 2.5",
    .why    = "the block goes to the handler of the array, the new one comes from that in force",
    .hint   = "free looks the size of a block up, and believes nobody",
    .looks  = "states_of_every_length, part 4: byte 900 to be b'\\x11' after other arrays were "
              "used: b'\\x00'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "route_setstate");
}

PROPERTY(numpy_route_sort,
    .id     = "numpy.route-sort",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "sorts and partitions, in place or through a buffer, put the same numbers in the "
              "same order, and every block comes back",
    .source = "npysort and item_selection.c _new_sortlike, 1.22 to 2.5",
    .why    = "what is strided, swapped or misaligned is sorted in a buffer, and NumPy up to "
              "1.24 frees NULL after every contiguous sort",
    .hint   = "a buffer is a block like any other; free(NULL, n) does nothing",
    .looks  = "strided, part 1: byte 0 to be b'\\x02' as it is by NumPy's own: b'\\x5a'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "route_sort");
}

PROPERTY(numpy_route_argsort,
    .id     = "numpy.route-argsort",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "argsort and its kin give the same positions, and every block comes back",
    .source = "item_selection.c _new_argsortlike, 1.22 to 2.5",
    .why    = "two buffers are live beside the data and the result, and NULL is freed with the "
              "size of one",
    .hint   = "free(NULL, n) does nothing, whatever n is",
    .looks  = "across: byte 8 to be b'\\x03' as it is by NumPy's own: b'\\x00'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "route_argsort");
}

PROPERTY(numpy_route_structured_sort,
    .id     = "numpy.route-structured-sort",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "arrays of records are sorted alike, with a pair of small blocks for each "
              "comparison, and every block comes back",
    .source = "arraytypes.c.src VOID_compare, 1.22 to 2.5",
    .why    = "hundreds of tiny blocks come and go within one sort, and where one is refused "
              "NumPy takes the records for equal",
    .hint   = "small blocks that were freed have to be there for the next malloc",
    .looks  = "of_records, part 5: byte 11 to be b'\\x01' as it is by NumPy's own: b'\\x02'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "route_structured_sort");
}

PROPERTY(numpy_route_string_dtype,
    .id     = "numpy.route-string-dtype",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "arrays of StringDType, made, sorted, resized and pickled, hold the same strings, "
              "and every block comes back",
    .source = "ctors.c PyArray_NewFromDescr_int, shape.c PyArray_Resize; stringdtype/, 2.0 to "
              "2.5",
    .why    = "an element is 16 bytes that NumPy reads as a string or a reference to one, so it "
              "has to begin as zeros",
    .hint   = "as for zeros and resize",
    .looks  = "strings, part 2: 'a string' to be as it is by NumPy's own",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "route_string_dtype");
}

PROPERTY(numpy_route_makers,
    .id     = "numpy.route-makers",
    .slow_ms = 72,
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "whatever else of NumPy's makes arrays, some two hundred functions and methods, "
              "gives the same ones, and every block comes back",
    .source = "the calls of PyArray_NewFromDescr and its kin in ctors.c, convert.c, "
              "item_selection.c, mapping.c, iterators.c, nditer_constr.c, compiled_base.c, "
              "ufunc_object.c and reduction.c, 1.22 to 2.5",
    .why    = "programs do more than make arrays and sort them; scratch arrays of each of these "
              "come and go in an order of its own",
    .hint   = "the report names the line of NumPy; handlers that serve only what their author "
              "tried fail here",
    .looks  = "into(row, lambda a: add.at(a, [1], 2)): byte 9 to be b'\\xc0' as it is by NumPy's "
              "own: b'\\x00'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_makers", "route");
}

/* ---- without --------------------------------------------------------------------------------- */

/* The N-th request is refused for N = 1, 2, ... until the family needs no more: before the subject,
 * which then sees what NumPy does next, and beneath it, so that its own way out is taken.
 * What NumPy itself does not get through is left out here: runtime.* tells of it. */

PROPERTY(numpy_out_of_memory_create,
    .id     = "numpy.out-of-memory-create",
    .ends_process = true,
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "when there is no memory for making and computing arrays at any of its requests or"
              " from then on, NumPy raises MemoryError or goes on and is right, live arrays stay"
              " as they were, and every block comes back",
    .source = "ctors.c PyArray_NewFromDescr_int, 1.22 to 2.5",
    .why    = "the expression that asks for too much must fail alone",
    .hint   = "return NULL and nothing else, and keep no lock",
    .looks  = "CRASH: SIGSEGV at address 0x40, while NumPy works on computed with request 3 of "
              "the handler's to libc refused",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "out_of_memory_create");
}

PROPERTY(numpy_out_of_memory_zeros,
    .id     = "numpy.out-of-memory-zeros",
    .ends_process = true,
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "when there is no memory for arrays of zeros, and empty ones of objects and "
              "strings, at any of its requests or from then on, NumPy raises MemoryError or goes"
              " on and is right, live arrays stay as they were, and every block comes back",
    .source = "ctors.c PyArray_NewFromDescr_int, 1.22 to 2.5",
    .why    = "calloc is how programs find out that an array is too large",
    .hint   = "calloc returns NULL before it zeroes or writes a header",
    .looks  = "CRASH: SIGSEGV at address 0, inside calloc(80, 1)",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "out_of_memory_zeros");
}

PROPERTY(numpy_out_of_memory_resize,
    .id     = "numpy.out-of-memory-resize",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "when there is no memory for a resize at any of its requests or from then on, "
              "NumPy raises MemoryError or goes on and is right, live arrays stay as they were, "
              "and every block comes back",
    .source = "shape.c PyArray_Resize, 1.22 to 2.5",
    .why    = "the array goes on to use its old block",
    .hint   = "a realloc that fails leaves the block as it was, its header as well",
    .looks  = "grown_and_shrunk: byte 0 to be b'\\xef' with request 2 of the handler's to libc "
              "refused: b'\\x00'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "out_of_memory_resize");
}

PROPERTY(numpy_out_of_memory_fromiter,
    .id     = "numpy.out-of-memory-fromiter",
    .ends_process = true,
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "when there is no memory for np.fromiter, at the first block and at each growth, "
              "at any of its requests or from then on, NumPy raises MemoryError or goes on and "
              "is right, live arrays stay as they were, and every block comes back",
    .source = "ctors.c PyArray_FromIter, 1.22 to 2.5",
    .why    = "the array so far is freed with what it has, a MemoryError pending",
    .hint   = "a realloc that fails leaves the block to be freed",
    .looks  = "CRASH: SIGABRT, inside free(0x55d0c0a8b2a0, 56)",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "out_of_memory_fromiter");
}

PROPERTY(numpy_out_of_memory_fromfile,
    .id     = "numpy.out-of-memory-fromfile",
    .ends_process = true,
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "when there is no memory for np.fromfile, the cut to size included, at any of its "
              "requests or from then on, NumPy raises MemoryError or goes on and is right, live "
              "arrays stay as they were, and every block comes back",
    .source = "ctors.c PyArray_FromFile, 1.22 to 2.5",
    .why    = "the cut that fails is no reason to lose the block",
    .hint   = "a realloc that shrinks may fail like any other: NULL, and the block stays",
    .looks  = "CRASH: SIGABRT, inside free(0x55d0c0a8b2a0, 72)",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "out_of_memory_fromfile");
}

PROPERTY(numpy_out_of_memory_text,
    .id     = "numpy.out-of-memory-text",
    .ends_process = true,
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "when there is no memory for reading text, where realloc fails without the GIL as "
              "well, at any of its requests or from then on, NumPy raises MemoryError or goes on"
              " and is right, live arrays stay as they were, and every block comes back",
    .source = "ctors.c array_from_text, 1.22 to 2.5; textreading/rows.c read_rows, 1.23 to 2.5",
    .why    = "after a growth that failed NumPy may call realloc on the same block again, to cut"
              " it",
    .hint   = "a realloc that fails leaves the block as it was; set no exception there",
    .looks  = "CRASH: SIGSEGV, while NumPy works on many_words with request 2 of the handler's "
              "to libc refused",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "out_of_memory_text");
}

PROPERTY(numpy_out_of_memory_pickle,
    .id     = "numpy.out-of-memory-pickle",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "when there is no memory for unpickling at any of its requests or from then on, "
              "NumPy raises MemoryError or goes on and is right, live arrays stay as they were, "
              "and every block comes back",
    .source = "methods.c array_setstate and array_reconstruct, 1.22 to 2.5",
    .why    = "the half-made array is freed while a MemoryError is pending",
    .hint   = "free only what is said to be freed, whatever failed before",
    .looks  = "the blocks left over of of_numbers with request 2 refused to be 0: 1",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "out_of_memory_pickle");
}

PROPERTY(numpy_out_of_memory_setstate,
    .id     = "numpy.out-of-memory-setstate",
    .ends_process = true,
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "when there is no memory for __setstate__, which has given the old block back by "
              "then, at any of its requests or from then on, NumPy raises MemoryError or goes on"
              " and is right, live arrays stay as they were, and every block comes back",
    .source = "methods.c array_setstate, 1.22 to 2.5",
    .why    = "the array has no block left and must not free one",
    .hint   = "free(NULL, n) does nothing",
    .looks  = "CRASH: SIGSEGV at address 0xfffffffffffffff0, inside free((nil), 32)",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "out_of_memory_setstate");
}

PROPERTY(numpy_out_of_memory_sort,
    .id     = "numpy.out-of-memory-sort",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "when there is no memory for the buffer of a sort or partition at any of its "
              "requests or from then on, NumPy raises MemoryError or goes on and is right, live "
              "arrays stay as they were, and every block comes back",
    .source = "item_selection.c _new_sortlike, 1.22 to 2.5",
    .why    = "NumPy frees the buffer that it did not get: NULL, with its size",
    .hint   = "free(NULL, n) does nothing, whatever n is",
    .looks  = "byte 12 of 700 to be 0x4e after arrays that there was no memory for: 0x00",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "out_of_memory_sort");
}

PROPERTY(numpy_out_of_memory_argsort,
    .id     = "numpy.out-of-memory-argsort",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "when there is no memory for the buffers and the result of argsort at any of its "
              "requests or from then on, NumPy raises MemoryError or goes on and is right, live "
              "arrays stay as they were, and every block comes back",
    .source = "item_selection.c _new_argsortlike, 1.22 to 2.5",
    .why    = "of two buffers one may be there and the other not, and both are freed",
    .hint   = "free(NULL, n) does nothing, whatever n is",
    .looks  = "byte 12 of 700 to be 0x4e after arrays that there was no memory for: 0x00",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "out_of_memory_argsort");
}

PROPERTY(numpy_out_of_memory_structured_sort,
    .id     = "numpy.out-of-memory-structured-sort",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "when there is no memory for the comparisons of a structured sort at any of its "
              "requests or from then on, NumPy raises MemoryError or goes on, without losing a "
              "record, live arrays stay as they were, and every block comes back",
    .source = "arraytypes.c.src VOID_compare, 1.22 to 2.5",
    .why    = "a comparison without memory frees what it has and counts as equal: no record may "
              "be lost over it",
    .hint   = "a small malloc that fails leaves everything else as it was",
    .looks  = "byte 12 of 30 to be 0x4e after arrays that there was no memory for: 0x00",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "out_of_memory_structured_sort");
}

PROPERTY(numpy_out_of_memory_string_dtype,
    .id     = "numpy.out-of-memory-string-dtype",
    .ends_process = true,
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "when there is no memory for arrays of StringDType at any of its requests or from "
              "then on, NumPy raises MemoryError or goes on and is right, live arrays stay as "
              "they were, and every block comes back",
    .source = "ctors.c PyArray_NewFromDescr_int, shape.c PyArray_Resize; stringdtype/, 2.0 to "
              "2.5",
    .why    = "the strings that an array has hang on its block",
    .hint   = "as for create, zeros and resize",
    .looks  = "CRASH: SIGSEGV at address 0x40, while NumPy works on strings with request 1 of "
              "the handler's to libc refused",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_routes", "out_of_memory_string_dtype");
}

PROPERTY(numpy_out_of_memory_makers,
    .id     = "numpy.out-of-memory-makers",
    .slow_ms = 148, .ends_process = true,
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "when there is no memory for whatever else of NumPy's makes arrays, at any of its "
              "requests or from then on, NumPy raises MemoryError or goes on and is right, live "
              "arrays stay as they were, and every block comes back",
    .source = "as numpy.route-makers; what this NumPy itself does not get through is left out",
    .why    = "most of them hold several blocks when one is refused, and give them back on a way "
              "out that is seldom taken",
    .hint   = "return NULL and nothing else, and keep no lock",
    .looks  = "CRASH: SIGSEGV at address 0x40, while NumPy works on unpackbits(packbits(bits)) "
              "with request 2 of the handler's to libc refused",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("numpy_makers", "out_of_memory");
}
