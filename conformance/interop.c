/* SPDX-License-Identifier: BSD-3-Clause
 *
 * interop: memory of the handler in the hands of others.
 */
#include "harness/harness.h"
#include "python/python.h"

GROUP(interop, 13, "Memory that leaves NumPy: who holds a block, and when it comes back.");

/* To a handler all of the first five look alike: a block stays for long after its array, beside
 * others that come and go, and is freed once, anywhere. */
#define HINT                                                                                       \
    "a block lives until it is freed, however long that takes; free may come on any thread, with " \
    "any handler in force"

PYTHON_PROPERTY(interop, buffer,
    .id     = "interop.buffer", .level = MUST, .basis = BASIS_CALLER,
    .title  = "blocks lent by the buffer protocol stay",
    .clause = "a block lent by the buffer protocol is unchanged until the last consumer ends, "
              "then freed once, by its handler",
    .source = "PEP 3118; buffer.c array_getbuffer, 1.22 to 2.5",
    .why    = "memoryview, bytes.join, sockets and files read arrays this way",
    .hint   = HINT,
    .looks  = "byte 0 of a memoryview of 100 bytes after others came to be b'\\x42': b'\\xee'");

PYTHON_PROPERTY(interop, dlpack,
    .id     = "interop.dlpack", .level = MUST, .basis = BASIS_CALLER,
    .title  = "blocks lent by DLPack stay",
    .clause = "a block lent by DLPack is unchanged until the last consumer ends, then freed once, "
              "by its handler, even with an unused capsule",
    .source = "the DLPack protocol of the array API standard; dlpack.c, 1.22 to 2.5",
    .why    = "it is how tensors of other libraries share memory with arrays",
    .hint   = HINT,
    .looks  = "the blocks after the end of a capsule that nobody takes of 100 bytes to be 0: 1");

PYTHON_PROPERTY(interop, array_interface,
    .id     = "interop.array-interface", .level = MUST, .basis = BASIS_CALLER,
    .title  = "blocks lent by __array_interface__ stay",
    .clause = "a block lent by __array_interface__ or __array_struct__ is unchanged until its "
              "last consumer ends, then freed once; a copy uses the active handler",
    .source = "ctors.c PyArray_FromInterface and PyArray_FromStructInterface, 1.22 to 2.5",
    .why    = "images and tables of other libraries show their memory this way",
    .hint   = HINT,
    .looks  = "byte 0 of __array_interface__ of 100 bytes to be b'\\x42': b'\\xee'");

PYTHON_PROPERTY(interop, by_ctypes,
    .id     = "interop.ctypes", .level = MUST, .basis = BASIS_CALLER,
    .title  = "blocks lent to ctypes stay",
    .clause = "a block that ctypes points to is unchanged until the last object that keeps it "
              "ends, then freed once, by its handler",
    .source = "NumPy's page on ndarray.ctypes; _internal.py _ctypes.data_as, 1.22 to 2.5",
    .why    = "C libraries are handed arrays this way",
    .hint   = HINT,
    .looks  = "the blocks after the end of ctypes.data_as of 5000 bytes to be 0: 1");

PYTHON_PROPERTY(interop, torch,
    .id     = "interop.torch", .level = MUST, .basis = BASIS_CALLER,
    .title  = "tensors and arrays share a block",
    .clause = "a tensor of torch shares an array's block, unchanged until the last of both ends; "
              "then its handler frees it once",
    .source = "PyTorch: torch.from_numpy, Tensor.numpy, torch.from_dlpack",
    .why    = "data loaders make arrays and hand them to torch, whose threads free them",
    .hint   = HINT,
    .looks  = "byte 0 of torch.from_numpy of 100 bytes to be b'\\x42': b'\\xee'");

PYTHON_PROPERTY(interop, by_pickle,
    .id     = "interop.pickle", .level = MUST, .basis = BASIS_CALLER,
    .title  = "unpickled arrays are independent",
    .clause = "an array from a pickle uses the active handler and is independent of the original; "
              "an out-of-band pickle keeps the original's block",
    .source = "PEP 574; methods.c array_reduce_ex and array_setstate, 1.22 to 2.5",
    .why    = "arrays travel between processes and caches in pickles",
    .hint   = "return different blocks for equal sizes",
    .looks  = "byte 0 of the original of a copy by pickle protocol 2 to be b'\\x42': b'\\xbd'");

PYTHON_PROPERTY(interop, by_copy,
    .id     = "interop.copy", .level = MUST, .basis = BASIS_CALLER,
    .title  = "copies are independent",
    .clause = "a copy of an array uses the active handler; the original keeps its own, and each "
              "outlives the other unchanged",
    .source = "NEP 49, High level design; methods.c array_copy and array_deepcopy, 1.22 to 2.5",
    .why    = "copying is how data moves from one kind of memory to another",
    .hint   = "return different blocks for equal sizes",
    .looks  = "byte 0 of the original of copy.copy of 100 bytes to be b'\\x42': b'\\xbd'");

/* The second child is a new Python: that is most of the time that this takes. */
PYTHON_PROPERTY(interop, processes,
    .id     = "interop.multiprocessing", .level = SHOULD, .basis = BASIS_QOI, .slow_ms = 119,
    .programs = true,
    .title  = "multiprocessing works",
    .clause = "multiprocessing works: forked children use and free inherited arrays without "
              "effect on the parent, spawned ones start, both send arrays",
    .source = "Python's page on multiprocessing, Contexts and start methods",
    .why    = "it is how NumPy programs use more than one core",
    .hint   = "map memory private; keep pthread_atfork; leave environment and descriptors alone",
    .looks  = "WARN: byte 0 of 5000 to be 0x42 after a forked child wrote over its copy: 0x99");
