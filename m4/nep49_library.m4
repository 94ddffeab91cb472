# SPDX-License-Identifier: BSD-3-Clause
#
# NEP49_LIBRARY(PREFIX, MODULE, DEBIAN-PACKAGE, FEDORA-PACKAGE) - is this library there?
# NEP49_LIBRARIES_END - may configure go on?
#
# Asks pkg-config for MODULE and sets PREFIX_CFLAGS and PREFIX_LIBS.  What is
# missing is collected, and named in one line when all have been asked for.

AC_DEFUN([NEP49_LIBRARY],
[PKG_CHECK_MODULES([$1], [$2],
  [],
  [AC_MSG_RESULT([no])
  nep49_missing="$nep49_missing $2"
  nep49_missing_debian="$nep49_missing_debian $3"
  nep49_missing_fedora="$nep49_missing_fedora $4"])
])

AC_DEFUN([NEP49_LIBRARIES_END],
[AS_IF([test -n "$nep49_missing"],
  [AC_MSG_ERROR([missing:$nep49_missing; run ./bootstrap, or: apt-get install$nep49_missing_debian (Debian), dnf install$nep49_missing_fedora (Fedora)])])
])
