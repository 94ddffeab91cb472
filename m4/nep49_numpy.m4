# SPDX-License-Identifier: BSD-3-Clause
#
# NEP49_NUMPY - do NumPy's headers declare the handler API?
#
# Compiles for the C API of NumPy 1.22, the first that has handlers, so that what
# was built against NumPy 2 runs on 1.22 as well.  Headers older than 1.25 do not
# know NPY_TARGET_VERSION and pass over it.
#
# Needs what NEP49_PYTHON_EMBED found.  Sets NUMPY_CPPFLAGS, for embed_demo and a unit test.

AC_DEFUN([NEP49_NUMPY],
[AC_REQUIRE([NEP49_PYTHON_EMBED])
NUMPY_CPPFLAGS="-isystem $NUMPY_INCLUDE"
NUMPY_CPPFLAGS="$NUMPY_CPPFLAGS -DNPY_TARGET_VERSION=NPY_1_22_API_VERSION"
NUMPY_CPPFLAGS="$NUMPY_CPPFLAGS -DNPY_NO_DEPRECATED_API=NPY_1_7_API_VERSION"
nep49_saved_CPPFLAGS=$CPPFLAGS
CPPFLAGS="$PYTHON_CPPFLAGS $NUMPY_CPPFLAGS $CPPFLAGS"
AC_MSG_CHECKING([whether NumPy's headers declare handlers])
AC_COMPILE_IFELSE(
  [AC_LANG_PROGRAM([[
#include <Python.h>
#include <numpy/arrayobject.h>
static PyDataMem_Handler handler;
]], [[
    import_array1(1);
    return PyDataMem_SetHandler(NULL) == NULL || handler.version != 0;
]])],
  [AC_MSG_RESULT([yes])],
  [AC_MSG_RESULT([no])
  AC_MSG_ERROR([the headers in $NUMPY_INCLUDE do not compile with $PYTHON's; reinstall NumPy, or name another Python by PYTHON= (config.log has the compiler's words)])])
CPPFLAGS=$nep49_saved_CPPFLAGS
AC_SUBST([NUMPY_CPPFLAGS])
])
