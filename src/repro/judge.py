# SPDX-License-Identifier: BSD-3-Clause
"""What stands in front of a property's own Python where that is a program of its own: the handler
by ctypes, what came to it, and how it ended.  src/repro/extract.py takes what is needed.
"""

import ctypes
import os
import random
import signal
import sys

import numpy as np

# extract.py puts the handler here
OBJECT, ENTRY, MODULE, IS_GETTER, PLACES, SEED, SECONDS = "", "", "", False, [], 1, 20

# ---- the handler, as NEP 49 has it


class Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free")]


class Struct(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8),
                ("allocator", Allocator)]


# Called with the GIL, as NumPy nearly always does it.
ADDRESS, SIZE = ctypes.c_void_p, ctypes.c_size_t
TYPES = {
    "malloc": ctypes.PYFUNCTYPE(ADDRESS, ADDRESS, SIZE),
    "calloc": ctypes.PYFUNCTYPE(ADDRESS, ADDRESS, SIZE, SIZE),
    "realloc": ctypes.PYFUNCTYPE(ADDRESS, ADDRESS, ADDRESS, SIZE),
    "free": ctypes.PYFUNCTYPE(None, ADDRESS, ADDRESS, SIZE),
}


def libc_handler():
    """Nothing but libc, which shows what is not the handler's."""
    libc = ctypes.PyDLL(None)
    libc.malloc.restype = libc.calloc.restype = libc.realloc.restype = ADDRESS
    functions = {
        "malloc": lambda ctx, size: libc.malloc(SIZE(size)),
        "calloc": lambda ctx, nelem, elsize: libc.calloc(SIZE(nelem), SIZE(elsize)),
        "realloc": lambda ctx, p, size: libc.realloc(ADDRESS(p), SIZE(size or 1)),
        "free": lambda ctx, p, size: libc.free(ADDRESS(p)),
    }
    return struct_of(b"libc", functions)


def struct_of(name, functions):
    struct = Struct(name, 1)
    struct.kept = {each: TYPES[each](function) for each, function in functions.items()}
    for each, function in struct.kept.items():
        setattr(struct.allocator, each, ctypes.cast(function, ADDRESS).value)
    return struct


# ---- where it comes from


def capsule_in(found):
    """What a module's attribute is: a capsule, or what gives one or puts one in force."""
    if type(found).__name__ != "PyCapsule" and callable(found):
        before = _conform.get_handler()
        given = found()
        if type(given).__name__ != "PyCapsule":
            given = _conform.get_handler()
            _conform.set_handler(before)
        found = given
    return found


def load_module():
    sys.path[:0] = PLACES
    before = _conform.get_handler()
    found = __import__(MODULE, fromlist=["."])
    for name in filter(None, ENTRY.split(".")):
        found = getattr(found, name)
    if not ENTRY:
        found = _conform.get_handler()
        _conform.set_handler(before)
    return Struct.from_address(pointer_in(capsule_in(found)))


def load_object(path):
    library = ctypes.PyDLL(path)
    if not IS_GETTER and hasattr(library, ENTRY):
        return Struct.in_dll(library, ENTRY)
    if not IS_GETTER and hasattr(library, "nep49_handler"):
        return Struct.in_dll(library, "nep49_handler")
    getter = getattr(library, ENTRY if hasattr(library, ENTRY) else "nep49_get_handler")
    getter.restype, why = ctypes.POINTER(Struct), ctypes.c_char_p()
    given = getter(ctypes.byref(why))
    if not given:
        raise OSError("it gives no handler: %s" % why.value)
    return given.contents


class Subject:
    struct = None  # of the handler that this is about

    @classmethod
    def load(cls, path):
        if path == "-":
            cls.struct = libc_handler()
        elif path == OBJECT and MODULE:
            cls.struct = load_module()
        else:
            cls.struct = load_object(path)


# ---- NumPy's C-API


def pointer_in(capsule, name=b"mem_handler"):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, name)


def numpy_function(number, *types):
    core = np._core if hasattr(np, "_core") else np.core
    table = pointer_in(core._multiarray_umath._ARRAY_API, None)
    address = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[number]
    return ctypes.PYFUNCTYPE(*types)(address)


def array_of(count, dtype, data=None, flags=0):
    """As C code makes one: objects are NULL pointers."""
    types = [ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.c_int, ADDRESS, ADDRESS,
             ADDRESS, ctypes.c_int, ADDRESS]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(dtype))  # the function takes a reference
    shape = ctypes.c_ssize_t(count)
    return numpy_function(94, *types)(np.ndarray, dtype, 1, ctypes.addressof(shape), None, data,
                                      flags, None)


# ---- what comes to it


