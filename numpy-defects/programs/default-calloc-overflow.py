"""calloc of NumPy's default handler multiplies without a look

What a user sees: nothing of NumPy's own asks for so much by calloc.
Cause: numpy/_core/src/multiarray/alloc.c:370 (default_calloc), since #17582 (84e0707afa), which brought it.
Fix: a look whether the product is too large.
Handlers: one that passes calls on to it gives out a block that is too small: look at the product.
Property: runtime.default-calloc-overflow
"""
from handler import default

print("calloc(2**61 + 1, 8):", default.calloc(default.ctx, 2**61 + 1, 8) and "a block")
