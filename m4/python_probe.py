# SPDX-License-Identifier: BSD-3-Clause
"""What this interpreter offers to a program that wants to embed it.

configure runs this with each Python that it tries and evaluates what it
prints: shell assignments, of which `lack` says in a few words why the
interpreter will not do, and is empty where it will.  Written so that any
Python from 2.7 on can run it, because "too old" is one of the answers.
"""

from __future__ import print_function

import os
import sys
import sysconfig

OLDEST_PYTHON = (3, 8)
OLDEST_NUMPY = (1, 22)


def dotted(numbers):
    return ".".join(str(number) for number in numbers)


def shared_library():
    """The path of the libpython to link with, or None."""
    variable = sysconfig.get_config_var
    name = "libpython%s" % (variable("LDVERSION") or variable("VERSION"))
    folders = [
        variable("LIBDIR"),
        os.path.join(variable("LIBDIR") or "", variable("MULTIARCH") or ""),
        # An interpreter that was unpacked elsewhere than it was built for.
        os.path.join(getattr(sys, "base_prefix", sys.prefix), "lib"),
    ]
    for folder in folders:
        for suffix in (".so", ".dylib"):
            path = os.path.join(folder or "", name + suffix)
            if os.path.isabs(path) and os.path.exists(path):
                return os.path.normpath(path)
    return None


def numpy_facts(facts):
    """Add what there is to say about NumPy; return what is lacking, or ''."""
    try:
        import numpy
    except Exception as error:  # a broken NumPy raises much besides ImportError
        if getattr(error, "name", None) == "numpy":
            return "no NumPy"
        return "NumPy cannot be imported (%s)" % str(error).strip().split("\n")[0]
    facts["numpy"] = numpy.__version__
    if tuple(int(part) for part in numpy.__version__.split(".")[:2]) < OLDEST_NUMPY:
        return "NumPy %s is older than %s" % (numpy.__version__, dotted(OLDEST_NUMPY))
    facts["numpy_include"] = numpy.get_include()
    header = os.path.join(facts["numpy_include"], "numpy", "arrayobject.h")
    if not os.path.exists(header):
        return "NumPy %s has no C headers (Debian: python3-numpy-dev)" % numpy.__version__
    return ""


def probe():
    facts = {
        "version": dotted(sys.version_info[:3]),
        "executable": sys.executable,
        # The same for two names of one interpreter, different for an environment made of it.
        "identity": "%s in %s" % (os.path.realpath(sys.executable), sys.prefix),
    }
    if sys.version_info[:2] < OLDEST_PYTHON:
        facts["lack"] = "older than %s" % dotted(OLDEST_PYTHON)
        return facts
    facts["lack"] = numpy_facts(facts)
    if facts["lack"]:
        return facts
    facts["include"] = sysconfig.get_path("include")
    if not os.path.exists(os.path.join(facts["include"], "Python.h")):
        facts["lack"] = "no Python.h (Debian: python3-dev, Fedora: python3-devel)"
        return facts
    library = shared_library()
    if library is None:
        facts["lack"] = "no shared libpython to embed"
        return facts
    facts["library"] = library
    return facts


for key, value in sorted(probe().items()):
    print("nep49_python_%s='%s'" % (key, value.replace("'", "'\\''")))