class Recorder:
    """A handler in front of another, which knows the blocks that it gave."""

    all = {}  # by the address of its struct
    NAME = ctypes.c_char_p(b"mem_handler")
    CALLS = "malloc", "calloc", "realloc", "free"

    def __init__(self, name, inner):
        self.inner, self.has_own_name = inner, name is not None
        self.call = {each: TYPES[each](getattr(inner.allocator, each)) for each in self.CALLS}
        self.counts = dict.fromkeys([*self.CALLS, "refused"], 0)
        self.blocks, self.notes = {}, []
        self.refuse_at, self.keep_failing, self.hits = 0, False, 0
        self.struct = struct_of(b"", {each: getattr(self, each) for each in self.CALLS})
        if self.has_own_name:
            self.struct.name = name.encode()
        self.show_through()
        Recorder.all[ctypes.addressof(self.struct)] = self

    def capsule(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.struct), self.NAME, None)

    def show_through(self):
        if not self.has_own_name:
            ctypes.memmove(ctypes.addressof(self.struct), ctypes.addressof(self.inner),
                           Struct.allocator.offset)

    def give(self, which, size, *arguments):
        """The block that the handler gives, written down; or None."""
        self.counts[which] += 1
        p = None
        if not self.refuses():
            p = self.call[which](self.inner.allocator.ctx, *arguments)
        self.show_through()
        self.counts["refused"] += p is None and size != 0
        return p

    def refuses(self):
        """Whether this request is one of those that are refused."""
        if self.refuse_at == 0:
            return False
        self.refuse_at -= 1
        if self.refuse_at > 0:
            return False
        self.hits += 1
        self.refuse_at = int(self.keep_failing)
        return True

    def enter(self, p, size):
        if p is None:
            return
        for recorder in Recorder.all.values():
            if p in recorder.blocks:
                self.notes.append(("overlaps", "a block of %d bytes at %#x, which overlaps a live "
                                   "one of %d" % (size, p, recorder.blocks[p]), size,
                                   recorder.blocks[p]))
        self.blocks[p] = size

    def forget(self, what, p, size):
        """The size of the block, which is gone from now on; None where it is nobody's."""
        owner = next((each for each in Recorder.all.values() if p in each.blocks), None)
        if owner is None or owner is not self:
            said = "a pointer that no handler gave" if owner is None else "a block of another's"
            self.notes.append(("foreign-" + what, "%s(%#x, %d) of %s" % (what, p, size, said),
                               size, 0))
        if owner is None:
            return None
        asked = owner.blocks.pop(p)
        if what == "free" and owner is self and asked != size:
            self.notes.append(("wrong-size", "free(%#x, %d) of a block of %d bytes"
                               % (p, size, asked), size, asked))
        return asked

    def malloc(self, ctx, size):
        p = self.give("malloc", size, size)
        self.enter(p, size)
        return p

    def calloc(self, ctx, nelem, elsize):
        p = self.give("calloc", nelem * elsize, nelem, elsize)
        self.enter(p, nelem * elsize)
        return p

    def realloc(self, ctx, old, size):
        had = self.forget("realloc", old, size) if old is not None else None
        if old is not None and had is None:
            return None
        p = self.give("realloc", size, old, size)
        if p is None and old is not None:
            self.blocks[old] = had
        self.enter(p, size)
        return p

    def free(self, ctx, p, size):
        self.counts["free"] += 1
        if p is None or self.forget("free", p, size) is not None:
            self.call["free"](self.inner.allocator.ctx, p, size)
        self.show_through()


def recorder_in(capsule):
    return Recorder.all[pointer_in(capsule)]


# ---- what the property calls


