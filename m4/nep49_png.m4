# SPDX-License-Identifier: BSD-3-Clause
#
# NEP49_PNG - can the embedding demo write pictures?
#
# Asks pkg-config for libpng, unless --without-png says that it is not wanted.
# Sets PNG_CFLAGS, PNG_LIBS (empty where there is none) and nep49_png, in words,
# and defines HAVE_LIBPNG.

AC_DEFUN([NEP49_PNG],
[AC_ARG_WITH([png],
  [AS_HELP_STRING([--without-png], [build the embedding demo without pictures])],
  [], [with_png=yes])
nep49_png="no, by --without-png"
AS_IF([test "$with_png" != no],
  [PKG_CHECK_MODULES([PNG], [libpng >= 1.6],
    [AC_DEFINE([HAVE_LIBPNG], [1], [Is there a libpng to write pictures with?])
    nep49_png=`$PKG_CONFIG --modversion libpng`],
    [nep49_png="no, not installed (Debian: libpng-dev, Fedora: libpng-devel)"])])
])
