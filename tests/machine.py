# SPDX-License-Identifier: BSD-3-Clause
"""The machine that a benchmark runs on, in one line: figures mean nothing without it."""

import os
import platform


def processor():
    """What the kernel calls it."""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def describe():
    cores = len(os.sched_getaffinity(0))
    kernel = ".".join(platform.release().split(".")[:2])
    return "%s: %s, %d core%s, Linux %s, %s, load %.1f" % (
        platform.node(), processor(), cores, "" if cores == 1 else "s", kernel,
        " ".join(platform.libc_ver()), os.getloadavg()[0])


if __name__ == "__main__":
    print(describe())
