# SPDX-License-Identifier: BSD-3-Clause
#
# NEP49_TAP_AWK - an awk for Automake's TAP driver that prints each line at once
#
# Into a pipe, as below make -j or in CI, awk keeps what it prints until it has a few kilobytes, and
# mawk what it reads as well, so that a test says nothing for minutes.  Sets TAP_AWK.

AC_DEFUN([NEP49_TAP_AWK],
[AC_REQUIRE([AC_PROG_AWK])
TAP_AWK=$AWK
AS_CASE([`$AWK -W version 2>/dev/null </dev/null`],
  [mawk*], [TAP_AWK="$AWK -W interactive"],
  [AS_IF([stdbuf -oL $AWK 'BEGIN { }' >/dev/null 2>&1], [TAP_AWK="stdbuf -oL $AWK"])])
AC_SUBST([TAP_AWK])
])
