# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that own memory no handler made."""

import os
import warnings

import _conform
from conform_support import Handler, core, same

VARIABLE = "NUMPY_WARN_IF_NO_MEM_POLICY"


def warnings_of_release(handler, when):
    """How often NumPy warns of the memory policy when such an array ends, with handler in force."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with handler.installed():
            array = _conform.owndata_array(100)
            other = array + 1  # by the handler
            del array, other
    for warning in caught:
        if not issubclass(warning.category, RuntimeWarning) or "policy" not in str(warning.message):
            _conform.fail("no warning but the one about the memory policy %s" % when,
                          str(warning.message))
    return len(caught)


def switch(on):
    """What the variable is read into at import since NumPy 1.25.2; before, at each release."""
    switch_of = getattr(core._multiarray_umath, "_set_numpy_warn_if_no_mem_policy", None)
    if switch_of is not None:
        switch_of(on)
    elif on:
        os.environ[VARIABLE] = "1"
    else:
        os.environ.pop(VARIABLE, None)


def expect_warnings():
    """In a process whose NumPy was imported with the variable as it is now."""
    value = os.environ.get(VARIABLE)
    when = "with %s%s" % (VARIABLE, " unset" if value is None else "=" + value)
    handler = Handler()
    what = "the warnings when an array with memory of malloc's ends "
    same(warnings_of_release(handler, when), int(value == "1"), what + when)
    for on in True, False, True:
        switch(on)
        when = "after the warning was switched %s" % ("on" if on else "off")
        same(warnings_of_release(handler, when), int(on), what + when)
    handler.expect_settled()
