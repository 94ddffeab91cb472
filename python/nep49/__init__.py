# SPDX-License-Identifier: BSD-3-Clause
"""Data-memory handlers for NumPy's arrays (NEP 49), from Python.

The handlers are the shared objects that `conform` tests, its own or anybody's.  NumPy keeps which
one is in force in a context variable: a task has that of the task that made it, and a new thread
NumPy's default one, unless Python's threads inherit the context.  An array is freed by the handler
that made it, whichever is in force then::

    import nep49
    import numpy as np

    with nep49.use("aligned", alignment=4096):
        a = np.empty(1 << 20)
    nep49.handler_of(a).claims          # "alignment=4096"
    nep49.install("hugepage", from_="2M")
    nep49.load("./libmine.so").install()
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
import warnings
from typing import Any, Iterator, NamedTuple, Optional, Union

import numpy as np

__all__ = ["Handler", "HandlerError", "Made", "OutlivedWarning", "Statistics", "arena",
           "handler_of", "handlers", "install", "load", "shm", "use"]

# What each handler reads from the environment when it is loaded, by the keyword that it has here.
OPTIONS: dict[str, dict[str, str]] = {
    "aligned": {"alignment": "NEP49_ALIGNMENT"},
    "arena": {"size": "NEP49_ARENA_SIZE"},
    "cache": {"blocks": "NEP49_CACHE_BLOCKS"},
    "guard": {"side": "NEP49_GUARD", "keep": "NEP49_GUARD_KEEP"},
    "hugepage": {"from_": "NEP49_HUGEPAGE_FROM", "pool": "NEP49_HUGEPAGE_POOL"},
    "numa": {"policy": "NEP49_NUMA", "from_": "NEP49_NUMA_FROM"},
    "pinned": {"from_": "NEP49_PINNED_FROM", "library": "NEP49_CUDART"},
    "shift_header": {"log": "NEP49_SHIFT_HEADER_LOG"},
    "shm": {"from_": "NEP49_SHM_FROM"},
    "trace": {"output": "NEP49_TRACE", "depth": "NEP49_TRACE_DEPTH"},
}

_CAPSULE = b"mem_handler"  # as PyDataMem_SetHandler wants it; stays where it is
_SET_HANDLER = 304  # in NumPy's table, 1.22 and later
_WORDS_TO_HANDLER = 9  # from the end of PyObject_HEAD, as PyArray_HANDLER of NumPy's headers has it


class HandlerError(Exception):
    """A handler cannot be had, or will not do; the text says why."""


class _Allocator(ctypes.Structure):
    _fields_ = [("ctx", ctypes.c_void_p), ("malloc", ctypes.c_void_p),
                ("calloc", ctypes.c_void_p), ("realloc", ctypes.c_void_p),
                ("free", ctypes.c_void_p)]


class _Struct(ctypes.Structure):
    """PyDataMem_Handler, version 1."""

    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8),
                ("allocator", _Allocator)]


class Statistics(NamedTuple):
    """What a handler counts of itself; None for what it does not count.

    Parameters
    ----------
    live_blocks, live_bytes : int or None
        What was made and not freed.
    peak_bytes : int or None
        The most that was live at once.
    made : int or None
        How many blocks were made so far.
    """

    live_blocks: Optional[int]
    live_bytes: Optional[int]
    peak_bytes: Optional[int]
    made: Optional[int]


class _Figures(ctypes.Structure):
    """nep49_statistics."""

    _fields_ = [(name, ctypes.c_size_t) for name in Statistics._fields]


class Made(NamedTuple):
    """Who made the memory of an array; all None where the memory is not the array's own.

    Parameters
    ----------
    name : str or None
        What the handler calls itself.
    version : int or None
        Its version.
    claims : str or None
        As `Handler.claims`; None where this module did not load it.
    statistics : Statistics or None
        Its figures at this moment; None where it keeps none, or this module did not load it.
    """

    name: Optional[str]
    version: Optional[int]
    claims: Optional[str]
    statistics: Optional[Statistics]


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _numpy_function(index: int, *signature: Any) -> Any:
    core = sys.modules.get("numpy._core._multiarray_umath") or sys.modules[
        "numpy.core._multiarray_umath"]
    table = ctypes.cast(_get_pointer(core._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return ctypes.PYFUNCTYPE(ctypes.py_object, *signature)(table[index])


_set_handler = _numpy_function(_SET_HANDLER, ctypes.py_object)


class Handler:
    """A handler that was loaded, and stays so until the program ends.

    Attributes
    ----------
    name : str
        What it calls itself.
    version : int
        1; NumPy knows no other.
    path : str
        The shared object that it comes from.
    claims : str
        What it promises beyond the contract, as ``alignment=64``; the header nep49.h has the list.
    address : int
        That of its PyDataMem_Handler.
    """

    def __init__(self, path: str, struct: _Struct, address: int, library: ctypes.CDLL) -> None:
        self.path = path
        self.name = struct.name.decode()
        self.version = int(struct.version)
        claims = _symbol(library, ctypes.c_char, "nep49_claims")
        self.claims = "" if claims is None else ctypes.string_at(
            ctypes.addressof(claims)).decode(errors="replace")
        self._count = None
        if _symbol(library, ctypes.c_char, "nep49_get_statistics") is not None:
            self._count = library.nep49_get_statistics
            self._count.restype, self._count.argtypes = None, [ctypes.POINTER(_Figures)]
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self._capsule = new(address, _CAPSULE, None)
        self.address = address

    def __repr__(self) -> str:
        return "<nep49.Handler %s of %s>" % (self.name, self.path)

    def statistics(self) -> Optional[Statistics]:
        """What it counts of itself, at this moment.

        Returns
        -------
        Statistics or None
            None where it counts nothing.
        """
        if self._count is None:
            return None
        figures = _Figures()
        self._count(ctypes.byref(figures))
        none = ctypes.c_size_t(-1).value
        values = (getattr(figures, name) for name in Statistics._fields)
        return Statistics(*(None if value == none else value for value in values))

    def install(self) -> None:
        """Puts it in force in this context, from here on."""
        _set_handler(self._capsule)

    @contextlib.contextmanager
    def use(self) -> Iterator[Handler]:
        """Has it in force in this context for the length of a with statement.

        Yields
        ------
        Handler
            This one.
        """
        before = _set_handler(self._capsule)
        try:
            yield self
        finally:
            _set_handler(before)


# ---- where they are ------------------------------------------------------------------------------

def _prefixes() -> list[str]:
    """Where conform may be installed: the wheel's package, or this module's prefix."""
    prefixes = [os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))]
    specification = importlib.util.find_spec("nep49_conform")
    if specification is not None and specification.origin is not None:
        prefixes.insert(0, os.path.dirname(specification.origin))
    return prefixes


def _folders() -> list[str]:
    """Where handlers may lie: NEP49_HANDLERS, or where conform is installed."""
    named = os.environ.get("NEP49_HANDLERS")
    if named:
        return [named]
    return [folder for prefix in _prefixes()
            for below in ("lib/conform", "lib64/conform", "lib/*/conform")
            for folder in sorted(glob.glob(os.path.join(prefix, below)))]


def _program() -> Optional[str]:
    """conform that is installed with this module, or that of PATH."""
    folders = [os.path.join(prefix, "bin") for prefix in _prefixes()]
    return shutil.which("conform", path=os.pathsep.join(folders)) or shutil.which("conform")


def handlers() -> list[str]:
    """The names of the handlers that came with this module.

    Returns
    -------
    list of str
        What `load`, `install` and `use` take; a handler may say when it is loaded that it cannot
        work here.
    """
    return sorted({os.path.basename(path)[:-len(".so")] for folder in _folders()
                   for path in glob.glob(os.path.join(folder, "*.so"))})


def _find(name: str) -> str:
    if os.sep in name:
        return os.path.abspath(name)
    for folder in _folders():
        path = os.path.join(folder, name + ".so")
        if os.path.exists(path):
            return path
    raise HandlerError("there is no handler called %s (%s); a path has a slash in it"
                       % (name, ", ".join(handlers()) or "none was found"))


# ---- loading -------------------------------------------------------------------------------------

_lock = threading.Lock()
_loaded: dict[tuple[str, tuple[tuple[str, str], ...]], Handler] = {}
_objects: list[ctypes.CDLL] = []  # never closed: blocks may outlive everything here


def _open_copy(path: str) -> ctypes.CDLL:
    """The object under another name, so that it is loaded again, with a state of its own."""
    fd = os.memfd_create(os.path.basename(path), os.MFD_CLOEXEC)
    try:
        with open(path, "rb") as file, os.fdopen(fd, "wb", closefd=False) as copy:
            shutil.copyfileobj(file, copy)
        # the dynamic linker knows objects by the path as it was written
        return ctypes.CDLL("/proc/self/fd/%s%d" % ("./" * len(_objects), fd))
    finally:
        os.close(fd)


def _symbol(library: ctypes.CDLL, kind: Any, name: str) -> Any:
    try:
        return kind.in_dll(library, name)
    except ValueError:
        return None


def _ask(library: ctypes.CDLL, path: str) -> int:
    """The address of its struct."""
    if _symbol(library, ctypes.c_char, "nep49_get_handler") is None:
        struct = _symbol(library, _Struct, "nep49_handler")
        if struct is None:
            raise HandlerError("%s has neither nep49_handler nor nep49_get_handler" % path)
        return ctypes.addressof(struct)
    get = library.nep49_get_handler
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.POINTER(ctypes.c_char_p)]
    why = ctypes.c_char_p()
    address = get(ctypes.byref(why))
    if not address:
        raise HandlerError("%s: %s" % (path, (why.value or b"it does not say why").decode(
            errors="replace")))
    return int(address)


def _check(path: str, struct: _Struct) -> None:
    """What NumPy takes on trust."""
    raw = bytes(ctypes.string_at(ctypes.addressof(struct), 127))
    try:
        raw[:raw.index(b"\0")].decode()
    except ValueError:
        raise HandlerError("%s: its name has no end, or is not UTF-8" % path) from None
    if struct.version != 1:
        raise HandlerError("%s: its version is %d, and NumPy knows 1" % (path, struct.version))
    missing = [name for name in ("malloc", "calloc", "realloc", "free")
               if not getattr(struct.allocator, name)]
    if missing:
        raise HandlerError("%s: it has no %s" % (path, " and no ".join(missing)))


def _try(path: str) -> None:
    """What conform says within a fraction of a second, in a process of its own."""
    program = _program()
    if program is None:
        return
    result = subprocess.run([program, "--handler=" + path, "--python=" + sys.executable, "--quick",
                             "--json=-"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, check=False)
    if result.returncode != 1:  # one that cannot be loaded is told by whoever loads it here
        return
    properties = json.loads(result.stdout)["properties"]
    wrong = [each for each in properties if each["verdict"] in ("FAIL", "CRASH", "TIMEOUT")]
    more = ", and %d more" % (len(wrong) - 1) if len(wrong) > 1 else ""
    raise HandlerError("%s: it breaks %s%s: %s" % (path, wrong[0]["id"], more, wrong[0]["message"]))


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _variables(name: str, options: dict[str, object]) -> dict[str, str]:
    known = OPTIONS.get(name, {})
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise TypeError("%s takes no %s; it takes %s"
                        % (name, ", ".join(unknown), ", ".join(known) or "nothing"))
    return {known[key]: str(value) for key, value in options.items()}


def load(name: str, *, tried: bool = True, **options: object) -> Handler:
    """Loads a handler, and looks at what NumPy takes on trust.

    Parameters
    ----------
    name : str
        One of `handlers()`, or the path of a shared object, with a slash in it.
    tried : bool, optional
        Whether one that is named by its path is tried by ``conform --quick`` before, where that is
        installed: a fraction of a second, in a process of its own.
    **options
        What a handler of `handlers()` can be told, such as ``alignment=64`` for ``aligned`` or
        ``from_="2M"`` for ``hugepage``.  With other options it is loaded once more, and the two do
        not know of each other.  None is taken by an object that is named by its path.

    Returns
    -------
    Handler
        The same one for the same name and options.

    Raises
    ------
    HandlerError
        It is not there, cannot be loaded, says that it cannot work here, is no handler, or breaks
        its contract at once.
    TypeError
        It takes no such option.
    """
    variables = _variables(name, options)
    path = _find(name)
    key = path, tuple(sorted(variables.items()))
    with _lock:
        if key in _loaded:
            return _loaded[key]
        if tried and os.sep in name:
            _try(path)
        try:
            with _environment(variables):
                library = _open_copy(path) if variables else ctypes.CDLL(path)
                _objects.append(library)
                address = _ask(library, path)
        except OSError as error:
            raise HandlerError(str(error)) from None
        struct = _Struct.from_address(address)
        _check(path, struct)
        _loaded[key] = Handler(path, struct, address, library)
        return _loaded[key]


def _handler(handler: Union[str, Handler], options: dict[str, object]) -> Handler:
    if isinstance(handler, Handler):
        if options:
            raise TypeError("a handler that was loaded takes no options")
        return handler
    return load(handler, tried=True, **options)


def install(handler: Union[str, Handler], **options: object) -> Handler:
    """Puts a handler in force in this context, from here on.

    Parameters
    ----------
    handler : str or Handler
        As `load` takes it, or what that returned.
    **options
        As `load` takes them; none with a Handler.

    Returns
    -------
    Handler
        The one that is in force now.

    Raises
    ------
    HandlerError, TypeError
        As `load` does; then what was in force still is.
    """
    found = _handler(handler, options)
    found.install()
    return found


def use(handler: Union[str, Handler],
        **options: object) -> contextlib.AbstractContextManager[Handler]:
    """Has a handler in force in this context for the length of a with statement.

    Parameters
    ----------
    handler : str or Handler
        As `load` takes it, or what that returned.
    **options
        As `load` takes them; none with a Handler.

    Returns
    -------
    context manager
        Its ``as`` is the Handler.

    Raises
    ------
    HandlerError, TypeError
        As `load` does.
    """
    return _handler(handler, options).use()


# ---- arrays --------------------------------------------------------------------------------------

def _address_of(array: np.ndarray) -> Optional[int]:
    """That of the struct of the handler that made it, or None."""
    fields = (ctypes.c_void_p * (_WORDS_TO_HANDLER + 1)).from_address(
        id(array) + object.__basicsize__)
    address = fields[_WORDS_TO_HANDLER]
    if not address:
        return None
    capsule = ctypes.cast(address, ctypes.py_object).value
    return int(_get_pointer(capsule, _CAPSULE))


def handler_of(array: np.ndarray) -> Made:
    """Who made the memory of an array.

    Parameters
    ----------
    array : numpy.ndarray
        Of any size and type.

    Returns
    -------
    Made
        The handler's name, version, claims and figures at this moment; all None where the memory is
        not the array's own.
    """
    address = _address_of(array)
    if address is None:
        return Made(None, None, None, None)
    for each in _loaded.values():
        if each.address == address:
            return Made(each.name, each.version, each.claims, each.statistics())
    struct = _Struct.from_address(address)
    return Made(struct.name.decode(errors="replace"), int(struct.version), None, None)


# ---- an arena ------------------------------------------------------------------------------------

class OutlivedWarning(UserWarning):
    """What was made in an arena is there still, and holds memory of it."""


@contextlib.contextmanager
def arena(**options: object) -> Iterator[Handler]:
    """Has an arena in force for the length of a with statement, and warns of what outlives that.

    A single array holds the whole region that it lies in.

    Parameters
    ----------
    **options
        As for ``use("arena")``: ``size``, of a region.

    Yields
    ------
    Handler
        That of the arena.

    Warns
    -----
    OutlivedWarning
        More blocks of this arena are live behind it than before, by so many.
    """
    handler = _handler("arena", options)

    def live() -> int:
        figures = handler.statistics()
        return 0 if figures is None or figures.live_blocks is None else figures.live_blocks

    before = live()
    with handler.use():
        yield handler
    outlived = live() - before
    if outlived > 0:
        warnings.warn("%d of the arena's blocks outlive it" % outlived, OutlivedWarning,
                      stacklevel=3)


from nep49 import shm  # noqa: E402  what it needs is above
