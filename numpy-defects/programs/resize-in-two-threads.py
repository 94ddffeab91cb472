"""Two threads that resize one array free its block twice

What a user sees: a crash in a free-threaded Python; NumPy's page on thread safety says that arrays take no lock.
Cause: numpy/_core/src/multiarray/shape.c (PyArray_Resize_int), and array_setstate in methods.c, which have no critical section; since NumPy lets Python go without the GIL, by #26913 (3c13c428d7).
Fix: Py_BEGIN_CRITICAL_SECTION around them.
Handlers: may be given one block twice, from two threads.
Property: runtime.resize-in-two-threads, runtime.setstate-in-two-threads, runtime.resize-while-read
"""
import os
import resource
import sys
import threading

import numpy as np

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what glibc says of it


def resize(array, begin):
    begin.wait()
    for i in range(300):
        array.resize(100000 if i % 2 else 1000, refcheck=False)


crashes = 0
for _ in range(5):
    child = os.fork()
    if child == 0:
        array = np.zeros(1000)
        both = array, threading.Barrier(2)
        threads = [threading.Thread(target=resize, args=both) for _ in range(2)]
        [each.start() for each in threads]
        [each.join() for each in threads]
        os._exit(0)
    crashes += os.WIFSIGNALED(os.waitpid(child, 0)[1])
print("with the GIL:", getattr(sys, "_is_gil_enabled", lambda: True)())
print("crashes:", crashes > 0)
