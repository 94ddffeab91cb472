"""An item of a record that cannot be made leaves a hole in the tuple

What a user sees: SystemError instead of MemoryError, "returned a result with an exception set", or now and then a crash; whoever reaches the tuple before that, as C code may, finds NULL in it.
Cause: numpy/_core/src/multiarray/arraytypes.c.src:905 (VOID_getitem), which puts into the tuple whatever PyArray_GETITEM returned, and at 888 does not look whether it has a tuple; since before 2007 (e76b5fa689).
Fix: look at both, and return NULL.
Handlers: none is hurt; one that refuses the array of a subarray's field is how it was found.
Property: runtime.record-item-out-of-memory
"""
import os
import sys

import numpy as np

try:
    from _testcapi import remove_mem_hooks, set_nomemory
except ImportError:
    sys.exit("this Python comes without _testcapi")

records = np.array([(1.5, 2**40), (2.5, 2**41)], "f8,i8")
for words, function in ("tolist", records.tolist), ("item", lambda: records.item(1)):
    seen = []
    for nth in range(20):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            how = b"no exception"
            set_nomemory(nth, nth + 1)  # one request of Python's is refused
            try:
                function()
            except MemoryError:
                how = b"MemoryError"
            except SystemError:
                how = b"SystemError"
            finally:
                remove_mem_hooks()
            os.write(write, how)
            os._exit(0)
        os.close(write)
        how = os.read(read, 20).decode() or "a crash"
        os.close(read)
        os.waitpid(child, 0)
        if how not in seen:
            seen.append(how)
    print("%s, each request of Python's refused in turn: %s" % (words, ", ".join(sorted(seen))),
          flush=True)
