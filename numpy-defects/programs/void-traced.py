"""tracemalloc shows the memory of np.void after it is gone

What a user sees: memory that nobody has, in snapshots.
Cause: numpy/_core/src/multiarray/alloc.c:203 (npy_free_cache), which keeps small blocks for later and does not untrack them; since blocks are traced, by #8885 (03534ec90d).
Fix: untrack a block that is kept, as is done for those of arrays.
Handlers: none is asked.
Property: runtime.void-untraced
"""
import tracemalloc

import numpy as np


def traced():
    domain = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    return [each.size for each in tracemalloc.take_snapshot().filter_traces([domain]).traces]


tracemalloc.start()
scalars = [np.void(b"x" * 900) for _ in range(3)]
print("three np.void of 900 bytes:", traced())
del scalars
print("when they are gone:", traced())
