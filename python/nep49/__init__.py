# SPDX-License-Identifier: BSD-3-Clause
"""Data-memory handlers for NumPy's arrays (NEP 49), from Python.

A handler is one of those that come with `conform`, or any shared object that exports one.  NumPy
keeps the active handler in a context variable: a task inherits it from the task that made it, and a
new thread begins with NumPy's default handler, unless Python's threads inherit the context.  An
array is freed by the handler that made it, whichever is active then::

    import nep49
    import numpy as np

    with nep49.use("aligned", alignment=4096):
        a = np.empty(1 << 20)
    nep49.handler_of(a).claims          # "alignment=4096"
    nep49.install("hugepage", from_="2M")
    nep49.load("./libmine.so").install()
    nep49.install("default")            # NumPy's own
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import difflib
import glob
import hashlib
import importlib.util
import inspect
import json
import os
import shutil
import subprocess
import sys
import threading
import warnings
from typing import Any, Callable, Iterator, NamedTuple, Optional, TypeVar, Union

import numpy as np

__all__ = ["Handler", "HandlerError", "OutlivedWarning", "Statistics", "arena", "current",
           "handler_of", "handlers", "install", "load", "shm", "use"]
__version__ = "0.1.0"


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


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

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Named = Union[str, bytes, "os.PathLike[str]"]  # a handler, by its name or path

_CAPSULE = b"mem_handler"  # as PyDataMem_SetHandler wants it; stays where it is
_SET_HANDLER, _GET_HANDLER, _DEFAULT_HANDLER = 304, 305, 306  # in NumPy's table, 1.22 and later
_WORDS_TO_HANDLER = 9  # from the end of PyObject_HEAD, as PyArray_HANDLER of NumPy's headers has it


class HandlerError(Exception):
    """A handler cannot be loaded or used; the text says why."""


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


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def _numpy_table() -> Any:
    core = sys.modules.get("numpy._core._multiarray_umath") or sys.modules[
        "numpy.core._multiarray_umath"]
    return ctypes.cast(_get_pointer(core._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))


_set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(_numpy_table()[_SET_HANDLER])
_get_handler = ctypes.PYFUNCTYPE(ctypes.py_object)(_numpy_table()[_GET_HANDLER])

# The open with statements of this context: the object entered, the capsule before it, and a note.
_entered: contextvars.ContextVar[tuple[tuple[object, object, int], ...]] = contextvars.ContextVar(
    "nep49", default=())


def _enter(entered: object, handler: Handler, note: int = 0) -> Handler:
    before = _set_handler(handler._capsule)
    _entered.set(((entered, before, note), *_entered.get()))
    return handler


def _leave(entered: object) -> int:
    """Installs the handler before it, and returns the note.

    A generator may leave before an object that was entered later: that one then restores the
    earlier handler.
    """
    left = list(_entered.get())
    for index, (each, before, note) in enumerate(left):
        if each is entered:
            del left[index]
            if index == 0:
                _set_handler(before)
            else:
                later, _, its_note = left[index - 1]
                left[index - 1] = later, before, its_note
            _entered.set(tuple(left))
            return note
    raise RuntimeError("%r was not entered in this thread or task" % entered)


class Handler:
    """A handler.  `load` makes it; one that was loaded stays until the program ends.

    It can be used in a with statement as `use` can.  Two are equal if they are the same handler.

    Attributes
    ----------
    name : str
        Its name for itself.
    version : int
        1; NumPy knows no other.
    path : str or None
        Its shared object; None if this module did not load it, as with NumPy's default handler.
    claims : str
        Its promises beyond the contract, such as ``alignment=64`` (nep49.h lists them); empty if it
        has none, or if this module did not load it.
    address : int
        The address of its PyDataMem_Handler.
    """

    def __init__(self, capsule: object, path: Optional[str] = None,
                 library: Optional[ctypes.CDLL] = None) -> None:
        if type(capsule).__name__ != "PyCapsule":
            raise TypeError("Handler is made by load(), which takes a name or a path")
        self._capsule = capsule
        self._count = None
        self.address = int(_get_pointer(capsule, _CAPSULE))
        struct = _Struct.from_address(self.address)
        self.name = struct.name.decode(errors="replace")
        self.version = int(struct.version)
        self.path = path
        self.claims = ""
        if library is None:
            return
        claims = _symbol(library, ctypes.c_char, "nep49_claims")
        if claims is not None:
            self.claims = ctypes.string_at(ctypes.addressof(claims)).decode(errors="replace")
        if _symbol(library, ctypes.c_char, "nep49_get_statistics") is not None:
            self._count = library.nep49_get_statistics
            self._count.restype, self._count.argtypes = None, [ctypes.POINTER(_Figures)]

    def __repr__(self) -> str:
        return "<nep49.Handler %s>" % " ".join(
            [self.name, *self.claims.split(), *(["of", self.path] if self.path else [])])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handler) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __enter__(self) -> Handler:
        return _enter(self, self)

    def __exit__(self, *error: object) -> None:
        _leave(self)

    def statistics(self) -> Optional[Statistics]:
        """Returns what the handler counts, at this moment.

        Returns
        -------
        Statistics or None
            None if it counts nothing, or if this module did not load it.
        """
        if self._count is None:
            return None
        figures = _Figures()
        self._count(ctypes.byref(figures))
        none = ctypes.c_size_t(-1).value
        values = (getattr(figures, name) for name in Statistics._fields)
        return Statistics(*(None if value == none else value for value in values))

    def install(self) -> Handler:
        """Installs the handler in this context, from here on.

        Returns
        -------
        Handler
            The handler that was active before.
        """
        return _of_capsule(_set_handler(self._capsule))

    def use(self) -> use:
        """Returns what installs the handler for the length of a with statement.

        Returns
        -------
        use
            As ``nep49.use(handler)``.
        """
        return use(self)


_known: dict[int, Handler] = {}  # those that were loaded, by their address


def _of_capsule(capsule: object) -> Handler:
    return _known.get(_get_pointer(capsule, _CAPSULE)) or Handler(capsule)


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
    """Returns the names of the handlers that came with this module.

    Returns
    -------
    list of str
        The names that `load`, `install` and `use` take, besides ``default``.  A handler may turn
        out not to work on this machine when it is loaded.
    """
    return sorted({os.path.basename(path)[:-len(".so")] for folder in _folders()
                   for path in glob.glob(os.path.join(folder, "*.so"))})


def _find(name: str) -> str:
    for folder in _folders():
        path = os.path.join(folder, name + ".so")
        if os.path.exists(path):
            return path
    names = ["default", *handlers()]
    close = difflib.get_close_matches(name, names, 1)
    raise HandlerError("there is no handler called %r%s (%s); a path has a slash in it" % (
        name, "; did you mean %r?" % close[0] if close else "", ", ".join(names)))


# ---- loading -------------------------------------------------------------------------------------

_lock = threading.Lock()
_loaded: dict[tuple[str, tuple[tuple[str, str], ...]], Handler] = {}
_objects: list[ctypes.CDLL] = []  # never closed: blocks may outlive everything here


def _open_copy(path: str) -> ctypes.CDLL:
    """The object under another name, so that it is loaded again, with a state of its own."""
    fd = os.memfd_create(os.path.basename(path), os.MFD_CLOEXEC)
    # the dynamic linker knows objects by the path as it was written
    name = "/proc/self/fd/%s%d" % ("./" * len(_objects), fd)
    try:
        with open(path, "rb") as file, os.fdopen(fd, "wb", closefd=False) as copy:
            shutil.copyfileobj(file, copy)
        return ctypes.CDLL(name)
    except OSError as error:
        why = str(error).replace(name, path)
        if "static TLS" in why:
            why += "; one process can load it with about 100 different options"
        raise OSError(why) from None
    finally:
        os.close(fd)


def _symbol(library: ctypes.CDLL, kind: Any, name: str) -> Any:
    try:
        return kind.in_dll(library, name)
    except ValueError:
        return None


def _ask(library: ctypes.CDLL, label: str) -> int:
    """The address of its struct."""
    if _symbol(library, ctypes.c_char, "nep49_get_handler") is None:
        struct = _symbol(library, _Struct, "nep49_handler")
        if struct is None:
            raise HandlerError("%s has neither nep49_handler nor nep49_get_handler" % label)
        return ctypes.addressof(struct)
    get = library.nep49_get_handler
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.POINTER(ctypes.c_char_p)]
    why = ctypes.c_char_p()
    address = get(ctypes.byref(why))
    if not address:
        raise HandlerError("%s: %s" % (label, (why.value or b"it does not say why").decode(
            errors="replace")))
    return int(address)


def _check(label: str, struct: _Struct) -> None:
    """What NumPy takes on trust."""
    raw = bytes(ctypes.string_at(ctypes.addressof(struct), 127))
    try:
        raw[:raw.index(b"\0")].decode()
    except ValueError:
        raise HandlerError("%s: its name has no end, or is not UTF-8" % label) from None
    if struct.version != 1:
        raise HandlerError("%s: its version is %d, and NumPy knows 1" % (label, struct.version))
    missing = [name for name in ("malloc", "calloc", "realloc", "free")
               if not getattr(struct.allocator, name)]
    if missing:
        raise HandlerError("%s: it has no %s" % (label, " and no ".join(missing)))


def _verdict_file(path: str, program: str) -> str:
    """Exists if conform found nothing wrong with an object of these contents before."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        digest.update(file.read())
    status = os.stat(program)
    digest.update(repr((os.path.realpath(program), status.st_size, status.st_mtime_ns,
                        sys.executable, sys.version, np.__version__)).encode())
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "nep49", digest.hexdigest())


