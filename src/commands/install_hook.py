# SPDX-License-Identifier: BSD-3-Clause
"""Puts the handler in force at the moment at which a program imports NumPy.

NumPy's C part makes its default handler when it is loaded.  A finder in front of
all others waits for that module, and calls back as soon as it has run: before
any Python code of NumPy's has made an array, and whoever imports it.
"""

import atexit
import sys

import _conform_exec

C_PARTS = ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath")


class Loader:
    """The real loader, whose place it gives back, with a call behind exec_module."""

    def __init__(self, real, behind):
        self.real = real
        self.behind = behind

    def __getattr__(self, name):
        return getattr(self.real, name)

    def create_module(self, spec):
        return self.real.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.real
        self.real.exec_module(module)
        self.behind()


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        # numpy.core._multiarray_umath is a Python file in NumPy 2, loaded after the other
        if name in C_PARTS and not _conform_exec.in_force():
            behind = _conform_exec.take_over
        elif name == "numpy":
            behind = _conform_exec.imported
        else:
            return None
        for finder in sys.meta_path:
            if finder is Finder or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None and hasattr(spec.loader, "exec_module"):
                spec.loader = Loader(spec.loader, behind)
            if spec is not None:
                return spec
        return None


def note_exception(kind, value, traceback):
    try:
        words = "%s: %s" % (kind.__name__, value)
    except Exception:  # of the exception's own __str__
        words = kind.__name__
    _conform_exec.uncaught(issubclass(kind, MemoryError), words.split("\n")[0])
    sys.__excepthook__(kind, value, traceback)


def begin():
    atexit.register(_conform_exec.at_exit)  # the first to be registered is the last to run
    sys.excepthook = note_exception
    if any(name in sys.modules for name in C_PARTS):
        _conform_exec.take_over()
        _conform_exec.imported()
    else:
        sys.meta_path.insert(0, Finder)


def begin_with_numpy():
    """For --fail-each, which forks behind NumPy's import."""
    begin()
    import numpy  # noqa: F401


def begin_behind_numpy():
    """For a handler from a Python module, which needs a NumPy that is whole."""
    import numpy  # noqa: F401

    begin()
