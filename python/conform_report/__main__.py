# SPDX-License-Identifier: BSD-3-Clause
"""python3 -m conform_report --html=page.html --junit=tests.xml report.json"""

import argparse
import functools
import json
import os
import signal
import sys
import tempfile
import traceback

if not __package__:  # conform runs this folder, which must not hide modules of Python
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from conform_report import (
    badge,
    bench,
    bench_page,
    bundle,
    compare,
    junit,
    markdown,
    matrix,
    model,
    page,
    tap,
    waivers,
)

FORMATS = {
    "badge": badge.render,
    "bundle": bundle.render,
    "html": page.render,
    "junit": junit.render,
    "markdown": markdown.render,
    "tap": tap.render,
}
ONE_REPORT = "bundle", "junit", "tap"


def write(path, data):
    """Writes the file as a whole or not at all; descriptors and devices directly."""
    if path == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    elif path.startswith("/dev/fd/") or (os.path.exists(path) and not os.path.isfile(path)):
        with open(path, "wb") as file:
            file.write(data)
    else:
        path = os.path.realpath(path)
        fd, draft = tempfile.mkstemp(prefix=".conform-", dir=os.path.dirname(path))
        try:
            with open(fd, "wb") as file:
                file.write(data)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(draft, os.stat(path).st_mode if os.path.exists(path) else 0o666 & ~mask)
            os.replace(draft, path)
        except BaseException:
            os.unlink(draft)
            raise


def make_formats(options, reports):
    chosen = {name: getattr(options, name) for name in FORMATS if getattr(options, name)}
    for name in ONE_REPORT:
        if name in chosen and len(reports) != 1:
            raise model.Invalid("--%s is of one report, and there are %d" % (name, len(reports)))
    as_bundle = functools.partial(bundle.render, with_handler=options.with_handler)
    make = {**FORMATS, "bundle": as_bundle}
    made = {name: make[name](reports) for name in chosen}
    for name, path in chosen.items():
        try:
            write(path, made[name] if isinstance(made[name], bytes) else made[name].encode())
        except OSError as error:
            words = "--%s=%s: cannot be written: %s; name another file"
            raise model.Invalid(words % (name, path, error.strerror)) from None


def read_reports(paths):
    """The reports of all files, each with the name of its file and a summary that fits it."""
    reports = []
    for path in paths:
        for number, report in enumerate(model.load(path), 1):
            try:
                if not report["error"]:
                    model.check_summary(report)
            except model.Invalid as error:
                raise model.Invalid("%s: report %d: %s" % (path, number, error)) from None
            reports.append({**report, "from": os.path.basename(path)})
    return reports


def baseline(path):
    reports = model.load(path)
    if len(reports) > 1:
        raise model.Invalid("--baseline=%s: has several reports, which --compare takes" % path)
    return reports


def answer(options):
    """What conform asks for, as JSON: a comparison, a table, or waivers."""
    if options.waivers:
        return waivers.read(options.waivers)
    if not options.run:
        return len(baseline(options.baseline))
    reports = model.load("-")
    if options.matrix:
        return matrix.answer(reports, options.verbose)
    found = compare.Comparison(baseline(options.baseline), reports, options.strict)
    text = found.text(options.baseline, options.quiet)
    return {"baseline": found.json(options.baseline), "text": text, "status": found.status}


def run(options):
    if options.bench:
        write(options.bench, json.dumps(bench.run(json.load(sys.stdin))).encode())
        return model.CONFORMANT
    if options.benched:
        write(options.html, bench_page.render(json.load(sys.stdin)).encode())
        return model.CONFORMANT
    if options.verify:
        return bundle.verify(options.reports, options.quiet)
    if options.compare:
        old, new = options.reports
        found = compare.Comparison(model.load(old), model.load(new), options.strict)
        print(found.text(old, options.quiet), end="")
        return found.status if options.fail_on_new else model.CONFORMANT
    if options.answer:
        write(options.answer, json.dumps(answer(options)).encode())
        return model.CONFORMANT
    reports = model.load("-") if options.run else read_reports(options.reports)
    make_formats(options, reports)
    return model.CONFORMANT


def main(arguments=None):
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    parser = argparse.ArgumentParser(prog="conform_report", description=__doc__)
    parser.add_argument("reports", nargs="*", help="files that --json wrote")
    for name in FORMATS:
        parser.add_argument("--" + name, metavar="FILE")
    parser.add_argument("--bench", metavar="FILE", help="measure as stdin says, write this JSON")
    parser.add_argument("--benched", action="store_true", help="that JSON is on stdin")
    parser.add_argument("--run", action="store_true", help="the report of a run is on stdin")
    parser.add_argument("--verify", action="store_true", help="the files are bundles")
    parser.add_argument("--compare", action="store_true", help="OLD with NEW")
    parser.add_argument("--with-handler", action="store_true", help="put it into the bundle")
    for name in ("quiet", "verbose", "strict", "fail-on-new", "matrix"):
        parser.add_argument("--" + name, action="store_true")
    for name in ("baseline", "waivers", "answer"):
        parser.add_argument("--" + name, metavar="FILE", help=argparse.SUPPRESS)
    try:
        status = run(parser.parse_args(arguments))
        sys.stdout.flush()
        return status
    except model.Invalid as error:
        print("conform: " + model.clean(str(error)), file=sys.stderr)
        return model.USAGE
    except OSError as error:
        print("conform: stdout cannot be written: %s" % error.strerror, file=sys.stderr)
        os._exit(model.BROKE)
    except Exception:
        traceback.print_exc()
        return model.BROKE


if __name__ == "__main__":
    sys.exit(main())
