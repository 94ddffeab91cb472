# SPDX-License-Identifier: BSD-3-Clause
"""A pytest plugin: runs a project's tests with a handler installed, and fails a test that kills its
process, with the Python line.

    pytest -p nep49.pytest_plugin --nep49-handler=guard

Each test runs in a forked process of its own, so that a signal which `guard` causes fails one test
alone.  Fixtures of a module or of the session are made again for each.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import signal
import sys
import tempfile
import traceback
import warnings
from typing import BinaryIO, Optional

import pytest
from _pytest.runner import runtestprotocol

import nep49

HANDLER = pytest.StashKey[nep49.Handler]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("nep49", "data-memory handlers of NumPy")
    group.addoption("--nep49-handler", metavar="HANDLER",
                    help="run each test with this handler, in a process of its own")
    group.addoption("--nep49-option", metavar="NAME=VALUE", action="append", default=[],
                    help="an option of the handler, as nep49.load takes it (repeatable)")


def pytest_configure(config: pytest.Config) -> None:
    name = config.getoption("--nep49-handler")
    options = [option.partition("=") for option in config.getoption("--nep49-option")]
    if name is None and options:
        raise pytest.UsageError("--nep49-option goes with --nep49-handler")
    if name is None:
        return
    for _, equals, _ in options:
        if not equals:
            raise pytest.UsageError("--nep49-option takes NAME=VALUE")
    for option in ("usepdb", "trace"):
        if config.getoption(option, False):
            raise pytest.UsageError("--%s does not work with --nep49-handler: each test has a "
                                    "process of its own" % option.replace("use", ""))
    try:
        config.stash[HANDLER] = nep49.load(name, **{key: value for key, _, value in options})
    except (nep49.HandlerError, TypeError, ValueError) as error:
        raise pytest.UsageError("--nep49-handler: %s" % error) from None


def pytest_report_header(config: pytest.Config) -> Optional[str]:
    handler = config.stash.get(HANDLER, None)
    if handler is None:
        return None
    return "nep49: handler %s, a process for each test" % handler.name


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Optional[bool]:
    handler = item.config.stash.get(HANDLER, None)
    if handler is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in run_apart(item, handler):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def run_in_child(item: pytest.Item, handler: nep49.Handler, results: BinaryIO) -> None:
    """Drops the test's arrays before its process ends: guard looks at blocks as they are freed."""
    handler.install()
    nep49._install_in_threads(handler)
    reports: list[pytest.TestReport] = []
    leaving = None
    with warnings.catch_warnings(record=True) as caught:
        try:
            reports = runtestprotocol(item, log=False)
        except pytest.exit.Exception as error:
            leaving = error.msg, error.returncode
        gc.collect()
    serialize = item.config.hook.pytest_report_to_serializable
    pickle.dump(([serialize(config=item.config, report=report) for report in reports],
                 [(str(each.message), each.category.__module__, each.category.__name__,
                   each.filename, each.lineno) for each in caught], leaving), results)


def run_apart(item: pytest.Item, handler: nep49.Handler) -> list[pytest.TestReport]:
    with tempfile.TemporaryFile() as results, tempfile.TemporaryFile("w+") as stack:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                faulthandler.enable(stack)
                run_in_child(item, handler, results)
                results.flush()
                status = 0
            except BaseException:  # such as a report that cannot be pickled
                traceback.print_exc(limit=-3, file=stack)
                stack.flush()
            finally:
                os._exit(status)
        _, status = os.waitpid(pid, 0)
        results.seek(0)
        stack.seek(0)
        if status != 0:
            return [lost(item, handler, status, stack.read())]
        reports, caught, leaving = pickle.load(results)
        for text, module, name, *place in caught:  # pytest records shown warnings
            warnings.showwarning(text, getattr(sys.modules.get(module), name, UserWarning), *place)
        if leaving is not None:
            pytest.exit(*leaving)
        deserialize = item.config.hook.pytest_report_from_serializable
        return [deserialize(config=item.config, data=data) for data in reports]


def within_test(stack: str) -> str:
    """The lines of faulthandler, down to where pytest begins."""
    lines = stack.splitlines()
    ours = next((i for i, line in enumerate(lines) if "/_pytest/" in line), len(lines))
    if not stack.startswith("Fatal"):  # a traceback, whose last lines are the nearest ones
        return stack
    return "\n".join(lines[:ours])


def lost(item: pytest.Item, handler: nep49.Handler, status: int, stack: str) -> pytest.TestReport:
    """The report of a test whose process ended before the test did."""
    how = (signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status)
           else "exit status %d" % os.WEXITSTATUS(status))
    words = "%s under the handler %s\n%s" % (how, handler.name, within_test(stack))
    capture = item.config.pluginmanager.getplugin("capturemanager")
    printed = "".join(capture.read_global_capture()) if capture is not None else ""
    sections = [("Captured output of its process", printed)] if printed else []
    return pytest.TestReport(item.nodeid, item.location, {key: 1 for key in item.keywords},
                             "failed", words, "call", sections)
