"""A shrink that is refused loses the objects that were to go

What a user sees: MemoryError, and an array that has None where its objects were.
Cause: numpy/_core/src/multiarray/shape.c:126, which clears them before realloc is asked; since #29970 (e6478c5084).
Fix: ask realloc first for arrays without references; for others copy, or go on with the larger block.
Handlers: a realloc that shrinks a block need not fail: return the block as it is.
Property: runtime.shrink-refused
"""
from handler import np, refuse

array = np.array([1, 2, 3, 4], object)
refuse(1)
try:
    array.resize(2, refcheck=False)
    print("no error", flush=True)
except MemoryError:
    print("MemoryError; the array is", array.tolist(), flush=True)
