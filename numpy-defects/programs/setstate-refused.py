"""An array that __setstate__ had no memory for crashes when it is used

What a user sees: a crash, some time after a MemoryError that was caught.
Cause: numpy/_core/src/multiarray/methods.c:2232 (array_setstate), which has set the shape and dtype when the block is refused, and leaves NULL as data; since 7548e73940 of 2005.
Fix: take the new block before the old one is given back, or leave an array without elements.
Handlers: none is hurt.
Property: runtime.setstate-refused
"""
from handler import np, refuse

array = np.arange(3)
refuse(1)
try:
    array.__setstate__((1, (4,), np.dtype("i8"), False, bytes(range(32))))
except MemoryError:
    print("MemoryError", flush=True)
print(array.shape, array.sum(), flush=True)
