# SPDX-License-Identifier: BSD-3-Clause
"""The wheel that make wheel makes works in an environment that has nothing else, without the source
tree, and leaves nothing behind.
"""

import glob
import hashlib
import os
import shutil

import suite


def make_wheel():
    plain = {name: "" for name in ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "TESTS")}
    return suite.run([os.environ.get("MAKE", "make"), "-s", "wheel",
                      "ARCHITECTURES=" + os.uname().machine], cwd=suite.BUILD, env=plain,
                     timeout=600)


def lend_numpy(environment):
    """The NumPy that is tested with, to an environment that has none."""
    where = suite.run([suite.PYTHON, "-c", "import os, numpy; "
                       "print(os.path.dirname(os.path.dirname(numpy.__file__)))"]).stdout
    for folder in glob.glob(os.path.join(environment, "lib", "python*", "site-packages")):
        suite.write(os.path.join(folder, "numpy.pth"), where)


def files_in(environment):
    return {os.path.join(folder, name) for folder, _, names in os.walk(environment)
            for name in names if not name.endswith(".pyc")}


def check(tap, wheel):
    environment = os.path.abspath("environment")
    made = suite.run([suite.PYTHON, "-m", "venv", environment])
    python = os.path.join(environment, "bin", "python3")
    if not tap.point(made.code == 0 and os.path.exists(python), "an environment is made", made):
        return
    lend_numpy(environment)
    before = files_in(environment)
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    result = suite.run(pip + ["install", "--no-index", "--no-deps", wheel])
    tap.point(result.code == 0, "pip installs it", result)
    conform = os.path.join(environment, "bin", "conform")
    shutil.copy(os.path.join(suite.BUILD, "handlers", "aligned.so"), "libmine.so")
    mine = os.path.abspath("libmine.so")
    for what, command in (("the README's first command, with a report",
                           [conform, "--handler", "aligned", "--junit=" + mine + ".xml"]),
                          ("a handler of one's own", [conform, "--handler", mine]),
                          ("as a module", [python, "-m", "nep49_conform", "-H", mine,
                                           "--run=abi.*"])):
        result = suite.run(command, cwd="/", env={"PATH": "/usr/bin:/bin", "VIRTUAL_ENV": ""})
        tap.point(result.code == suite.CONFORMANT and os.path.exists(mine + ".xml")
                  and "(%s)" % python
                  in " ".join(result.stdout.split()), what, result)
    path = os.path.join(environment, "bin") + ":/usr/bin:/bin"
    if shutil.which("pkg-config") and shutil.which("make"):
        made = suite.run([conform, "init", "first"], env={"PATH": path})
        result = suite.run(["make", "-C", "first", "libmine.so"],
                           env={"PATH": path, "PKG_CONFIG_PATH": "", "MAKEFLAGS": ""})
        tap.point(result.code == 0, "a first handler is compiled", (made, result))
    result = suite.run([python, "-c", "import nep49, numpy\nwith nep49.use('aligned', "
                        "alignment=512):\n    print(nep49.handler_of(numpy.empty(9)).claims)"],
                       cwd="/")
    tap.point(result.code == 0 and result.stdout == "alignment=512\n", "import nep49", result)
    linked = suite.run(["ldd", *glob.glob(environment + "/lib/python*/site-packages/nep49_conform"
                                          "/bin/conform")])
    foreign = [line for line in linked.stdout.splitlines() if "=>" in line
               and environment not in line and not line.split()[0].startswith(
                   ("libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so"))]
    tap.point(linked.code == 0 and not foreign, "its libraries are its own", (foreign, linked))
    result = suite.run(pip + ["uninstall", "--yes", "nep49-conform"])
    left = files_in(environment) - before
    tap.point(result.code == 0 and not left, "pip leaves nothing of it", (sorted(left)[:5], result))


def bill_of_materials(tap, wheel):
    """The SPDX document beside it has its hash, and the libraries that are linked statically."""
    packages = suite.load(wheel + ".spdx.json")["packages"]
    with open(wheel, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    tap.point(packages[0]["checksums"][0]["checksumValue"] == digest
              and [each["name"] for each in packages[1:]] == ["jansson", "nettle", "zlib"],
              "its bill of materials", packages)


def main():
    if not suite.LONG:
        suite.skip_all("it builds a wheel with tools from PyPI: set CHECK_LONG")
    tap = suite.Tap()
    made = make_wheel()
    wheels = made.stdout.split()[-1:] if made.code == 0 else []
    with suite.scratch() as folder:
        size = os.path.getsize(os.path.join(suite.BUILD, wheels[0])) if wheels else 0
        tap.point(0 < size <= 2_000_000, "at most 2 MB", size)
        if tap.point(wheels and wheels[0].endswith(".whl"), "make wheel", made):
            wheel = os.path.abspath(os.path.join(suite.BUILD, wheels[0]))
            os.chdir(folder)
            check(tap, wheel)
            bill_of_materials(tap, wheel)
            os.chdir("..")
    tap.end()


if __name__ == "__main__":
    main()