class _conform:
    """The functions of conform's own module of this name that it uses."""

    kept = {}

    @staticmethod
    def below(bound):
        return _conform.kept.setdefault("random", random.Random(SEED)).randrange(bound)

    @staticmethod
    def bytes_of(array):
        return ctypes.string_at(array.__array_interface__["data"][0], array.nbytes)

    @staticmethod
    def control(when):
        """What conform tells as another property's is shown here like all else."""

    @staticmethod
    def counts(capsule):
        recorder = recorder_in(capsule)
        return dict(recorder.counts, live_blocks=len(recorder.blocks))

    @staticmethod
    def drop(arrays):
        arrays.clear()

    @staticmethod
    def fail(expected, seen):
        Report.end("not as expected: expected %s, seen %s" % (expected, seen))

    @staticmethod
    def get_handler():
        return numpy_function(305, ctypes.py_object)()

    @staticmethod
    def is_freed(address):
        """It cannot be seen from here what goes to libc's free."""

    @staticmethod
    def is_instrumented():
        return False

    @staticmethod
    def live(capsule):
        return list(recorder_in(capsule).blocks.items())

    @staticmethod
    def make_immortal(thing):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))

    @staticmethod
    def new_array(count, dtype):
        return array_of(count, np.dtype(dtype))

    @staticmethod
    def new_handler(name=None, plain=False):
        if plain or Subject.struct is None:
            _conform.kept.setdefault("libc", libc_handler())
        return Recorder(name, _conform.kept["libc"] if plain else Subject.struct).capsule()

    @staticmethod
    def notes(capsule):
        return recorder_in(capsule).notes

    @staticmethod
    def owner(array):
        p = array.__array_interface__["data"][0]
        owner = next((each for each in Recorder.all.values() if p in each.blocks), None)
        return owner.struct.name.decode() if owner is not None else None

    @staticmethod
    def owndata_array(count):
        """Bytes 0, 1, 2 ... of libc's malloc, OWNDATA set by hand."""
        OWNDATA, CARRAY, POINTERS = 4, 0x501, 6
        data = libc_handler().kept["malloc"](None, count)
        array = array_of(count, np.dtype("u1"), data, CARRAY)
        array[:] = np.arange(count, dtype="u8").astype("u1")
        flags = id(array) + object.__basicsize__ + POINTERS * ctypes.sizeof(ADDRESS)
        ctypes.c_int.from_address(flags).value |= OWNDATA
        return array

    @staticmethod
    def pattern(size, number):
        return bytes(random.Random(number).choices(range(256), k=size))

    @staticmethod
    def refuse(capsule, nth, keep_failing=False):
        recorder = recorder_in(capsule)
        hits, recorder.hits = recorder.hits, 0
        recorder.refuse_at, recorder.keep_failing = nth, keep_failing
        return hits

    @staticmethod
    def refuse_beneath(nth, keep_failing=False):
        """It cannot be seen from here what the handler asks for."""

    @staticmethod
    def rename(capsule, name):
        name = _conform.kept.setdefault(name, ctypes.c_char_p(name.encode()))
        ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), name)

    @staticmethod
    def set_handler(capsule):
        address = id(capsule) if capsule is not None else None
        return numpy_function(304, ctypes.py_object, ctypes.c_void_p)(address)

    @staticmethod
    def skip(reason):
        Report.end("")

    @staticmethod
    def spoiled_handler(defect):
        struct = libc_handler()
        if defect.startswith("no "):
            setattr(struct.allocator, defect[len("no "):], None)
        elif defect.startswith("version "):
            struct.version = int(defect[len("version "):])
        else:
            ctypes.memset(ctypes.addressof(struct), ord("x"), Struct.version.offset)
        recorder = Recorder.__new__(Recorder)
        recorder.struct = _conform.kept[defect] = struct
        return recorder.capsule()

    @staticmethod
    def step(words):
        Report.say("step", words)

    @staticmethod
    def stopped_short(reason):
        """There is more to try than there is time for."""

    @staticmethod
    def subject_name():
        return Subject.struct.name.decode()

    @staticmethod
    def survives(function):
        pid = os.fork()
        if pid == 0:
            Report.silent = True
            function()
            os._exit(0)
        return os.waitpid(pid, 0)[1] == 0

    @staticmethod
    def time_is_up():
        return False


# ---- how it ends


class Report:
    """What the process that does it tells the one that waits for it, a line each."""

    silent = False  # in a child of its own
    pipe = None

    @classmethod
    def say(cls, kind, words):
        if not cls.silent:
            line = "%s %s\n" % (kind, words.replace("\n", " "))
            os.write(cls.pipe, line.encode("utf-8", "backslashreplace"))

    @classmethod
    def end(cls, words):
        """With what was seen, or with nothing."""
        cls.say("end", words)
        os._exit(1)


def work(body, path):
    """In a process of its own: whatever becomes of it, somebody is left to tell it."""
    signal.alarm(SECONDS)
    try:
        Subject.load(path)
    except Exception as error:
        Report.say("wrong", "%s: %s" % (path, error))
        os._exit(2)
    try:
        body()
    except SystemError as error:  # ctypes calls back into Python where an exception is pending
        Report.say("wrong", "ctypes lost an exception that was pending: %s" % error)
        os._exit(2)
    except Exception as error:
        Report.end("an exception: %s: %s" % (type(error).__name__, error))


def judge(pid, pipe):
    """What is printed of it."""
    with open(pipe, "rb") as file:
        lines = file.read().decode("utf-8", "replace").splitlines()
    status = os.waitpid(pid, 0)[1]
    said = dict(line.split(" ", 1) for line in lines)  # the last of each kind
    when = ": while " + said["step"] if "step" in said else ""
    if "wrong" in said:
        return said["wrong"]
    if "end" in said:
        return said["end"] and "reproduced: " + said["end"]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return "reproduced: no end: after %d s%s" % (SECONDS, when)
    if os.WIFSIGNALED(status):
        return "reproduced: %s%s" % (signal.Signals(os.WTERMSIG(status)).name, when or ": it died")
    if "done" not in said or os.WEXITSTATUS(status) != 0:
        return "reproduced: the process exits: with status %d%s" % (os.WEXITSTATUS(status), when)
    return ""


def main(body, arguments):
    if len(arguments) > 1 or (arguments and arguments[0].startswith("--")):
        print("usage: %s [OBJECT.so | -]" % sys.argv[0], file=sys.stderr)
        return 2
    read_end, Report.pipe = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        work(body, arguments[0] if arguments else OBJECT)
        Report.say("done", "")
        return 0  # and it ends as any program does
    os.close(Report.pipe)
    line = judge(pid, read_end)
    print(line or "not reproduced")
    return 1 if line.startswith("reproduced") else 2 if line else 0
