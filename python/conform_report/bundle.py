# SPDX-License-Identifier: BSD-3-Clause
"""A bundle: report, list of hashes and, if wanted, the handler, in a .tar.gz; and checking one."""

import gzip
import hashlib
import io
import json
import os
import re
import tarfile
import time
import zlib

from . import markdown, model

FOLDER = "conform/"
LARGEST = 1 << 30  # bytes


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def manifest(members):
    """As sha256sum --check reads it in the bundle's folder."""
    return "".join("%s  %s\n" % (sha256(members[name]), name) for name in members).encode()


def without_times(members):
    """Leaves out what depends on how fast the machine was."""
    left_out = "seconds", "coverage", "when", "not_when"
    return {key: value for key, value in members.items() if key not in left_out}


def render(reports, with_handler=False):
    (report,) = reports
    kept = json.loads(json.dumps(report["raw"]), object_hook=without_times)
    # The same run makes the same bytes, except for addresses.
    text = re.sub("0x[0-9a-f]{8,}", "0x#", json.dumps(kept, indent=1))
    members = {"report.json": text.encode(), "report.md": markdown.render(reports).encode()}
    if with_handler:
        members["handler.so"] = model.read_file(report["subject"]["file"])
        if sha256(members["handler.so"]) != report["subject"]["sha256"]:
            raise model.Invalid("%s: changed during the run" % report["subject"]["file"])
    members["MANIFEST"] = manifest(members)
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=epoch) as stream:
        with tarfile.open(fileobj=stream, mode="w") as archive:
            for name, data in members.items():
                member = tarfile.TarInfo(FOLDER + name)
                member.size, member.mtime = len(data), epoch
                archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def read(data):
    """Returns the report of a bundle; raises Invalid if it is not as it was written."""
    try:
        unpacked = zlib.decompressobj(31).decompress(data, LARGEST)
        with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as archive:
            entries = [(one.name[len(FOLDER) :], one.isreg() and archive.extractfile(one).read())
                       for one in archive]
    except (zlib.error, tarfile.TarError, ValueError, EOFError, OSError) as error:
        raise model.Invalid("is not a bundle: %s" % error) from None
    members = dict(entries)
    if False in members.values() or len(members) < len(entries):
        raise model.Invalid("is not a bundle: it has other than plain files")
    told = members.pop("MANIFEST", b"")
    if told != manifest(members) or not {"report.json", "report.md"} <= set(members):
        raise model.Invalid("its files are not those of its MANIFEST")
    report = model.valid_report(model.load_json(members["report.json"], "report.json"))
    model.check_summary(report)
    handler = members.get("handler.so")
    if handler is not None and sha256(handler) != report["subject"]["sha256"]:
        raise model.Invalid("handler.so is not the handler that its report is about")
    return report


def missing(report):
    """Why the report is not about all properties, or None."""
    if report["interrupted"]:
        return "the run was interrupted"
    if report["quick"]:
        return "--quick leaves most properties out"
    return None if report["whole"] else "--run or --skip left properties out"


def verify(paths, quiet=False):
    """Prints what each bundle is, and returns the exit status."""
    status = model.CONFORMANT
    for path in paths:
        data = model.read_file(path)
        try:
            report = read(data)
        except model.Invalid as error:
            raise model.Invalid("%s: %s" % (path, error)) from None
        lack, properties = missing(report), len(report["properties"])
        what = "incomplete: " + lack if lack else "complete: %d properties" % properties
        print("%s: as it was written, and %s" % (path, what))
        if not quiet:
            subject, environment = report["subject"], report["environment"]
            print("  handler  %s, SHA-256 %s" % (subject["file"], subject["sha256"] or "none"))
            words = "  ran on   Python %(python)s, NumPy %(numpy)s, %(libc)s, %(kernel)s"
            print(words % environment)
            print("  by       conform %(conform)s, seed %(seed)s" % report)
            print("  result   %s" % report["conclusion"])
        status = model.worse(status, model.exit_code(report))
        status = model.worse(status, model.INCOMPLETE if lack else status)
    return status
