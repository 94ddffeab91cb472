# SPDX-License-Identifier: BSD-3-Clause
"""The mutants of handlers/faulty/deep are wrong where they say, and their allocators are not.

Of each mutant that random calls do not come upon, a history leads to where it is wrong.  The same
history, on the allocator without the slip, has to go well.

    tests/deep.py [MUTANT...]
"""

import bisect
import ctypes
import os
import re
import sys
import threading
import time

import elf
import suite

DEEP = os.path.join(suite.FAULTY, "deep.so")
SEARCHED = "searched_"
RIGHT, WRONG = 0, 1

MIB = 1 << 20


class Handler(ctypes.Structure):
    """PyDataMem_Handler."""

    _fields_ = [
        ("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("ctx", ctypes.c_void_p),
        ("malloc", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)),
        ("calloc", ctypes.CFUNCTYPE(
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)),
        ("realloc", ctypes.CFUNCTYPE(
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)),
        ("free", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)),
    ]


class Wrong(Exception):
    """What a block was expected to hold, or where it was expected to be, and is not."""


class Blocks:
    """The blocks of a handler: each is filled with a byte of its own, and looked at."""

    def __init__(self, symbol):
        self.functions = Handler.in_dll(ctypes.CDLL(DEEP), symbol)
        self.live = {}  # address: size, byte
        self.order = []  # addresses
        self.made = 0

    def _enter(self, p, size):
        at = bisect.bisect(self.order, p)
        for other in self.order[max(at - 1, 0):at + 1]:
            if p < other + self.live[other][0] and other < p + size:
                raise Wrong("%d bytes at %#x, where %d bytes at %#x live"
                            % (size, p, self.live[other][0], other))
        self.order.insert(at, p)
        self.made += 1
        self.live[p] = size, self.made % 255 + 1
        ctypes.memset(p, self.live[p][1], size)
        return p

    def _leave(self, p):
        del self.order[bisect.bisect_left(self.order, p)]
        return self.live.pop(p)

    def look(self, p):
        size, byte = self.live[p]
        if ctypes.string_at(p, size) != bytes([byte]) * size:
            raise Wrong("the contents of %d bytes at %#x" % (size, p))

    def malloc(self, size):
        return self._enter(self.functions.malloc(self.functions.ctx, size), size)

    def many(self, count, size):
        return [self.malloc(size) for _ in range(count)]

    def calloc(self, size):
        p = self.functions.calloc(self.functions.ctx, 1, size)
        if any(ctypes.string_at(p, size)):
            raise Wrong("calloc(1, %d) is not zero" % size)
        return self._enter(p, size)

    def realloc(self, p, size):
        self.look(p)
        old, byte = self._leave(p)
        q = self.functions.realloc(self.functions.ctx, p, size)
        kept = min(old, size)
        if ctypes.string_at(q, kept) != bytes([byte]) * kept:
            raise Wrong("realloc from %d to %d bytes loses contents" % (old, size))
        return self._enter(q, size)

    def free(self, *blocks):
        for p in blocks:
            self.look(p)
            size, _ = self._leave(p)
            self.functions.free(self.functions.ctx, p, size)

    def look_at_all(self):
        for p in self.live:
            self.look(p)


# ---- histories


def buddy_is_as_clean_as_its_back(b):
    b.free(b.malloc(MIB))
    b.calloc(2 * MIB)


def cache_hands_a_full_one_over_twice(b):
    ours = b.many(40, 16)
    for more in range(len(ours)):
        def fill():
            for _ in range(4):
                b.free(*b.many(200, 16))
            b.free(*ours[:more])
        in_a_thread(fill)
        in_a_thread(lambda: b.many(64, 16))
        ours = b.many(100, 16)[:40]


def in_a_thread(work):
    def catch():
        try:
            work()
        except Wrong as error:
            errors.append(error)
    errors = []
    thread = threading.Thread(target=catch)
    thread.start()
    thread.join()
    while os.path.exists("/proc/self/task/%d" % thread.native_id):
        time.sleep(0.001)  # join does not wait for the destructors of its variables
    if errors:
        raise errors[0]


def cache_looks_at_a_stale_mark(b):
    def wait_for_a_look():
        for _ in range(4096):
            b.free(b.malloc(512))
    for _ in range(4):
        b.free(*b.many(200, 32))
    for more in range(34):
        blocks = b.many(200, 32)
        b.free(*blocks[:100 + more])
        wait_for_a_look()
        b.free(blocks[-1])
        wait_for_a_look()
        b.many(100, 32)


def cache_takes_a_65th(b):
    for _ in range(60):
        b.free(*b.many(66, 16))
    b.many(70, 32)
    b.look_at_all()


def heap_grows_over_a_quick_one(b):
    p, q, _ = b.many(3, 100)
    b.free(q)
    b.realloc(p, 200)
    b.malloc(100)


def region_counts_in_sixteen_bits(b):
    blocks = b.many(65537, 16)
    b.free(blocks[-1])
    b.many(10, 16)
    b.look_at_all()


def slab_counts_in_ten_bits(b):
    blocks = b.many(1025, 16)
    b.free(blocks[0])
    b.many(1000, 24)
    b.look_at_all()


def slab_forgets_the_seam(b):
    b.free(*b.many(8 * 15, 4096))
    b.calloc(2048)


def slab_keeps_what_it_let_go_listed(b):
    blocks = b.many(9 * 15, 4096)
    b.free(*blocks)
    b.many(8 * 63 + 5, 1024)
    b.many(2, 4096)


def slab_shifts_an_int(b):
    blocks = b.many(4000, 16)
    b.free(blocks[33 * 64 + 1])
    b.malloc(16)
    b.many(2, 16)
    b.look_at_all()


def spans_keeps_a_stale_hint(b):
    p, q, _ = b.many(3, 600 << 10)
    b.free(q)
    b.realloc(p, 1200 << 10)
    b.malloc(600 << 10)


def table_grows_without_the_first(b):
    for p in b.many(50000, 16):
        b.realloc(p, 24)


def table_keeps_sizes_in_24_bits(b):
    b.many(1000, 16)
    b.realloc(b.malloc(16 * MIB + 16), 17 * MIB)


HISTORIES = {name: each for name, each in list(globals().items())
             if re.match("(buddy|cache|heap|region|slab|spans|table)_", name)}


def outcome(symbol, history):
    """How it goes, in a process of its own: RIGHT, or another status."""
    pid = os.fork()
    if pid != 0:
        return os.waitpid(pid, 0)[1]
    blocks, code = Blocks(symbol), RIGHT
    try:
        history(blocks)
        blocks.look_at_all()
    except Wrong as error:
        print("# %s: %s" % (symbol, error), flush=True)
        code = WRONG
    os._exit(code)


def base_of(mutant):
    return mutant.partition("_")[0] + "_sound"


def main():
    if suite.SANITIZED:
        suite.skip_all("Python loads no object that is built with a sanitizer")
    tap = suite.Tap()
    symbols = set(elf.Object(DEEP).symbols)
    declared = {name[len(SEARCHED):] for name in symbols if name.startswith(SEARCHED)}
    tap.point(len(declared) >= 40 and declared <= symbols, "there are 40 mutants", declared)
    for name, history in sorted(HISTORIES.items()):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        tap.point(name in declared and outcome(name, history) != RIGHT,
                  name + " is wrong where its history leads")
        ended = outcome(base_of(name), history)
        tap.point(ended == RIGHT, "%s goes well there" % base_of(name), ended)
    tap.end()


main()
