"""free is told another size than was asked for

What a user sees: nothing with NumPy's own handler.
Cause: numpy/_core/src/multiarray/ctors.c:3568 to 3595 (array_from_text): a text without numbers has a block for one, and a refused cut at the end leaves the size of before; getset.c (array_descr_set), where a dtype of no bytes takes all elements away, until e751d2889d; since free is told a size, by #17582 (84e0707afa).
Fix: free with the size of the block, which is kept beside it until the array is whole.
Handlers: one that believes the size puts the block where it does not belong: look the size up.
Property: runtime.free-size, runtime.free-size-of-empty, runtime.free-size-after-refusal, runtime.free-size-of-new-dtype
"""
import warnings

from handler import np, wrong

warnings.simplefilter("ignore")


def empty_text():
    try:
        np.fromstring("", sep=" ")
    except ValueError:
        pass


def emptied():
    array = np.zeros(4, "i4")
    try:
        array.dtype = np.dtype(("i4", (0,)))
    except (AttributeError, ValueError):
        pass


for words, function in ("an empty text", empty_text), ("a dtype of no bytes", emptied):
    function()
    print("%s: %s" % (words, "; ".join(wrong) or "right"))
    wrong.clear()
