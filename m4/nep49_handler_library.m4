# SPDX-License-Identifier: BSD-3-Clause
#
# NEP49_HANDLER_LIBRARY(HANDLER, HEADER, LIBRARY, FUNCTION, [MODULE = LIBRARY]) - can it be built?
#
# Looks for the header and for the function in the library: where pkg-config says that they are, if
# it knows MODULE, else where the compiler looks.  Sets the Automake conditional HAVE_HANDLER (in
# capitals), HANDLER_CFLAGS and HANDLER_LIBS, and notes in nep49_handlers what became of it.
# Nothing else depends on the library, so that one that is missing is no error.

AC_DEFUN([NEP49_HANDLER_LIBRARY],
[m4_pushdef([nep49_name], m4_toupper([$1]))dnl
m4_pushdef([nep49_module], m4_default([$5], [$3]))dnl
nep49_found=no
nep49_cflags=
nep49_libs=-l$3
PKG_CHECK_EXISTS(nep49_module,
  [nep49_cflags=`$PKG_CONFIG --cflags "nep49_module"`
  nep49_libs="`$PKG_CONFIG --libs-only-L "nep49_module"` -l$3"])
nep49_saved_CPPFLAGS=$CPPFLAGS
nep49_saved_LIBS=$LIBS
CPPFLAGS="$CPPFLAGS $nep49_cflags"
AC_CHECK_HEADER([$2],
  [AC_CHECK_LIB([$3], [$4], [nep49_found=yes], [], [$nep49_libs])])
CPPFLAGS=$nep49_saved_CPPFLAGS
LIBS=$nep49_saved_LIBS
AS_IF([test "$nep49_found" = yes],
  [nep49_handlers="$nep49_handlers $1"],
  [nep49_handlers_missing="$nep49_handlers_missing $1"])
AC_SUBST(nep49_name[]_CFLAGS, [$nep49_cflags])
AC_SUBST(nep49_name[]_LIBS, [$nep49_libs])
AM_CONDITIONAL([HAVE_]nep49_name, [test "$nep49_found" = yes])
m4_popdef([nep49_module])dnl
m4_popdef([nep49_name])dnl
])
