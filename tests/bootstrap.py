# SPDX-License-Identifier: BSD-3-Clause
"""bootstrap on systems that this one is not: what it asks their package managers for.

The package managers are stand-ins, which log what they were asked, and keep a list of what they
have installed.  Everything else on PATH is the system's own.
"""

import os
import re
import shutil

import suite

SOURCE = os.path.join(suite.SOURCE, "bootstrap")
TOOLS = "awk cat dirname env find getconf grep id mktemp rm sed sh sort touch tr".split()

# Each knows what is installed by the lines of the file HAS, and adds to it what it is to install.
INSTALLER = """#!/bin/sh
echo "{name} $*" >>"$LOG"
case " $* " in *" {verb} "*) ;; *) exit 0 ;; esac
for word; do
    case $word in -* | {verb}) ;; *) echo "$word" >>"$HAS" ;; esac
done
"""
RPM = '#!/bin/sh\nfor word; do :; done\nexec grep -qxF -- "$word" "$HAS"\n'
PACMAN = """#!/bin/sh
echo "pacman $*" >>"$LOG"
case $1 in
-T) shift; left=0
    for word; do grep -qxF -- "$word" "$HAS" || { echo "$word"; left=127; }; done
    exit $left ;;
esac
for word; do case $word in -*) ;; *) echo "$word" >>"$HAS" ;; esac; done
"""
BREW = """#!/bin/sh
case $1 in
--prefix) echo /nowhere ;;
list) exec grep -qxF -- "$3" "$HAS" ;;
install)
    echo "brew $*" >>"$LOG"
    shift
    for word; do case $word in -*) ;; *) echo "$word" >>"$HAS" ;; esac; done ;;
esac
"""

# It says how far it is as apt-get does, and knows no package of mimalloc's.
DEBIAN = {
    "apt-get": INSTALLER.format(name="apt-get", verb="install") + """
echo "Setting up: many things"
echo "pmstatus:pkg:amd64:50.0:Unpacking pkg:amd64"
for n in 0 1 2 3 4 5 6 7 8 9; do echo "pmstatus:pkg:${n}3.7500:Unpacking pkg (amd64)"; done
""",
    "dpkg-query": """#!/bin/sh
for word; do :; done
! grep -qxF -- "$word" "$HAS" || echo "install ok installed"
""",
    "apt-cache": '#!/bin/sh\ncase $2 in *mimalloc*) exit 100 ;; esac\n',
}

# The stand-ins, the command that is expected, and some of the packages.
SYSTEMS = {
    "Debian": (DEBIAN, "apt-get -qq -y ", "gcc autoconf-archive python3-numpy libjansson-dev"),
    "Fedora": ({"dnf": INSTALLER.format(name="dnf", verb="install"), "rpm": RPM},
               "dnf -y install", "gcc autoconf-archive python3-numpy jansson-devel"),
    "Arch": ({"pacman": PACMAN}, "pacman -S", "gcc autoconf-archive python-numpy jansson"),
    "Homebrew": ({"brew": BREW}, "brew install", "gcc autoconf-archive numpy jansson"),
}


def lay_out(programs):
    """Makes a tree that is built already, and a PATH of what the system is to have."""
    os.makedirs("tree/m4")
    os.mkdir("path")
    for name in ("tree/configure.ac", "tree/m4/nep49_x.m4", "has"):
        suite.write(name, "")
    shutil.copy(SOURCE, "tree/bootstrap")
    for tool in TOOLS:
        os.symlink(shutil.which(tool), "path/" + tool)
    for name, text in {"tree/configure": "#!/bin/sh\n", "tree/Makefile": "",
                       "path/make": '#!/bin/sh\necho "make $*" >>"$LOG"\n',
                       "path/sudo": '#!/bin/sh\nexec "$@"\n',
                       **{"path/" + name: text for name, text in programs.items()}}.items():
        os.chmod(suite.write(name, text), 0o700)


def bootstrap(*arguments):
    """Returns the result and what the stand-ins were asked."""
    suite.write("log", "")
    variables = ["%s=%s/%s" % (name.upper(), os.getcwd(), name) for name in ("path", "log", "has")]
    result = suite.run(["/usr/bin/env", "-i", *variables, "/bin/sh", "tree/bootstrap", *arguments])
    with open("log") as file:
        return result, file.read()


def installed():
    with open("has") as file:
        return set(file.read().split())


def try_system(tap, name):
    programs, command, wanted = SYSTEMS[name]
    lay_out(programs)
    result, log = bootstrap()
    missing = set(wanted.split()) - installed()
    tap.point(result.code == 0 and command in log and not missing
              and log.rstrip().splitlines()[-1].startswith("make"),
              name + ": packages are installed, then it is built",
              "%s\n%s\nnot: %s" % (result, log, missing))
    if name == "Debian":
        steps = result.stdout.count("% unpacked and set up\n")
        tap.point(steps == 4 and "Setting up" not in result.stdout + result.stderr
                  and "no libmimalloc-dev here" in result.stdout,
                  "Debian: it shows progress, and what cannot be installed", result)
        suite.write("path/apt-cache", "#!/bin/sh\nexit 100\n")
    result, log = bootstrap()
    tap.point(result.code == 0 and "install" not in log + result.stdout and "-S" not in log,
              name + ": a second time nothing is installed", "%s\n%s" % (result, log))
    before = installed()
    result, log = bootstrap("--ci-tools")
    tap.point(result.code == 0 and "cppcheck" in installed() - before,
              name + ": --ci-tools installs more", result)


def try_without_root(tap):
    """It lists what is missing.  If the build does not need it, it goes on."""
    programs, _, wanted = SYSTEMS["Debian"]
    lay_out(programs)
    os.remove("path/sudo")
    os.remove("path/id")
    os.chmod(suite.write("path/id", "#!/bin/sh\necho 1000\n"), 0o700)
    result, log = bootstrap()
    told = {word for line in result.stdout.splitlines() if line.startswith("    ")
            for word in line.split()}
    tap.point(result.code == 1 and set(wanted.split()) <= told
              and not re.search(r"^make|install|-S", log, re.M),
              "without root: the list of packages", "%s\n%s" % (result, log))
    suite.write("has", "\n".join(told - {"valgrind"}))
    result, log = bootstrap()
    tap.point(result.code == 0 and "going on without valgrind" in result.stdout and "make" in log,
              "without root: it goes on without valgrind", "%s\n%s" % (result, log))


def try_elsewhere(tap):
    lay_out({})
    result, log = bootstrap()
    told = result.stderr.strip().splitlines()
    named = all(word in told[-1] for word in ("autoconf", "gcc-or-clang", "check", "jansson"))
    tap.point(result.code == 1 and named and "make" not in log and "no valgrind" in result.stdout,
              "elsewhere: a list of what is missing, and no more", result)


def main():
    tap = suite.Tap()
    for function, *name in [*((try_system, name) for name in SYSTEMS), (try_without_root,),
                            (try_elsewhere,)]:
        with suite.scratch(enter=True):
            function(tap, *name)
    tap.end()


if __name__ == "__main__":
    main()
