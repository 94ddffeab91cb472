# SPDX-License-Identifier: BSD-3-Clause
"""Prints how long the suite takes on `aligned`, as a multiple of `import numpy`, and how fast the
reference handlers are compared with NumPy's default handler.  Part of `make bench`.
"""

import os
import resource
import statistics
import subprocess
import time

CONFORM, PYTHON = os.environ["CONFORM"], os.environ["PYTHON"]
ROUNDS = 7
COMMANDS = {
    "import numpy": [PYTHON, "-c", "import numpy"],
    "one property": [CONFORM, "-H", "aligned", "-q", "-j1", "--run=abi.loads",
                     "--python=" + PYTHON],
    "the suite": [CONFORM, "-H", "aligned", "-q", "--python=" + PYTHON],
}
HANDLERS = "aligned", "arena", "cache", "shift_header", "trace"


def measure(command):
    """Returns wall and processor seconds."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    rounds = [{name: measure(command) for name, command in COMMANDS.items()}
              for _ in range(ROUNDS)]  # in turn, so that the load of the machine affects all
    print("medians of %d rounds; ratios to `import numpy` in the same round" % ROUNDS)
    for name in COMMANDS:
        wall, processor = (statistics.median(each[name][i] for each in rounds) for i in (0, 1))
        ratio, used = (statistics.median(each[name][i] / each["import numpy"][i] for each in rounds)
                       for i in (0, 1))
        print("%-13s %6.3f s, ratio %6.2f; %6.3f s of processors, ratio %6.2f"
              % (name, wall, ratio, processor, used))
    print(flush=True)
    subprocess.run([CONFORM, "bench", "--python=" + PYTHON]
                   + ["--handler=" + name for name in HANDLERS], check=True)


main()
