# SPDX-License-Identifier: BSD-3-Clause
"""Prints the shared objects of a Python module, or of the package that it is in, a line each; of a
file of Python those that lie beside it and that it has the name of, as for ctypes.

Nothing of the module is run: that it is looked for is all that this interpreter has to do with it.
"""

import importlib.machinery
import importlib.util
import os
import sys


def named_in(path):
    folder = os.path.dirname(path)
    with open(path, "rb") as file:
        source = file.read()
    return (os.path.join(folder, name) for name in sorted(os.listdir(folder))
            if ".so" in name and os.fsencode(name) in source
            and os.path.isfile(os.path.join(folder, name)))


def files_of(spec):
    yield spec.origin
    if spec.origin and spec.origin.endswith(".py"):
        yield from named_in(spec.origin)
    for folder in spec.submodule_search_locations or ():
        for place, _, names in os.walk(folder):
            yield from (os.path.join(place, name) for name in sorted(names))


def main(module):
    spec = importlib.util.find_spec(module.partition(".")[0])
    for path in files_of(spec) if spec is not None else ():
        if path and (".so." in path
                     or path.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES))):
            print(os.path.abspath(path))


main(sys.argv[1])
