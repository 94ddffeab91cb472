# SPDX-License-Identifier: BSD-3-Clause
"""--handler given more than once: a report on each as it is alone, whatever the others do."""

import json
import os
import re

import suite
from suite import CANNOT_LOAD, CANNOT_WORK_HERE, CONFORMANT, NOT_CONFORMANT

WRONG = """
#include "sound/base.h"
static void *wrong_calloc(void *ctx, size_t n, size_t size)
{
    return base_calloc(ctx, 1, n * size + 1);
}
SOUND(nep49_handler, .calloc = wrong_calloc);
"""

RUN = ["--run=abi.loads", "--run=abi.struct-stays", "--run=calloc.overflow"]

NEIGHBOURS = """
#include <signal.h>
#include <unistd.h>
#include "sound/base.h"
static void *killing_malloc(void *ctx, size_t size)
{
    kill(getppid(), SIGKILL);
    return base_malloc(ctx, size);
}
SOUND(sound);
SOUND(kills, .malloc = killing_malloc);
NEP49_EXPORT PyDataMem_Handler empty;
NEP49_EXPORT PyDataMem_Handler *nep49_get_handler(const char **why)
{
    *why = "not here";
    return NULL;
}
"""


def told(report):
    """What there is to be compared with that of another run: how far the property got that took
    its worker down is anybody's guess."""
    varies = "0x[0-9a-f]+|^expected the .*?;|, (in|out)side .*"
    return [(p["id"], p["verdict"], re.sub(varies, "", p["message"]))
            for p in report["properties"]] + [report["exit_code"], report["subject"]]


def handlers_together(tap, wrong):
    """Each with the report that it has alone, whatever the others do."""
    neighbours = os.path.abspath(suite.build("neighbours.c", "neighbours.so"))
    sound, kills, empty, nothing = (neighbours + word for word in
                                    (":sound", ":kills", ":empty", ":nothing"))
    chosen = RUN + ["--run=numpy.finalises"]
    alone = {}
    for handlers, options, code in (
            ([sound, wrong, kills, empty, neighbours, "aligned", nothing, sound], [],
             NOT_CONFORMANT),
            ([sound, neighbours, "aligned"], ["--jobs=1"], CANNOT_WORK_HERE),
            (["aligned", nothing, neighbours], ["--jobs=1"], CANNOT_LOAD),
            ([sound, "aligned"], ["--repeat=3"], CONFORMANT)):
        for handler in set(handlers) - set(alone):
            suite.conform("-H", handler, *chosen, "--jobs=1", "--json=alone.json")
            with open("alone.json") as file:
                alone[handler] = told(json.load(file))
        result = suite.conform(*("--handler=" + handler for handler in handlers), *chosen,
                               *options, "--json=all.json")
        with open("all.json") as file:
            found = list(map(told, json.load(file)))
        expected = [alone[handler] for handler in handlers]
        count = sum(each[-2] == 0 for each in expected)
        held = result.code == code and not result.stderr and result.stdout.endswith(
            "\nconformant: %d of %d handlers\n" % (count, len(handlers)))
        tap.point(held and found == expected,
                  "%d handlers, %s: exit code %d" % (len(handlers), " ".join(options), code),
                  "%s\n%s\n%s" % (result, found, expected))
    result = suite.conform("-H", "aligned", "-H", "./nothing.so")
    tap.point(result.code == CANNOT_LOAD and not result.stdout, "one that is not there", result)


def main():
    tap = suite.Tap()
    with suite.scratch(enter=True):
        suite.write("neighbours.c", NEIGHBOURS)
        suite.write("wrong.c", WRONG)
        handlers_together(tap, os.path.abspath(suite.build("wrong.c", "wrong.so")))
    tap.end()


main()
