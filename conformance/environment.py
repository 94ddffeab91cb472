# SPDX-License-Identifier: BSD-3-Clause
"""env: what Python has in store for whoever lets it run inside a call."""

import signal
import warnings


def stop(number, frame):
    raise TimeoutError("the handler of signal %d" % number)


def be_strict():
    """From now on SIGUSR1 raises, as SIGINT does, and so does each warning."""
    signal.signal(signal.SIGUSR1, stop)
    warnings.simplefilter("error")
