# SPDX-License-Identifier: BSD-3-Clause
#
# NEP49_TOML - is there toml++, and a compiler of C++17 for it?
#
# Of the library its headers are enough.  Where one of the two is missing, --expect says so, and
# everything else is built.  Sets the Automake conditional HAVE_TOML, and nep49_toml, in words.

AC_DEFUN([NEP49_TOML],
[AC_REQUIRE([AC_PROG_CXX])
AC_LANG_PUSH([C++])
nep49_saved_CXXFLAGS=$CXXFLAGS
CXXFLAGS="$CXXFLAGS -std=c++17"
AC_MSG_CHECKING([whether $CXX compiles toml++])
AC_COMPILE_IFELSE(
  [AC_LANG_PROGRAM([[
#define TOML_HEADER_ONLY 0
#include <toml++/toml.h>
#if TOML_LIB_MAJOR < 3
#error "older than 3.0, whose keys have no places"
#endif
]])],
  [nep49_toml=yes],
  [nep49_toml="no (Debian: libtomlplusplus-dev and g++)"])
AC_MSG_RESULT([$nep49_toml])
CXXFLAGS=$nep49_saved_CXXFLAGS
AC_LANG_POP([C++])
AM_CONDITIONAL([HAVE_TOML], [test "$nep49_toml" = yes])
])
