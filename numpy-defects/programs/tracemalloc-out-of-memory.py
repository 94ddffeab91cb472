"""A resize while tracemalloc is out of memory frees the block that the array has

What a user sees: an array that is freed twice, after a MemoryError.
Cause: numpy/_core/src/multiarray/alloc.c:525, which frees what realloc returned when it cannot be recorded, while the array still points at the old block; and 480, where calloc's block is freed with the size of one element; since #27567 (c3fe86ad12).
Fix: keep the block, unrecorded.
Handlers: those that go by the size are misled: look the size up.
Property: runtime.tracemalloc-out-of-memory, runtime.tracemalloc-of-refusals
"""
import os
import signal
import sys
import tracemalloc

import numpy as np

try:
    import _testcapi  # the hook of CPython's own tests that refuses the nth allocation
except ImportError:
    sys.exit(print("this Python comes without _testcapi"))


def is_given_away(nth):
    """Whether, with the nth request refused, another array is given this one's memory."""
    _testcapi.set_nomemory(1 << 30, 0)  # none yet: the hook is to lie below tracemalloc's
    tracemalloc.start(1)
    array = np.full(5000, 7, "u1")
    _testcapi.set_nomemory(nth, nth + 1)
    try:
        array.resize(100000, refcheck=False)
    except MemoryError:
        pass
    _testcapi.set_nomemory(1 << 30, 0)
    others = [np.empty(size, "u1") for size in (5000, 100000) * 5]
    return array.ctypes.data in [other.ctypes.data for other in others]


ends = []
for nth in range(0, 25):
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(1)
        os._exit(is_given_away(nth))
    ends.append(os.waitpid(child, 0)[1])
freed_twice = {1 << 8, signal.SIGABRT, signal.SIGSEGV}  # it was seen, or libc saw it
print("its memory is freed twice:", not freed_twice.isdisjoint(ends))
