# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that own memory no handler made."""

import os
import warnings

import _conform
from conform_support import (
    Handler,
    address_of,
    core,
    default_in_force,
    expect,
    handler_name,
    same,
)

VARIABLE = "NUMPY_WARN_IF_NO_MEM_POLICY"
SIZES = 1, 100, 4096, 300000


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
            _conform.fail(
                "no warning but the one about the memory policy %s" % when, str(warning.message)
            )
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


def release(held, what):
    """Empties the list, which holds the last reference to memory of malloc's at that address."""
    address = address_of(held[0])
    expect(_conform.is_freed(address) is not True, "%s to be live still" % what, "it is freed")
    _conform.drop(held)
    expect(
        _conform.is_freed(address) is not False,
        "%s to go to free() when its array ends" % what,
        "free() was not called for it",
    )


def expect_not_by_handler(array):
    same(handler_name(array), None, "the handler of an array with memory of malloc's")
    same(_conform.owner(array), None, "the handler whose block that memory is")


def contents(size):
    """What such an array holds."""
    return (bytes(range(256)) * (size // 256 + 1))[:size]


def uses_free():
    handler = Handler()
    with handler.installed():
        for size in SIZES:
            array = _conform.owndata_array(size)
            same(array.flags.owndata, True, "OWNDATA of an array that it was forced on for")
            expect_not_by_handler(array)
            same(array.tobytes() == contents(size), True, "the data to be right")
            held = [array]
            del array
            release(held, "a buffer of %d bytes, OWNDATA forced on," % size)
    default_in_force("in the end")
    handler.expect_settled()


def capsule_base():
    handler = Handler()
    with handler.installed():
        for size in SIZES:
            half, before = size // 2, _conform.capsules_released()
            array = _conform.capsule_array(size)
            same(array.flags.owndata, False, "OWNDATA of an array whose base is a capsule")
            expect_not_by_handler(array)
            view = array[half:]
            del array
            same(_conform.capsules_released() - before, 0, "the destructor's runs beside a view")
            same(view.tobytes() == contents(size)[half:], True, "the view's data to be right")
            held = [view.base]
            del view
            release(held, "a buffer of %d bytes, owned by a capsule," % size)
            same(_conform.capsules_released() - before, 1, "the runs of the capsule's destructor")
    handler.expect_settled()


def resize_refused():
    handler = Handler()
    with handler.installed():
        expect_refused(_conform.owndata_array, RuntimeError)
        expect_refused(_conform.capsule_array, ValueError)
    handler.expect_settled()


def expect_refused(make, error):
    for size in SIZES:
        array = make(size)
        for wanted in 2 * size, size + 1, size // 2:
            what = "resize from %d to %d bytes that no handler made" % (size, wanted)
            try:
                array.resize(wanted, refcheck=False)
            except error:
                pass
            else:
                _conform.fail("%s to raise %s" % (what, error.__name__), "it was accepted")
            same(array.shape, (size,), "the shape after a refused " + what)
            same(array.tobytes() == contents(size), True, "the data kept after a refused " + what)
