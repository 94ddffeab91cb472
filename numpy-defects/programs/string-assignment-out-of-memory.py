"""An assignment of strings that has no memory crashes, or leaves empty ones

What a user sees: a crash up to 2.4, where strings are assigned within one array; since 2.5 a MemoryError behind which an item of an array of StringDType is neither what it was nor what it was to be, but "".
Cause: numpy/_core/src/multiarray/stringdtype/dtype.c:1153 (free_and_copy) and static_string.c:822 (NpyString_pack), which give the old string back before there is memory for the new one; up to 2.4 also static_string.c (NpyString_dup), which wrote to what it did not have; since there is StringDType, by ced4336b96.
Fix: give the old string back behind the new one, where that does not fit into its place.  The crash NumPy mended in 2.5, by #31251 (df889e7b54).
Handlers: none is asked: the strings are in Python's memory.
Property: runtime.string-assignment-out-of-memory
"""
import os
import sys

import numpy as np

try:
    from _testcapi import remove_mem_hooks, set_nomemory
except ImportError:
    sys.exit("this Python comes without _testcapi")
if not hasattr(np, "dtypes") or not hasattr(np.dtypes, "StringDType"):
    print("there is no StringDType", flush=True)
    os._exit(0)

texts = ["%d, which is longer than what an item itself holds" % i for i in range(4)]
longer = "5, and longer than what was there, %d" % 10**30


def within(array):
    array[:2] = array[2:]


def to_item(array):
    array[0] = longer


for assign in within, to_item:
    for nth in range(6):
        child = os.fork()
        if child == 0:
            array, raised = np.array(texts, "T"), ""
            set_nomemory(nth, nth + 1)  # one request of Python's is refused
            try:
                assign(array)
            except MemoryError:
                raised = " behind MemoryError"
            finally:
                remove_mem_hooks()
            print("%s, request %d: %r%s" % (assign.__name__, nth, [
                text[:1] for text in array.tolist()], raised), flush=True)
            os._exit(0)
        if os.WIFSIGNALED(os.waitpid(child, 0)[1]):
            print("%s, request %d: a crash" % (assign.__name__, nth), flush=True)
