# SPDX-License-Identifier: BSD-3-Clause
#
# NEP49_SYSTEM - is this a system that the runner works on?
#
# It is written for Linux (/proc, prctl), and a libc that has close_range and sigabbrev_np, which is
# glibc 2.34 or later.

AC_DEFUN([NEP49_SYSTEM],
[AC_REQUIRE([AC_CANONICAL_HOST])
AS_CASE([$host_os],
  [linux*], [],
  [AC_MSG_ERROR([conform runs on Linux, and this is $host_os; a container will do])])
AC_CHECK_FUNC([close_range], [nep49_libc=yes], [nep49_libc=no])
AC_CHECK_FUNC([sigabbrev_np], [], [nep49_libc=no])
AS_IF([test $nep49_libc = no],
  [AC_MSG_ERROR([glibc 2.34 or later is needed: Debian 12, Ubuntu 22.04, or newer])])
])
