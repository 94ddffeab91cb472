# SPDX-License-Identifier: BSD-3-Clause
"""A pytest plugin: a project's tests with a handler in force, and one that its process does not
survive is failed, with the line that it was at.

    pytest -p nep49.pytest_plugin --nep49-handler=guard

Each test runs in a process of its own, forked where it begins: what `guard` stops by a signal is
that one test, and fixtures of a module or of the session are made anew for each.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import signal
import tempfile
from typing import Any, BinaryIO, Optional

import pytest
from _pytest.runner import runtestprotocol

import nep49

HANDLER = pytest.StashKey[nep49.Handler]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("nep49", "data-memory handlers of NumPy")
    group.addoption("--nep49-handler", metavar="HANDLER",
                    help="run each test with this handler in force, in a process of its own")
    group.addoption("--nep49-option", metavar="NAME=VALUE", action="append", default=[],
                    help="an option of the handler, as nep49.load takes it (repeatable)")


def pytest_configure(config: pytest.Config) -> None:
    name = config.getoption("--nep49-handler")
    options = [option.partition("=") for option in config.getoption("--nep49-option")]
    if name is None and options:
        raise pytest.UsageError("--nep49-option goes with --nep49-handler")
    if name is None:
        return
    try:
        config.stash[HANDLER] = nep49.load(name, **{key: value for key, _, value in options})
    except (nep49.HandlerError, TypeError) as error:
        raise pytest.UsageError("--nep49-handler: %s" % error) from None


def pytest_report_header(config: pytest.Config) -> Optional[str]:
    handler = config.stash.get(HANDLER, None)
    if handler is None:
        return None
    return "nep49: %s in force, a process for each test" % handler.name


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


def run_in_child(item: pytest.Item, handler: nep49.Handler, told: BinaryIO, stack: Any) -> None:
    """What is left of the test goes before its process does: guard looks at blocks as they go."""
    faulthandler.enable(stack)
    handler.install()
    reports = runtestprotocol(item, log=False)
    gc.collect()
    serialize = item.config.hook.pytest_report_to_serializable
    pickle.dump([serialize(config=item.config, report=report) for report in reports], told)


def run_apart(item: pytest.Item, handler: nep49.Handler) -> list[pytest.TestReport]:
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as stack:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                run_in_child(item, handler, told, stack)
                told.flush()
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(pid, 0)
        told.seek(0)
        stack.seek(0)
        if status != 0:
            return [lost(item, handler, status, stack.read().decode(errors="replace"))]
        deserialize = item.config.hook.pytest_report_from_serializable
        return [deserialize(config=item.config, data=data) for data in pickle.load(told)]


def within_test(stack: str) -> str:
    """What faulthandler says, down to where pytest begins."""
    lines = stack.splitlines()
    ours = next((i for i, line in enumerate(lines) if "/_pytest/" in line), len(lines))
    return "\n".join(lines[:ours])


def lost(item: pytest.Item, handler: nep49.Handler, status: int, stack: str) -> pytest.TestReport:
    """The report of a test whose process has ended before it told of itself."""
    how = (signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status)
           else "exit status %d" % os.WEXITSTATUS(status))
    words = "%s under the handler %s\n%s" % (how, handler.name, within_test(stack))
    capture = item.config.pluginmanager.getplugin("capturemanager")
    printed = "".join(capture.read_global_capture()) if capture is not None else ""
    sections = [("Captured output of its process", printed)] if printed else []
    return pytest.TestReport(item.nodeid, item.location, {key: 1 for key in item.keywords},
                             "failed", words, "call", sections)
