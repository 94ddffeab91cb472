#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What page-locked arrays are worth here: copies to and from the first CUDA device, and what it
costs to make one, under NumPy's default handler and under `pinned`.

    python copies.py [--library libcudart.so.13] [BYTES...]

Each figure is the median of its repetitions.  "returns" is when the call of an asynchronous copy
comes back: from then on the program computes beside the copy.
"""

import argparse
import contextlib
import ctypes
import os
import statistics
import sys
import time

import numpy as np

import nep49

SIZES = [64 << 10, 1 << 20, 16 << 20, 256 << 20]
TO_DEVICE, TO_HOST = 1, 2  # cudaMemcpyKind


class Cuda:
    """The six functions of the CUDA runtime that this needs, which raise where they fail."""

    def __init__(self, library):
        names = [library] if library else ["libcudart.so", "libcudart.so.13", "libcudart.so.12"]
        for name in names:
            with contextlib.suppress(OSError):
                self.runtime = ctypes.CDLL(name)
                break
        else:
            sys.exit("copies.py: no CUDA runtime: none of %s; say --library PATH" % ", ".join(names))
        self.runtime.cudaGetErrorString.restype = ctypes.c_char_p
        self.check(self.runtime.cudaFree(None))  # makes the context, which takes long
        self.stream = ctypes.c_void_p()
        self.check(self.runtime.cudaStreamCreate(ctypes.byref(self.stream)))

    def check(self, error):
        if error:
            sys.exit("copies.py: %s" % self.runtime.cudaGetErrorString(error).decode())

    @contextlib.contextmanager
    def memory(self, size):
        pointer = ctypes.c_void_p()
        self.check(self.runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)))
        yield pointer
        self.check(self.runtime.cudaFree(pointer))

    def copy(self, array, device, way):
        """The seconds until the call came back, and until the copy was done."""
        host = ctypes.c_void_p(array.ctypes.data)
        size = ctypes.c_size_t(array.nbytes)
        first, second = (device, host) if way == TO_DEVICE else (host, device)
        begin = time.perf_counter()
        self.check(self.runtime.cudaMemcpyAsync(first, second, size, way, self.stream))
        back = time.perf_counter()
        self.check(self.runtime.cudaStreamSynchronize(self.stream))
        return back - begin, time.perf_counter() - begin


def in_force(handler, library):
    if handler == "default":
        return contextlib.nullcontext()
    return nep49.use(handler, **({"library": library} if library else {}))


def making(size, repetitions):
    """The seconds that it takes to make an array, write each page of it, and drop it."""
    took = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        np.empty(size, np.uint8)[::4096] = 1
        took.append(time.perf_counter() - begin)
    return statistics.median(took)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--library", help="the CUDA runtime, by name or path")
    parser.add_argument("sizes", metavar="BYTES", nargs="*", type=int, default=SIZES,
                        help="of the arrays; 64 KiB, 1, 16 and 256 MiB unless told")
    arguments = parser.parse_args()
    library = arguments.library
    if library and "/" in library:
        library = os.path.abspath(library)
    cuda = Cuda(library)
    print("%-8s %-8s %22s %22s %14s" % ("", "", "to the device", "from the device", ""))
    print("%-8s %-8s %10s %11s %10s %11s %14s" % ("size", "handler", "GB/s", "returns", "GB/s",
                                                 "returns", "make and drop"))
    for size in arguments.sizes:
        repetitions = max(7, min(201, (1 << 30) // size))
        for handler in ("default", "pinned"):
            with in_force(handler, library), cuda.memory(size) as device:
                array = np.ones(size, np.uint8)
                cells = []
                for way in (TO_DEVICE, TO_HOST):
                    cuda.copy(array, device, way)
                    took = [cuda.copy(array, device, way) for _ in range(repetitions)]
                    back, done = (statistics.median(column) for column in zip(*took))
                    cells += ["%.1f" % (size / done / 1e9), "%.0f us" % (back * 1e6)]
                made = "%.0f us" % (making(size, min(repetitions, 50)) * 1e6)
            unit = "%d KiB" % (size >> 10) if size < 1 << 20 else "%d MiB" % (size >> 20)
            print("%-8s %-8s %10s %11s %10s %11s %14s" % (unit, handler, *cells, made))


if __name__ == "__main__":
    main()
