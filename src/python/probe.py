# SPDX-License-Identifier: BSD-3-Clause
"""What this interpreter is and which libpython it can be embedded by.

conform gives this to each interpreter that it may embed, started without site, and reads the lines
that begin with `conform-probe`.  Any Python from 2.7 on can read it, because "too old" is one of
the answers.
"""

import os
import sys

OLDEST = (3, 9)


def lack():
    """Why it will not do, in words that come behind its path, or ''."""
    implementation = getattr(sys, "implementation", None)
    if (implementation.name if implementation else "cpython") != "cpython" or "PyPy" in sys.version:
        return "is %s, and what is embedded here is CPython" % (
            "PyPy" if "PyPy" in sys.version else implementation.name)
    if sys.version_info[:2] < OLDEST:
        return "is Python %d.%d, and 3.9 or newer is wanted" % sys.version_info[:2]
    return ""


def loaded_library():
    """The libpython that this process runs on, or None."""
    with open("/proc/self/maps", "rb") as maps:
        for line in maps:
            path = line.rstrip(b"\n").split(None, 5)[5:]
            name = os.path.basename(path[0]) if path else b""
            if name.startswith(b"libpython3.") and b".so" in name:
                return os.fsdecode(path[0])
    return None


def installed_library():
    """Where the executable has all of Python in it: the libpython that lies beside it, or None."""
    import sysconfig
    variable = sysconfig.get_config_var
    folders = [
        variable("LIBDIR"),
        os.path.join(variable("LIBDIR") or "", variable("MULTIARCH") or ""),
        os.path.join(sys.base_prefix, "lib"),  # an interpreter that was unpacked somewhere else
    ]
    plain = "libpython%s.so" % (variable("LDVERSION") or variable("VERSION"))
    for folder in folders:
        for name in (plain + ".1.0", plain):
            path = os.path.join(folder or "", name)
            if os.path.isabs(path) and os.path.exists(path):
                return path
    return None


def usual_folders():
    """Where packages mostly are.  Without site nobody knows yet that this is an environment."""
    root = os.path.dirname(os.path.dirname(sys.executable))
    if os.path.exists(os.path.join(root, "pyvenv.cfg")):
        python = "python%d.%d%s" % (sys.version_info[:2] + ("t" * ("t" in sys.abiflags),))
        return [os.path.join(root, "lib", python, "site-packages")]
    import site
    return site.getsitepackages([sys.prefix])


def has_numpy():
    """Looks where it mostly is first: site may take longer than all else that is done here."""
    for folder in usual_folders():
        if os.path.exists(os.path.join(folder, "numpy", "__init__.py")):
            return True
    import site
    site.main()
    for finder in sys.meta_path:
        spec = finder.find_spec("numpy", None) if hasattr(finder, "find_spec") else None
        if spec is not None:
            return spec.origin is not None
    return False


def tell(key, value):
    sys.stdout.write("conform-probe %s=%s\n" % (key, value))


def probe():
    tell("lack", lack())
    if lack():
        return
    sys.path[:] = [folder for folder in sys.path if folder]  # not what happens to lie here
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    tell("executable", sys.executable)
    tell("program", os.readlink("/proc/self/exe"))
    tell("library", loaded_library() or installed_library() or "")
    tell("numpy", "yes" if has_numpy() else "no")


probe()
sys.stdout.flush()
os._exit(0)  # an end as usual takes milliseconds, for which whoever starts conform waits
