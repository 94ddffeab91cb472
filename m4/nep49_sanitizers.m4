# SPDX-License-Identifier: BSD-3-Clause
#
# NEP49_SANITIZERS - is everything to be built with ASan and UBSan?
#
# --enable-sanitizers.  What UBSan finds ends the program, so that a test fails.
# Sets SANITIZER_FLAGS, for the compiler and the linker, and enable_sanitizers.

AC_DEFUN([NEP49_SANITIZERS],
[AC_ARG_ENABLE([sanitizers],
  [AS_HELP_STRING([--enable-sanitizers],
    [build with AddressSanitizer and UndefinedBehaviorSanitizer])],
  [], [enable_sanitizers=no])
SANITIZER_FLAGS=
AS_IF([test "$enable_sanitizers" != no],
  [SANITIZER_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined"
  SANITIZER_FLAGS="$SANITIZER_FLAGS -fno-omit-frame-pointer"
  AC_MSG_CHECKING([whether $CC can build with sanitizers])
  nep49_saved_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $SANITIZER_FLAGS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
    AC_MSG_ERROR([$CC cannot link with $SANITIZER_FLAGS; install its runtime (Fedora: libasan libubsan, for clang compiler-rt), or leave --enable-sanitizers out])])
  CFLAGS=$nep49_saved_CFLAGS])
AC_SUBST([SANITIZER_FLAGS])
AM_CONDITIONAL([SANITIZERS], [test "$enable_sanitizers" != no])
])
