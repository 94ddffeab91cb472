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

PROPERTY(interop_buffer,
    .id     = "interop.buffer",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "a block that is lent by the buffer protocol stays as it is until the last consumer "
              "ends, and is then freed once, by its handler",
    .source = "PEP 3118; buffer.c array_getbuffer, 1.22 to 2.5",
    .why    = "memoryview, bytes.join, sockets and files read arrays this way",
    .hint   = HINT,
    .looks  = "byte 0 of a memoryview of 100 bytes after others came and went to be b'\\x42': "
              "b'\\xee'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("interop", "buffer");
}

PROPERTY(interop_dlpack,
    .id     = "interop.dlpack",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "a block that is lent by DLPack stays as it is until the last consumer ends, and is "
              "then freed once, by its handler, also where nobody takes the capsule",
    .source = "the DLPack protocol of the array API standard; dlpack.c, 1.22 to 2.5",
    .why    = "it is how tensors of other libraries share memory with arrays",
    .hint   = HINT,
    .looks  = "the blocks after the end of a capsule that nobody takes of 100 bytes to be 0: 1",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("interop", "dlpack");
}

PROPERTY(interop_array_interface,
    .id     = "interop.array-interface",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "a block that is lent by __array_interface__ or __array_struct__ stays as it is "
              "until the last consumer ends, and is then freed once, by its handler; a copy of it "
              "belongs to the handler in force",
    .source = "NumPy's page The array interface protocol; ctors.c PyArray_FromInterface and "
              "PyArray_FromStructInterface, 1.22 to 2.5",
    .why    = "images and tables of other libraries show their memory this way",
    .hint   = HINT,
    .looks  = "byte 0 of __array_interface__ of 100 bytes after others came and went to be "
              "b'\\x42': b'\\xee'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("interop", "array_interface");
}

PROPERTY(interop_ctypes,
    .id     = "interop.ctypes",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "a block that ctypes points to stays as it is until the last object that keeps it "
              "ends, and is then freed once, by its handler",
    .source = "NumPy's page on ndarray.ctypes; _internal.py _ctypes.data_as, ctypeslib, 1.22 to "
              "2.5",
    .why    = "C libraries are handed arrays this way",
    .hint   = HINT,
    .looks  = "the blocks after the end of ctypes.data_as of 5000 bytes to be 0: 1",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("interop", "by_ctypes");
}

PROPERTY(interop_torch,
    .id     = "interop.torch",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "a tensor of torch shares an array's block, stays as it is until the last of both "
              "ends, and the block is then freed once, by its handler",
    .source = "PyTorch: torch.from_numpy, Tensor.numpy, torch.from_dlpack",
    .why    = "data loaders make arrays and hand them to torch, whose threads free them",
    .hint   = HINT,
    .looks  = "byte 0 of torch.from_numpy of 100 bytes after others came and went to be b'\\x42': "
              "b'\\xee'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("interop", "torch");
}

PROPERTY(interop_pickle,
    .id     = "interop.pickle",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "an array that comes out of a pickle belongs to the handler in force, the original "
              "stays its own handler's, and each outlives the other unchanged; a pickle out of "
              "band keeps the original's block",
    .source = "PEP 574; methods.c array_reduce_ex and array_setstate, 1.22 to 2.5",
    .why    = "arrays travel between processes and caches in pickles",
    .hint   = "blocks of equal size are different blocks, whoever asks for them",
    .looks  = "byte 0 of the original of a copy by pickle protocol 2 of 100 bytes to be b'\\x42': "
              "b'\\xbd'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("interop", "by_pickle");
}

PROPERTY(interop_copy,
    .id     = "interop.copy",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "a copy of an array belongs to the handler in force, the original stays its own "
              "handler's, and each outlives the other unchanged",
    .source = "NEP 49, High level design; methods.c array_copy and array_deepcopy, 1.22 to 2.5",
    .why    = "copying is how data moves from one kind of memory to another",
    .hint   = "blocks of equal size are different blocks, whoever asks for them",
    .looks  = "byte 0 of the original of copy.copy of 100 bytes to be b'\\x42': b'\\xbd'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("interop", "by_copy");
}

/* The second child is a new Python: that is most of the time that this takes. */
PROPERTY(interop_multiprocessing,
    .id     = "interop.multiprocessing",
    .slow_ms = 119,
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_HANDLER,
    .clause = "a process of multiprocessing works: one that is forked uses, resizes and frees the "
              "arrays it inherited, without a trace in its parent, and sends its own; one that is "
              "spawned starts and sends",
    .source = "Python's page on multiprocessing, Contexts and start methods",
    .why    = "it is how NumPy programs use more than one core",
    .hint   = "map memory private, keep what pthread_atfork needs, and leave the environment and "
              "the descriptors alone",
    .looks  = "WARN: byte 0 of 5000 to be 0x42 after a forked child wrote over its copy: 0x99",
    .fixture  = FIXTURE_PYTHON, .programs = true)
{
    python_call("interop", "processes");
}
