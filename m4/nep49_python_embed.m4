# SPDX-License-Identifier: BSD-3-Clause
#
# NEP49_PYTHON_EMBED - which Python are the tests for, and can embed_demo be linked with it?
#
# conform itself is built for any Python and needs none.  PYTHON=, where it is given, decides;
# otherwise each Python that a machine may have is tried in turn, and the first that is fit is
# taken.  Fit means: not too old, a NumPy that has handlers, with its C headers, and a shared
# libpython with which a small program starts this very interpreter and imports that NumPy.  Where
# none is, embed_demo and the tests that are compiled against headers are left out.
#
# Sets PYTHON (absolute, but a virtual environment's link is left as it is: Python knows the
# environment by it), PYTHON_VERSION, PYTHON_CPPFLAGS, PYTHON_LIBS, NUMPY_VERSION and
# NUMPY_INCLUDE, nep49_embeds, and leaves in nep49_passed_over, for the summary, which were unfit
# and why.

AC_DEFUN([NEP49_PYTHON_EMBED],
[AC_REQUIRE([AC_PROG_CC])
AC_REQUIRE([AC_PROG_SED])
AC_ARG_VAR([PYTHON], [the Python of the tests and of embed_demo; one of a virtual environment will do])
nep49_asked_for=$PYTHON
nep49_candidates=$PYTHON
AS_IF([test -z "$PYTHON"],
  [nep49_candidates="python3 python3.14 python3.13 python3.12 python3.11 python3.10 python3.9
    python3.8 /usr/bin/python3 /usr/local/bin/python3 /opt/homebrew/bin/python3 python"])
PYTHON=
nep49_seen=:
nep49_passed_over=
for nep49_candidate in $nep49_candidates; do
  _NEP49_PYTHON_PROBE([$nep49_candidate])
  AS_IF([test "$nep49_python_lack" = absent], [continue])
  AS_CASE([$nep49_seen], [*":$nep49_python_identity:"*], [continue])
  nep49_seen="$nep49_seen$nep49_python_identity:"
  AC_MSG_CHECKING([whether $nep49_candidate can be embedded])
  AS_IF([test -z "$nep49_python_lack"], [_NEP49_PYTHON_RUN])
  AS_IF([test -z "$nep49_python_lack"],
    [AC_MSG_RESULT([yes])
    PYTHON=$nep49_python_executable
    break],
    [nep49_unfit="${nep49_python_version:+$nep49_python_version, }$nep49_python_lack"
    AC_MSG_RESULT([no: $nep49_unfit])
    nep49_passed_over="$nep49_passed_over
                passed over $nep49_candidate: $nep49_unfit"])
done

AC_MSG_CHECKING([which Python to test with])
AS_IF([test -n "$PYTHON"],
  [nep49_embeds=yes
  AS_IF([test -n "$nep49_asked_for"], [nep49_why="as PYTHON= says"],
    [nep49_why="the first that is fit"])
  AC_MSG_RESULT([$PYTHON ($nep49_python_version, NumPy $nep49_python_numpy): $nep49_why])],
  [AS_IF([test -n "$nep49_asked_for" && test "$nep49_python_lack" = absent],
    [AC_MSG_ERROR([PYTHON=$nep49_asked_for: there is no such program; give the path of a Python])])
  nep49_embeds=no
  nep49_why="which embed_demo cannot be linked with"
  _NEP49_PYTHON_PROBE([${nep49_asked_for:-python3}])
  PYTHON=${nep49_python_executable:-python3}
  AC_MSG_RESULT([$PYTHON, $nep49_why])])

PYTHON_VERSION=$nep49_python_version
NUMPY_VERSION=$nep49_python_numpy
NUMPY_INCLUDE=$nep49_python_numpy_include
AC_SUBST([PYTHON_VERSION])
AC_SUBST([PYTHON_CPPFLAGS])
AC_SUBST([PYTHON_LIBS])
AC_SUBST([NUMPY_VERSION])
AC_SUBST([NUMPY_INCLUDE])
AM_CONDITIONAL([EMBEDS], [test $nep49_embeds = yes])
])

# _NEP49_PYTHON_PROBE(CANDIDATE): set nep49_python_* to what m4/python_probe.py says of it.
AC_DEFUN([_NEP49_PYTHON_PROBE],
[nep49_python_lack="does not run"
nep49_python_version=
nep49_python_executable=
nep49_python_identity=$1
AS_CASE([$1],
  [/*], [nep49_path=$1],
  [*/*], [nep49_path=`cd $(dirname $1) 2>/dev/null && pwd`/`basename $1`],
  [nep49_path=`command -v $1`])
AS_IF([test -x "$nep49_path"],
  [eval "`$nep49_path $srcdir/m4/python_probe.py 2>&AS_MESSAGE_LOG_FD`"],
  [nep49_python_lack=absent])
])

# _NEP49_PYTHON_RUN: start the interpreter last probed from a C program; where that
# does not work say so in nep49_python_lack.  The library is named by its path, so
# that no other libpython on the linker's way is taken for it.
AC_DEFUN([_NEP49_PYTHON_RUN],
[PYTHON_CPPFLAGS="-isystem $nep49_python_include"
nep49_folder=`AS_DIRNAME(["$nep49_python_library"])`
PYTHON_LIBS=$nep49_python_library
AS_CASE([$nep49_folder],
  [/lib|/lib64|/usr/lib|/usr/lib64|/usr/lib/*-linux-gnu*], [],
  [PYTHON_LIBS="$PYTHON_LIBS -Wl,-rpath,$nep49_folder"])
nep49_saved_CPPFLAGS=$CPPFLAGS
nep49_saved_LIBS=$LIBS
CPPFLAGS="$PYTHON_CPPFLAGS $CPPFLAGS"
LIBS="$PYTHON_LIBS $LIBS"
AC_RUN_IFELSE(
  [AC_LANG_PROGRAM([[
#include <Python.h>
#include <string.h>
]], [[
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    PyConfig_SetBytesString(&config, &config.program_name, "$nep49_python_executable");
    if (PyStatus_Exception(Py_InitializeFromConfig(&config)))
        return 2;
    if (strncmp(Py_GetVersion(), PY_VERSION, strlen(PY_VERSION)) != 0)
        return 3;
    return PyRun_SimpleString("import numpy") != 0;
]])],
  [],
  [nep49_python_lack="a program linked with $nep49_python_library does not start it (see config.log)"],
  [AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <Python.h>]], [[Py_Initialize();]])],
    [],
    [nep49_python_lack="nothing links with $nep49_python_library (see config.log)"])])
CPPFLAGS=$nep49_saved_CPPFLAGS
LIBS=$nep49_saved_LIBS
])
