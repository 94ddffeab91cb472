# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of this folder share; it makes tests/suite.py importable."""

import importlib.machinery
import importlib.util
import os
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOLS = os.path.join(TOP, "tools")
sys.path.insert(1, os.path.join(os.path.dirname(TOP), "tests"))


def load(name, folder=TOOLS):
    """A tool, or another file of Python, as a module."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_").partition(".")[0],
                                                  os.path.join(folder, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module
