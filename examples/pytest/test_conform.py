"""The battery as tests of pytest, one for each property; conform runs once for all of them.

HANDLER is what conform's --handler takes, ./libmine.so unless told.
"""

import functools
import json
import os
import shutil
import subprocess

import pytest

HANDLER = os.environ.get("HANDLER", "./libmine.so")
CONFORM = shutil.which("conform")
pytestmark = pytest.mark.skipif(CONFORM is None, reason="conform is not installed")


def properties():
    """Their ids."""
    listed = CONFORM and subprocess.run([CONFORM, "list"], capture_output=True, text=True,
                                        check=True).stdout
    return [line.split()[0] for line in (listed or "").splitlines() if line.startswith(" ")]


@functools.lru_cache(maxsize=None)
def report():
    """What each property said; without a report, what conform did."""
    run = subprocess.run([CONFORM, "--handler", HANDLER, "--json", "-"], capture_output=True,
                         text=True)
    assert run.stdout, run.stderr
    return {each["id"]: each for each in json.loads(run.stdout)["properties"]}


@pytest.mark.parametrize("name", properties())
def test_property(name):
    said = report()[name]
    about_handler = said["target"] == "handler"
    if said["verdict"] == "SKIP":
        pytest.skip(said["message"])
    if said["verdict"] == "WARN" or not about_handler:
        return
    assert said["verdict"] == "PASS", "%s\n%s\n%s" % (
        said["message"], said.get("hint", ""), said.get("reproduce", ""))