def _try(path: str, label: str) -> None:
    """Tests it by conform --quick, in a process of its own; once for the same contents."""
    program = _program()
    if program is None or not os.access(path, os.R_OK) or not os.path.isfile(path):
        return
    verdict = _verdict_file(path, program)
    if os.path.exists(verdict):
        return
    result = subprocess.run([program, "--handler=" + path, "--python=" + sys.executable, "--quick",
                             "--json=-"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, check=False)
    if result.returncode == 0:
        with contextlib.suppress(OSError):  # a home that cannot be written to
            os.makedirs(os.path.dirname(verdict), exist_ok=True)
            open(verdict, "w").close()
    if result.returncode != 1:  # load() itself reports one that cannot be loaded
        return
    properties = json.loads(result.stdout)["properties"]
    wrong = [each for each in properties if each["verdict"] in ("FAIL", "CRASH", "TIMEOUT")]
    more = ", and %d more" % (len(wrong) - 1) if len(wrong) > 1 else ""
    raise HandlerError("%s: it breaks %s%s: %s"
                       % (label, wrong[0]["id"], more, wrong[0]["message"]))


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    try:
        os.environ.update(values)
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _variables(name: str, options: dict[str, object]) -> dict[str, str]:
    known = OPTIONS.get(name, {})
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise TypeError("%s takes no %s; it takes %s"
                        % (name, ", ".join(unknown), ", ".join(known) or "no options"))
    return {known[key]: os.fsdecode(value) if isinstance(value, (bytes, os.PathLike))
            else str(value) for key, value in options.items()}


def _in_keywords(text: str, name: str, options: dict[str, object]) -> str:
    """What a handler says of its variables, in terms of the keywords that they were given by."""
    for key, value in options.items():
        variable = OPTIONS[name][key]
        text = text.replace("%s='%.40s'" % (variable, value), "%s=%r" % (key, value))
        text = text.replace(variable, key)
    return text


def load(handler: Union[_Named, Handler], *, tried: bool = True, **options: object) -> Handler:
    """Loads a handler, and checks what NumPy takes on trust.

    Parameters
    ----------
    handler : str, path or Handler
        One of `handlers()`, or ``default`` for NumPy's own, or the path of a shared object: a
        string with a slash in it, or an `os.PathLike`.  A Handler is returned as it is.
    tried : bool, optional
        Whether ``conform --quick`` tests an object that is named by its path before, if conform is
        installed.  It takes about a second, and is not repeated for the same contents.
    **options
        The options of a handler of `handlers()`, such as ``alignment=64`` for ``aligned`` or
        ``from_="2M"`` for ``hugepage``.  With other options it is loaded once more, and the two
        have nothing in common.  An object that is named by its path takes none.

    Returns
    -------
    Handler
        The same one for the same name and options.

    Raises
    ------
    HandlerError
        It does not exist, cannot be loaded, cannot work here, is not a handler, or violates the
        contract at once.
    TypeError
        It takes no such option.
    """
    if isinstance(handler, Handler):
        if options:
            raise TypeError("a handler that was loaded takes no options")
        return handler
    if not isinstance(handler, (str, bytes, os.PathLike)):
        raise TypeError("a handler is a name, a path or a Handler, not %s" % type(handler).__name__)
    name = os.fsdecode(handler)
    by_path = os.sep in name or isinstance(handler, os.PathLike)
    variables = _variables(name, options)
    if name == "default" and not by_path:
        return Handler(ctypes.py_object.from_address(_numpy_table()[_DEFAULT_HANDLER]).value)
    path = os.path.abspath(name) if by_path else _find(name)
    key = path, tuple(sorted(variables.items()))
    with _lock:
        if key in _loaded:
            return _loaded[key]
        if tried and by_path:
            _try(path, name)
        try:
            with _environment(variables):
                library = _open_copy(path) if variables else ctypes.CDLL(path)
                _objects.append(library)
                address = _ask(library, name)
        except OSError as error:
            raise HandlerError(str(error)) from None
        except HandlerError as error:
            raise HandlerError(_in_keywords(str(error), name, options)) from None
        _check(name, _Struct.from_address(address))
        found = Handler(_new_capsule(address, _CAPSULE, None), path, library)
        _loaded[key] = _known[address] = found
        return found


def install(handler: Union[_Named, Handler], **options: Any) -> Handler:
    """Installs a handler in this context, from here on.

    Parameters
    ----------
    handler : str, path or Handler
        As `load` takes it.
    **options
        As `load` takes them, and its ``tried``; none with a Handler.

    Returns
    -------
    Handler
        The handler that was active before: its own ``install`` goes back to it.

    Raises
    ------
    HandlerError, TypeError
        As `load` does; then nothing changes.
    """
    return load(handler, **options).install()


def current() -> Handler:
    """Returns the handler that is active in this context.

    Returns
    -------
    Handler
        The handler that makes the next array.
    """
    return _of_capsule(_get_handler())


class use(contextlib.ContextDecorator):
    """Installs a handler in this context for the length of a with statement, or of a function.

    It can be used again, also within itself, and by several threads and tasks at once.

    Parameters
    ----------
    handler : str, path or Handler
        As `load` takes it.
    **options
        As `load` takes them, and its ``tried``; none with a Handler.

    Attributes
    ----------
    handler : Handler
        The handler, which the with statement's ``as`` has too.

    Raises
    ------
    HandlerError, TypeError
        As `load` does.
    """

    def __init__(self, handler: Union[_Named, Handler], **options: Any) -> None:
        self.handler = load(handler, **options)
        self._arguments = [repr(handler), *("%s=%r" % each for each in options.items())]

    def __repr__(self) -> str:
        return "nep49.%s(%s)" % (type(self).__name__, ", ".join(self._arguments))

    def __enter__(self) -> Handler:
        return _enter(self, self.handler)

    def __exit__(self, *error: object) -> None:
        _leave(self)

    def __call__(self, function: _Function) -> _Function:
        if not callable(function):
            raise TypeError("%r decorates a function, not %s" % (self, type(function).__name__))
        if (inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function)
                or inspect.isasyncgenfunction(function)):
            raise TypeError("%s is a generator or a coroutine, whose body runs later: write a with "
                            "statement in it" % function.__qualname__)
        return super().__call__(function)


