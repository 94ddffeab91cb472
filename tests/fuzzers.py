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
MUTATOR = os.path.join(suite.BUILD, "conform-afl-mutator.so")
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


def lib_fuzzer(program, folder, *options):
    """What it printed, and the entries that it left."""
    os.mkdir(os.path.join(folder, "corpus"))
    result = suite.run([os.path.abspath(program), "corpus", "-seed=1",
                        "-artifact_prefix=found-", "-malloc_limit_mb=1048576", *options],
                       timeout=SECONDS + 60, cwd=folder,
                       env={"CONFORM_FUZZ_TRACE": "whole.trace"})
    return result, glob.glob(os.path.join(folder, "found-*"))


def afl(program, folder):
    os.mkdir(os.path.join(folder, "seeds"))
    shutil.copy(SEED, os.path.join(folder, "seeds"))
    result = suite.run(
        [AFL, "-s", "1", "-i", "seeds", "-o", "out", "-V", str(SECONDS), "-G", "4096", "--",
         os.path.abspath(program)], timeout=SECONDS + 60, cwd=folder,
        env={"AFL_CUSTOM_MUTATOR_LIBRARY": os.path.abspath(MUTATOR), "AFL_BENCH_UNTIL_CRASH": "1",
             "AFL_CUSTOM_MUTATOR_ONLY": "1", "AFL_NO_UI": "1", "AFL_SKIP_CPUFREQ": "1",
             "AFL_NO_AFFINITY": "1", "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1"})
    return result, glob.glob(os.path.join(folder, "out", "default", "crashes", "id*"))


def shows_it(handler, traces):
    """Whether one of them does, with --replay."""
    ends = [suite.conform("--handler=%s:%s" % (DEEP, handler), "--replay", trace)
            for trace in traces]
    return any(end.code == suite.NOT_CONFORMANT for end in ends), "\n".join(map(str, ends))


def with_lib_fuzzer(tap):
    for handler, wrong in ((MUTANT, True), (SOUND, False)):
        with suite.scratch() as folder:
            program = os.path.join(folder, "target")
            built = target(CLANG, handler, program)
            if built.returncode != 0:
                tap.skip("libFuzzer on " + handler, "no clang with libFuzzer here")
                continue
            seconds = SECONDS if wrong else SECONDS // 4
            result, found = lib_fuzzer(program, folder, "-max_len=1024",
                                       "-max_total_time=%d" % seconds)
            tap.point(bool(found) == wrong, "libFuzzer finds %s in %s"
                      % ("what is wrong" if wrong else "nothing", handler), result)
            if found:
                shown = shows_it(handler, found + [os.path.join(folder, "whole.trace")])
                # the call that crashes is in neither: the trace has those that came back
                crashes = "==conform==" not in result.stderr
                tap.point(shown[0] or crashes, "--replay shows it", shown[1])
                printed = suite.conform("--replay", found[0], "--print")
                tap.point(printed.code == 0 and "malloc" in printed.stdout,
                          "--print shows the entry", printed)


def with_afl(tap):
    for handler, wrong in ((MUTANT, True), (SOUND, False)):
        if shutil.which(AFL) is None or shutil.which(AFL_CLANG) is None:
            tap.skip("AFL++ on " + handler, "no AFL++ here")
            continue
        with suite.scratch() as folder:
            program = os.path.join(folder, "target")
            built = target(AFL_CLANG, handler, program)
            if built.returncode != 0:
                tap.point(False, "AFL++ compiles " + handler, built.stderr)
                continue
            result, found = afl(program, folder)
            tap.point(result.code == 0 and bool(found) == wrong, "AFL++ finds %s in %s"
                      % ("what is wrong" if wrong else "nothing", handler), result)
            if found:
                read = [suite.conform("--replay", each, "--print").code for each in found]
                tap.point(set(read) == {0}, "each entry that it kept is a trace", read)


def main():
    if suite.SANITIZED:
        suite.skip_all("libconform-fuzz.a is built with sanitizers here")
    if not suite.LONG:
        suite.skip_all("fuzzers take minutes: make check-long has them")
    tap = suite.Tap()
    with_lib_fuzzer(tap)
    with_afl(tap)
    tap.end()


main()
