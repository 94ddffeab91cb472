# SPDX-License-Identifier: BSD-3-Clause
"""python3 -m conform_report --html=page.html --junit=tests.xml report.json"""

import argparse
import importlib
import json
import os
import signal
import sys

if not __package__:  # conform runs this folder, which must not hide modules of Python
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from conform_report import model  # noqa: E402

# The modules of the formats.  To import all of them would take longer than to make one.
FORMATS = {"badge": "badge", "bundle": "bundle", "github": "github", "html": "page",
           "junit": "junit", "markdown": "markdown", "tap": "tap"}
ONE_REPORT = "bundle", "junit", "tap"


def module(name):
    return importlib.import_module("conform_report." + name)


def write(path, made):
    data = made if isinstance(made, bytes) else made.encode()
    with open(path if path != "-" else sys.stdout.fileno(), "wb", closefd=path != "-") as file:
        file.write(data)


def make_formats(options, reports):
    """Makes all formats before it writes the first of them."""
    made = {name: b"" for name in FORMATS if getattr(options, name)}
    for name in made:
        if name in ONE_REPORT and len(reports) != 1:
            raise model.Invalid("--%s is of one report, and there are %d" % (name, len(reports)))
        more = [options.with_handler] if name == "bundle" else []
        made[name] = module(FORMATS[name]).render(reports, *more)
    for name in made:
        path = getattr(options, name)
        try:
            write(path, made[name])
        except OSError as error:
            words = "--%s=%s: cannot be written: %s; name another file"
            raise model.Invalid(words % (name, path, error.strerror)) from None


def read_reports(paths):
    """The reports of all files, each with the name of its file and a summary that fits it."""
    reports = []
    for path in paths:
        for number, report in enumerate(model.load(path), 1):
            try:
                model.check_summary(report)
            except model.Invalid as error:
                raise model.Invalid("%s: report %d: %s" % (path, number, error)) from None
            reports.append({**report, "from": os.path.basename(path)})
    return reports


def baseline(path):
    reports = model.load(path)
    if len(reports) > 1:
        raise model.Invalid("--baseline=%s: has several reports; say conform compare" % path)
    return reports


def answer(options):
    """What conform asks for, as JSON: a comparison or waivers."""
    if options.waivers:
        return module("waivers").read(options.waivers)
    if not options.run:
        return len(baseline(options.baseline))
    found = module("compare").Comparison(baseline(options.baseline), model.load("-"),
                                         options.strict)
    text = found.text(options.baseline, options.quiet)
    return {"baseline": found.json(options.baseline), "text": text, "status": found.status}


def run(options):
    if options.bench and not options.html:
        module("bench_page").show(json.load(sys.stdin))
    elif options.bench:
        write(options.html, module("bench_page").render(json.load(sys.stdin)))
    elif options.answer:
        write(options.answer, json.dumps(answer(options)))
    elif options.verify:
        return module("bundle").verify(options.reports, options.quiet)
    elif options.compare:
        old, new = options.reports
        found = module("compare").Comparison(model.load(old), model.load(new), options.strict)
        print(found.text(old, options.quiet), end="")
        return found.status if options.fail_on_new else model.CONFORMANT
    else:
        make_formats(options, model.load("-") if options.run else read_reports(options.reports))
    return model.CONFORMANT


def main():
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    parser = argparse.ArgumentParser(prog="conform_report", description=__doc__)
    parser.add_argument("reports", nargs="*", help="files that --json wrote")
    for name in FORMATS:
        parser.add_argument("--" + name, metavar="FILE")
    parser.add_argument("--compare", action="store_true", help="OLD with NEW")
    parser.add_argument("--verify", action="store_true", help="the files are bundles")
    for name in ("quiet", "strict", "fail-on-new"):
        parser.add_argument("--" + name, action="store_true")
    # What conform itself gives, with the report of a run on stdin.
    for name in ("run", "with-handler", "bench"):
        parser.add_argument("--" + name, action="store_true", help=argparse.SUPPRESS)
    for name in ("baseline", "waivers", "answer"):
        parser.add_argument("--" + name, metavar="FILE", help=argparse.SUPPRESS)
    try:
        status = run(parser.parse_args())
        sys.stdout.flush()
        return status
    except model.Invalid as error:
        print("conform: " + model.clean(str(error)), file=sys.stderr)
        return model.USAGE
    except OSError as error:
        print("conform: stdout cannot be written: %s" % error.strerror, file=sys.stderr)
        os._exit(model.BROKE)
    except Exception:
        sys.excepthook(*sys.exc_info())
        return model.BROKE


if __name__ == "__main__":
    sys.exit(main())
