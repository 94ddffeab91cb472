# SPDX-License-Identifier: BSD-3-Clause
#
# NEP49_HANDLER_LIBRARY(HANDLER, HEADER, LIBRARY, FUNCTION) - can this handler be built?
#
# Looks for the header and for the function in the library.  Sets the Automake conditional
# HAVE_HANDLER (in capitals) and HANDLER_LIBS, and notes in nep49_handlers what became of it.
# Nothing else depends on the library, so that one that is missing is no error.

AC_DEFUN([NEP49_HANDLER_LIBRARY],
[m4_pushdef([nep49_name], m4_toupper([$1]))dnl
nep49_found=no
AC_CHECK_HEADER([$2],
  [nep49_saved_LIBS=$LIBS
  AC_CHECK_LIB([$3], [$4], [nep49_found=yes])
  LIBS=$nep49_saved_LIBS])
AS_IF([test "$nep49_found" = yes],
  [nep49_handlers="$nep49_handlers $1"],
  [nep49_handlers_missing="$nep49_handlers_missing $1"])
AC_SUBST(nep49_name[]_LIBS, [-l$3])
AM_CONDITIONAL([HAVE_]nep49_name, [test "$nep49_found" = yes])
m4_popdef([nep49_name])dnl
])