def _install_in_threads(handler: Handler) -> None:
    """Has each thread that `threading` starts from here on begin with this handler."""
    start, default = threading.Thread.start, load("default")

    def start_with_handler(self: threading.Thread) -> None:
        run = self.run

        def run_with_handler() -> None:
            if current() == default:  # else it inherits its context, with a handler in it
                handler.install()
            run()

        self.run = run_with_handler  # type: ignore[method-assign]
        start(self)

    threading.Thread.start = start_with_handler  # type: ignore[method-assign]


# ---- arrays --------------------------------------------------------------------------------------

def _owner(function: str, array: np.ndarray) -> Optional[np.ndarray]:
    """The array that owns the memory of this one, or None if no array does."""
    if not isinstance(array, np.ndarray):
        raise TypeError("%s takes a numpy.ndarray, not %s%s" % (
            function, type(array).__name__,
            "; call its to_numpy()" if hasattr(array, "to_numpy") else ""))
    while not array.flags.owndata:
        base: Any = array.base
        if isinstance(base, memoryview):
            base = base.obj
        elif not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # as_strided puts an object between the two
        if not isinstance(base, np.ndarray):
            return None
        array = base
    return array


def handler_of(array: np.ndarray) -> Optional[Handler]:
    """Returns the handler that made the memory of an array.

    Parameters
    ----------
    array : numpy.ndarray
        Of any size and type.  A view has the handler of the array whose memory it shows.

    Returns
    -------
    Handler or None
        None if no handler made it: memory of a file, of bytes, or of another library.

    Raises
    ------
    TypeError
        It is not a numpy.ndarray.
    """
    owner = _owner("handler_of", array)
    if owner is None:
        return None
    fields = (ctypes.c_void_p * (_WORDS_TO_HANDLER + 1)).from_address(
        id(owner) + object.__basicsize__)
    address = fields[_WORDS_TO_HANDLER]
    return None if not address else _of_capsule(ctypes.cast(address, ctypes.py_object).value)


# ---- an arena ------------------------------------------------------------------------------------

class OutlivedWarning(UserWarning):
    """Arrays that were made in an arena outlive it, and hold memory of it."""


class arena(use):
    """Installs an arena for the length of a with statement, and warns of arrays that outlive it.

    A single array holds the whole region that it lies in.

    Parameters
    ----------
    **options
        As for ``use("arena")``: ``size``, of a region.

    Warns
    -----
    OutlivedWarning
        More blocks of this arena are live after it than before, with the number of them.
    """

    def __init__(self, **options: object) -> None:
        super().__init__("arena", **options)
        del self._arguments[0]

    def _live(self) -> int:
        figures = self.handler.statistics()
        return 0 if figures is None or figures.live_blocks is None else figures.live_blocks

    def __enter__(self) -> Handler:
        return _enter(self, self.handler, self._live())

    def __exit__(self, *error: object) -> None:
        outlived = self._live() - _leave(self)
        if outlived > 0:
            warnings.warn("%d of the arena's blocks outlive it" % outlived, OutlivedWarning,
                          stacklevel=2)


from nep49 import shm  # noqa: E402  it needs the names above
