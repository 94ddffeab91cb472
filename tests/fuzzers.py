# SPDX-License-Identifier: BSD-3-Clause
"""libFuzzer and AFL++ on handlers: what they find, and that what they find can be seen again.

Each has a minute at most with a mutant of handlers/faulty/deep, and some time with the allocator
that it is made of: in `make check-long` alone.
"""

import glob
import os
import shutil
import subprocess

import suite

CLANG = os.environ.get("FUZZ_CC", "clang")
AFL_CLANG, AFL = "afl-clang-fast", "afl-fuzz"
DEEP = os.path.join(suite.FAULTY, "deep.so")
SECONDS = 60
SEED = os.path.join(suite.SOURCE, "profiles", "numpy-2.5.trace")

# One that the battery goes past, spans_keeps_a_stale_hint, is found in half of the minutes only.
MUTANT, SOUND = "heap_grows_over_a_quick_one", "heap_sound"


def target(compiler, handler, output):
    """Links a handler of deep.so with what docs/fuzzing.md says."""
    handlers = os.path.join(suite.SOURCE, "handlers")
    sources = [os.path.join(handlers, "faulty", "deep", name + ".c")
               for name in (handler.partition("_")[0], "deep")]
    command = [compiler, "-std=gnu11", "-g", "-O2", "-w", "-pthread", "-fsanitize=fuzzer",
               "-iquote", handlers, "-I", handlers, "-D%s=nep49_handler" % handler]
    return subprocess.run(
        command + sources + [os.path.join(suite.SOURCE, "src", "fuzz", "fuzz_handler.c"),
                             os.path.join(suite.BUILD, "libconform-fuzz.a"), "-lz", "-o", output],
        capture_output=True, text=True, check=False)


def lib_fuzzer(program, folder):
    """What it printed, and the entries that it left."""
    os.mkdir(os.path.join(folder, "corpus"))
    result = suite.run([os.path.abspath(program), "corpus", "-seed=1",
                        "-artifact_prefix=found-", "-malloc_limit_mb=1048576", "-max_len=1024",
                        "-max_total_time=%d" % SECONDS],
                       timeout=SECONDS + 60, cwd=folder,
                       env={"CONFORM_FUZZ_TRACE": "whole.trace"})
    return result, glob.glob(os.path.join(folder, "found-*"))


def afl(program, folder):
    os.mkdir(os.path.join(folder, "seeds"))
    shutil.copy(SEED, os.path.join(folder, "seeds"))
    result = suite.run(
        [AFL, "-s", "1", "-i", "seeds", "-o", "out", "-V", str(SECONDS), "-G", "4096", "--",
         os.path.abspath(program)], timeout=SECONDS + 60, cwd=folder,
        env={"AFL_BENCH_UNTIL_CRASH": "1", "AFL_NO_UI": "1", "AFL_SKIP_CPUFREQ": "1",
             "AFL_NO_AFFINITY": "1", "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1"})
    return result, glob.glob(os.path.join(folder, "out", "default", "crashes", "id*"))


def shows_it(handler, traces):
    """Whether one of them does, with conform replay."""
    ends = [suite.conform("replay", "--handler=%s:%s" % (DEEP, handler), trace)
            for trace in traces]
    return any(end.code == suite.NOT_CONFORMANT for end in ends), "\n".join(map(str, ends))


def fuzz(tap, name, compiler, run):
    """The fuzzer finds what is wrong in the mutant, and nothing in the sound handler."""
    for handler, wrong in ((MUTANT, True), (SOUND, False)):
        with suite.scratch() as folder:
            program = os.path.join(folder, "target")
            if shutil.which(compiler) is None or target(compiler, handler, program).returncode != 0:
                tap.skip("%s on %s" % (name, handler), "no %s that links a fuzzer here" % compiler)
                continue
            result, found = run(program, folder)
            tap.point(bool(found) == wrong, "%s finds %s in %s"
                      % (name, "what is wrong" if wrong else "nothing", handler), result)
            if not found:
                continue
            # after the calls that show it, there may be bytes that are no record
            read = [suite.conform("replay", each, "--print") for each in found]
            tap.point(all("alloc(" in each.stdout for each in read),
                      "--print shows the calls of each entry", read)
            # the call that crashes is in no trace: it has those that came back
            if "==conform==" in result.stderr:
                traces = found + glob.glob(os.path.join(folder, "whole.trace"))
                tap.point(shows_it(handler, traces)[0], "replay shows it", result)


def main():
    if suite.SANITIZED:
        suite.skip_all("libconform-fuzz.a is built with sanitizers here")
    if not suite.LONG:
        suite.skip_all("fuzzers take minutes: make check-long has them")
    tap = suite.Tap()
    fuzz(tap, "libFuzzer", CLANG, lib_fuzzer)
    fuzz(tap, "AFL++", AFL_CLANG, afl)
    tap.end()


main()
