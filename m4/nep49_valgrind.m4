# SPDX-License-Identifier: BSD-3-Clause
#
# NEP49_VALGRIND - can memcheck be used?
#
# Looks for the program and for its header, unless --disable-valgrind says that
# neither is wanted.  A program built with sanitizers cannot run under valgrind.
# Sets VALGRIND (empty where there is none) and nep49_valgrind, in words, and
# defines HAVE_VALGRIND_MEMCHECK_H.

AC_DEFUN([NEP49_VALGRIND],
[AC_REQUIRE([NEP49_SANITIZERS])
AC_ARG_VAR([VALGRIND], [the valgrind to run memcheck with])
AC_ARG_ENABLE([valgrind],
  [AS_HELP_STRING([--disable-valgrind], [do without memcheck, in conform and in its tests])],
  [], [enable_valgrind=yes])
AS_IF([test "$enable_valgrind" = no],
    [VALGRIND= nep49_valgrind="no, by --disable-valgrind"],
  [test "$enable_sanitizers" != no],
    [VALGRIND= nep49_valgrind="no, because of --enable-sanitizers"],
  [AC_PATH_PROG([VALGRIND], [valgrind])
  AC_CHECK_HEADERS([valgrind/memcheck.h])
  AS_IF([test -z "$VALGRIND"], [nep49_valgrind="no, not installed"],
    [test "$ac_cv_header_valgrind_memcheck_h" != yes],
      [VALGRIND= nep49_valgrind="no, its header is missing (Fedora: valgrind-devel)"],
    [nep49_valgrind=$VALGRIND])])
])
