/* SPDX-License-Identifier: BSD-3-Clause
 *
 * interop: memory of the handler in the hands of others.
 */
#include "harness/harness.h"
#include "python/python.h"

GROUP(interop, 13, "Blocks that other libraries use, and when they are freed.");

/* To a handler all of the first five look alike: a block stays for long after its array, beside
 * others that come and go, and is freed once, anywhere. */
#define HINT                                                                                       \
    "Keep a block valid until it is freed. Accept free on any thread, with any active handler."

PYTHON_PROPERTY(interop, buffer,
    .id     = "interop.buffer", .level = MUST, .basis = BASIS_CALLER,
    .title  = "blocks lent by the buffer protocol stay",
    .clause = "A block lent by the buffer protocol stays unchanged until its last consumer ends, "
              "and is then freed once.",
    .tests  = "The handler that made the block has to free it.",
    .source = "PEP 3118; buffer.c array_getbuffer, 1.22 to 2.5",
    .why    = "memoryview, bytes.join, sockets and files read arrays this way.",
    .hint   = HINT,
    .looks  = "expected byte 0 of a memoryview of 100 bytes after others came to be b'\\x42'; seen "
              "b'\\xee'");

PYTHON_PROPERTY(interop, dlpack,
    .id     = "interop.dlpack", .level = MUST, .basis = BASIS_CALLER,
    .title  = "blocks lent by DLPack stay",
    .clause = "A block lent by DLPack stays unchanged until its last consumer ends, and is then "
              "freed once.",
    .tests  = "The handler that made the block has to free it, even if no consumer takes the "
              "capsule.",
    .source = "the DLPack protocol of the array API standard; dlpack.c, 1.22 to 2.5",
    .why    = "Tensors of other libraries share memory with arrays this way.",
    .hint   = HINT,
    .looks  = "expected the blocks after the end of an unused capsule of 100 bytes to be 0; seen "
              "1");

PYTHON_PROPERTY(interop, array_interface,
    .id     = "interop.array-interface", .level = MUST, .basis = BASIS_CALLER,
    .title  = "blocks lent by __array_interface__ stay",
    .clause = "A block lent by __array_interface__ or __array_struct__ stays unchanged until its "
              "last consumer ends, then is freed once.",
    .tests  = "A copy of the array uses the active handler.",
    .source = "ctors.c PyArray_FromInterface and PyArray_FromStructInterface, 1.22 to 2.5",
    .why    = "Image and table libraries offer their memory this way.",
    .hint   = HINT,
    .looks  = "expected byte 0 of __array_interface__ of 100 bytes to be b'\\x42'; seen b'\\xee'");

PYTHON_PROPERTY(interop, by_ctypes,
    .id     = "interop.ctypes", .level = MUST, .basis = BASIS_CALLER,
    .title  = "blocks lent to ctypes stay",
    .clause = "A block that ctypes points to stays unchanged until the last object that keeps it "
              "ends, then is freed once.",
    .tests  = "The handler that made the block has to free it.",
    .source = "NumPy's page on ndarray.ctypes; _internal.py _ctypes.data_as, 1.22 to 2.5",
    .why    = "Programs pass arrays to C libraries this way.",
    .hint   = HINT,
    .looks  = "expected the blocks after the end of ctypes.data_as of 5000 bytes to be 0; seen 1");

PYTHON_PROPERTY(interop, torch,
    .id     = "interop.torch", .level = MUST, .basis = BASIS_CALLER,
    .title  = "tensors and arrays share a block",
    .clause = "A torch tensor shares the array's block, which stays unchanged until both end, then "
              "is freed once.",
    .tests  = "The handler that made the block has to free it.",
    .source = "PyTorch: torch.from_numpy, Tensor.numpy, torch.from_dlpack",
    .why    = "Data loaders make arrays and pass them to torch, whose threads free them.",
    .hint   = HINT,
    .looks  = "expected byte 0 of torch.from_numpy of 100 bytes to be b'\\x42'; seen b'\\xee'");

PYTHON_PROPERTY(interop, by_pickle,
    .id     = "interop.pickle", .level = MUST, .basis = BASIS_CALLER,
    .title  = "unpickled arrays are independent",
    .clause = "An array from a pickle uses the active handler and is independent of the original.",
    .tests  = "An array from an out-of-band pickle has to keep the original's block.",
    .source = "PEP 574; methods.c array_reduce_ex and array_setstate, 1.22 to 2.5",
    .why    = "Pickles carry arrays between processes and into caches.",
    .hint   = "Return different blocks for equal sizes.",
    .looks  = "expected byte 0 of the original of a copy by pickle protocol 2 to be b'\\x42'; seen "
              "b'\\xbd'");

PYTHON_PROPERTY(interop, by_copy,
    .id     = "interop.copy", .level = MUST, .basis = BASIS_CALLER,
    .title  = "copies are independent",
    .clause = "A copy of an array uses the active handler, and the original keeps its own handler.",
    .tests  = "Each of the two has to stay unchanged after the other ends.",
    .source = "NEP 49, High level design; methods.c array_copy and array_deepcopy, 1.22 to 2.5",
    .why    = "Programs move data from one kind of memory to another by copying it.",
    .hint   = "Return different blocks for equal sizes.",
    .looks  = "expected byte 0 of the original of copy.copy of 100 bytes to be b'\\x42'; seen "
              "b'\\xbd'");

/* The second child is a new Python: that is most of the time that this takes. */
PYTHON_PROPERTY(interop, processes,
    .id     = "interop.multiprocessing", .level = SHOULD, .basis = BASIS_QOI, .slow_ms = 119,
    .programs = true,
    .title  = "multiprocessing works",
    .clause = "multiprocessing works with forked and spawned children.",
    .tests  = "Forked children use and free inherited arrays without effect on the parent. Both "
              "kinds of children send arrays.",
    .source = "Python's page on multiprocessing, Contexts and start methods",
    .why    = "NumPy programs use it to run on more than one core.",
    .hint   = "Map memory private. Keep pthread_atfork handlers. Leave the environment and "
              "descriptors alone.",
    .looks  = "expected byte 0 of 5000 to be 0x42 after a forked child wrote over its copy; seen "
              "0x99");
