# SPDX-License-Identifier: BSD-3-Clause
#
# NEP49_WARNINGS - which warnings does the compiler know, and are they errors?
#
# --enable-werror makes them errors; continuous integration does, because a
# newer compiler's new warning should not stop anybody else's build.
# -Wno-psabi keeps GCC from telling, on i386 and of each file, that another
# release would lay out an _Atomic uint64_t otherwise: all is built by one.
# Sets WARNING_CFLAGS.

AC_DEFUN([NEP49_WARNINGS],
[AC_ARG_ENABLE([werror],
  [AS_HELP_STRING([--enable-werror], [make warnings errors, as continuous integration does])],
  [], [enable_werror=no])
WARNING_CFLAGS=
AX_APPEND_COMPILE_FLAGS([ \
  -Wall \
  -Wextra \
  -Wmissing-prototypes \
  -Wno-psabi \
  -Wpointer-arith \
  -Wshadow \
  -Wstrict-prototypes \
  -Wvla \
  -Wwrite-strings \
  ], [WARNING_CFLAGS], [-Werror])
AS_IF([test "$enable_werror" != no], [WARNING_CFLAGS="$WARNING_CFLAGS -Werror"])
AC_SUBST([WARNING_CFLAGS])
])
