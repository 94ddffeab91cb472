# SPDX-License-Identifier: BSD-3-Clause
"""bootstrap on systems that this one is not: what it asks their package managers for.

The package managers are stand-ins, for the real ones do not run here: each writes down what it was
asked, and believes that it has installed it.  Everything else on PATH is the system's own, but for
apt-get, which is not there.  Where nothing is missing, nothing may be installed.
"""

import os
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

SYSTEMS = {
    "Fedora": ({"dnf": INSTALLER.format(name="dnf", verb="install"), "rpm": RPM},
               "dnf -q -y install",
               "gcc make autoconf automake libtool autoconf-archive pkgconf-pkg-config check-devel "
               "python3-devel python3-numpy valgrind jansson-devel libxml2-devel nettle-devel "
               "tbb-devel"),
    "Arch": ({"pacman": PACMAN}, "pacman -S",
             "gcc make autoconf automake libtool autoconf-archive pkgconf check python "
             "python-numpy valgrind jansson libxml2 nettle onetbb"),
    "Homebrew": ({"brew": BREW}, "brew install --quiet",
                 "gcc autoconf automake libtool autoconf-archive pkgconf check python3 numpy "
                 "valgrind jansson libxml2 nettle tbb"),
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
    result, log = bootstrap()
    tap.point(result.returncode == 0 and "install" not in log + result.stdout and "-S" not in log,
              name + ": a second time nothing is installed", "%s\n%s" % (result, log))
    before = lines("has")
    result, log = bootstrap("--ci-tools")
    more = lines("has") - before
    tap.point(result.returncode == 0 and {"cppcheck"} <= more, name + ": --ci-tools asks for more",
              "%s\n%s" % (result, more))


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
    for name in list(SYSTEMS) + ["elsewhere"]:
        with suite.scratch() as folder:
            os.chdir(folder)
            if name in SYSTEMS:
                try_system(tap, name)
            else:
                try_elsewhere(tap)
            os.chdir(top)
    tap.end()


if __name__ == "__main__":
    main()
