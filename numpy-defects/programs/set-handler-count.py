"""PyDataMem_SetHandler leaks a reference for each call that it refuses

What a user sees: a handler whose capsule is never released.
Cause: numpy/_core/src/multiarray/alloc.c:539, which has fetched the handler in force and does not give it back where the name is wrong; since #26529 (e41b9c14e1).
Fix: look at the name first, or a Py_DECREF.
Handlers: its destructor does not run: keep nothing there that has to be done.
Property: runtime.set-handler-keeps-count, runtime.set-handler-refuses
"""
import datetime
import sys

from handler import get_handler, set_handler

now, before = get_handler(), sys.getrefcount(get_handler())
for _ in range(10):
    try:
        set_handler(datetime.datetime_CAPI)
    except ValueError:
        continue
    set_handler(now)
    print("a capsule of another name is taken")
    break
print("references lost:", sys.getrefcount(now) - before)
