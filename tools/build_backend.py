# SPDX-License-Identifier: BSD-3-Clause
"""How pip builds a wheel from the sources (PEP 517): by configure, make and make install, as
everybody does, and tools/wheel.  It is for the machine that it is built on, with its libraries.

    python3 tools/build_backend.py TARBALL FOLDER        what make dist made, as an sdist
"""

import importlib.machinery
import importlib.util
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _tool():
    """tools/wheel, as a module."""
    loader = importlib.machinery.SourceFileLoader("wheel_tool", os.path.join(TOP, "tools", "wheel"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def _version():
    with open(os.path.join(TOP, "configure.ac"), encoding="utf-8") as file:
        return re.search(r"AC_INIT\(\[conform\], \[(.*?)\]\)", file.read())[1]


def _run(*command, **more):
    result = subprocess.run(command, check=False, **more)
    if result.returncode != 0:
        sys.exit("%s: status %d; on Debian ./bootstrap installs what is missing"
                 % (" ".join(command[:2]), result.returncode))


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    del config_settings
    tool, version = _tool(), _version()
    info = "%s-%s.dist-info" % (tool.PACKAGE, version)
    os.makedirs(os.path.join(metadata_directory, info))
    with open(os.path.join(TOP, "README.md"), encoding="utf-8") as file:
        metadata = tool.METADATA % {"version": version, "readme": file.read()}
    with open(os.path.join(metadata_directory, info, "METADATA"), "w", encoding="utf-8") as file:
        file.write(metadata)
    return info


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    del config_settings, metadata_directory
    with tempfile.TemporaryDirectory() as work:
        if not os.path.exists(os.path.join(TOP, "configure")):
            _run("autoreconf", "-i", TOP)
        _run(os.path.join(TOP, "configure"), "--quiet", "--prefix=/usr", "--libdir=/usr/lib",
             "PYTHON=" + sys.executable, cwd=work)
        jobs = "-j%d" % len(os.sched_getaffinity(0))
        root = os.path.join(work, "root")
        _run("make", "-s", jobs, cwd=work)
        _run("make", "-s", "install-strip", "DESTDIR=" + root, cwd=work, stdout=subprocess.DEVNULL)
        path = _tool().make(os.path.join(root, "usr"), _version(), wheel_directory,
                            "linux_" + os.uname().machine)
    return os.path.basename(path)


def sdist_of(tarball, folder):
    """The same files in a folder of the name that PyPI wants, with PKG-INFO."""
    tool, version = _tool(), _version()
    name = "%s-%s" % (tool.PACKAGE, version)
    path = os.path.join(folder, name + ".tar.gz")
    with open(os.path.join(TOP, "README.md"), encoding="utf-8") as file:
        information = (tool.METADATA % {"version": version, "readme": file.read()}).encode()
    with tarfile.open(tarball) as given, tarfile.open(path, "w:gz") as made:
        for member in given:
            member.name = "/".join([name] + member.name.split("/")[1:])
            made.addfile(member, given.extractfile(member) if member.isfile() else None)
        entry = tarfile.TarInfo(name + "/PKG-INFO")
        entry.size = len(information)
        made.addfile(entry, io.BytesIO(information))
    return os.path.basename(path)


def build_sdist(sdist_directory, config_settings=None):
    del config_settings
    with tempfile.TemporaryDirectory() as work:
        _run(os.path.join(TOP, "configure"), "--quiet", cwd=work)
        _run("make", "-s", "dist", cwd=work)
        return sdist_of(os.path.join(work, "conform-%s.tar.gz" % _version()), sdist_directory)


if __name__ == "__main__":
    print(os.path.join(sys.argv[2], sdist_of(sys.argv[1], sys.argv[2])))
