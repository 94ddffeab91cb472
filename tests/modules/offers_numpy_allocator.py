# SPDX-License-Identifier: BSD-3-Clause
"""A handler made with the package numpy-allocator from PyPI, as its page says to."""

import numpy_allocator


class offers_numpy_allocator(metaclass=numpy_allocator.type):
    """With the functions that the package has where none are given: malloc's."""
