"""ndarray.resize does not fill what it adds to a read-only array

What a user sees: a crash, or old contents of the heap where zeros are promised; memory is not short, and no handler is needed.
Cause: numpy/_core/src/multiarray/shape.c:143, which fills the new elements only where the array is writeable; the resize itself goes ahead; since 8cb36a6208 of 2005.
Fix: fill whatever was added, or refuse to resize an array that is not writeable.
Handlers: none is hurt; one whose realloc zeroes what it adds hides the defect.
Property: runtime.read-only-resize
"""
import numpy as np

dirt = [np.full(4000, 0x4141414141414141) for _ in range(50)]
del dirt  # lest what malloc gives out next happens to be zero
for dtype in "i8", object:
    array = np.array([1, 2], dtype)
    array.flags.writeable = False
    array.resize(4000, refcheck=False)
    print(dtype, "filled with zeros:", all(item == 0 for item in array[2:].tolist()), flush=True)
