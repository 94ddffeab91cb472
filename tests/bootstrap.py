# SPDX-License-Identifier: BSD-3-Clause
"""bootstrap on systems that this one is not: what it asks their package managers for.

The package managers are stand-ins, for the real ones do not run here: each writes down what it was
asked, and believes that it has installed it.  Everything else on PATH is the system's own.  Where
nothing is missing, nothing may be installed, and where nobody can be root, nothing is tried.
"""

import os
import re
import shutil
import stat
import subprocess

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

SYSTEMS = {
    "Debian": (DEBIAN, "apt-get -qq -y ",
               "gcc make autoconf automake autoconf-archive pkg-config check python3-dev "
               "python3-numpy valgrind libjansson-dev nettle-dev "
               "libtbb-dev"),
    "Fedora": ({"dnf": INSTALLER.format(name="dnf", verb="install"), "rpm": RPM},
               "dnf -y install",
               "gcc make autoconf automake autoconf-archive pkgconf-pkg-config check-devel "
               "python3-devel python3-numpy valgrind jansson-devel nettle-devel "
               "tbb-devel"),
    "Arch": ({"pacman": PACMAN}, "pacman -S",
             "gcc make autoconf automake autoconf-archive pkgconf check python "
             "python-numpy valgrind jansson nettle onetbb"),
    "Homebrew": ({"brew": BREW}, "brew install",
                 "gcc autoconf automake autoconf-archive pkgconf check python3 numpy "
                 "valgrind jansson nettle tbb"),
}


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, stat.S_IRWXU)


def lay_out(programs):
    """A tree that is built already, and a PATH of what the system is to have."""
    os.makedirs("tree/m4")
    os.mkdir("path")
    for name in ("tree/configure.ac", "tree/m4/nep49_x.m4", "log", "has"):
        open(name, "w").close()
    for name in ("tree/configure", "tree/Makefile"):
        write(name, "#!/bin/sh\n")
    shutil.copy(SOURCE, "tree/bootstrap")
    for tool in TOOLS:
        os.symlink(shutil.which(tool), "path/" + tool)
    write("path/make", '#!/bin/sh\necho "make $*" >>"$LOG"\n')
    write("path/sudo", '#!/bin/sh\nexec "$@"\n')
    for name, text in programs.items():
        write("path/" + name, text)


def bootstrap(*arguments):
    environment = {"PATH": os.path.abspath("path"), "LOG": os.path.abspath("log"),
                   "HAS": os.path.abspath("has")}
    open("log", "w").close()
    result = subprocess.run(["sh", "tree/bootstrap", *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=environment, universal_newlines=True)
    with open("log") as file:
        return result, file.read()


def lines(path):
    with open(path) as file:
        return set(file.read().split())


def try_system(tap, name):
    programs, command, wanted = SYSTEMS[name]
    lay_out(programs)
    result, log = bootstrap()
    missing = set(wanted.split()) - lines("has")
    tap.point(result.returncode == 0 and command in log and not missing,
              "%s: everything is asked for" % name, "%s\n%s\nnot: %s" % (result, log, missing))
    tap.point(log.rstrip().splitlines()[-1].startswith("make"), name + ": then it is built", log)
    if name == "Debian":
        steps = result.stdout.count("% unpacked and set up\n")
        tap.point(steps == 4 and "Setting up" not in result.stdout + result.stderr,
                  "Debian: now and then it says how far it is", result)
        tap.point("no libmimalloc-dev here" in result.stdout,
                  "Debian: what is not to be had is said", result)
        write("path/apt-cache", "#!/bin/sh\nexit 100\n")
    result, log = bootstrap()
    tap.point(result.returncode == 0 and "install" not in log + result.stdout and "-S" not in log,
              name + ": a second time nothing is installed", "%s\n%s" % (result, log))
    before = lines("has")
    result, log = bootstrap("--ci-tools")
    more = lines("has") - before
    tap.point(result.returncode == 0 and {"cppcheck"} <= more, name + ": --ci-tools asks for more",
              "%s\n%s" % (result, more))


def try_without_root(tap, name):
    """The list of what is missing; where nothing is that the build needs, it goes on."""
    programs, _, wanted = SYSTEMS[name]
    lay_out(programs)
    os.remove("path/sudo")
    os.remove("path/id")
    write("path/id", "#!/bin/sh\necho 1000\n")
    result, log = bootstrap()
    told = [line for line in result.stdout.splitlines() if line.startswith("    ")]
    tap.point(result.returncode == 1 and set(wanted.split()) <= set(" ".join(told).split())
              and not re.search(r"^make|install|-S", log, re.M),
              name + ", and nobody is root: the list of packages", "%s\n%s" % (result, log))
    with open("has", "w") as file:
        file.write("\n".join(set(" ".join(told).split()) - {"valgrind"}))
    result, log = bootstrap()
    tap.point(result.returncode == 0 and "going on without valgrind" in result.stdout
              and "make" in log, name + ", and nobody is root: it goes on without valgrind",
              "%s\n%s" % (result, log))


def try_elsewhere(tap):
    lay_out({})
    result, log = bootstrap()
    told = result.stderr.strip().splitlines()
    named = all(word in told[-1] for word in ("autoconf", "gcc-or-clang", "check", "jansson"))
    tap.point(result.returncode == 1 and named and "make" not in log,
              "elsewhere: a list of what is missing, and no more", result)
    tap.point("no valgrind" in result.stdout, "elsewhere: what can be done without is said", result)


def main():
    tap = suite.Tap()
    top = os.getcwd()
    tries = [(try_system, name) for name in SYSTEMS]
    tries += [(try_without_root, name) for name in SYSTEMS if name != "Homebrew"]
    tries += [(try_elsewhere,)]
    for function, *name in tries:
        with suite.scratch() as folder:
            os.chdir(folder)
            function(tap, *name)
            os.chdir(top)
    tap.end()


if __name__ == "__main__":
    main()
