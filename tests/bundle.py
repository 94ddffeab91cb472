# SPDX-License-Identifier: BSD-3-Clause
"""--bundle and verify: others can read a bundle, the same run makes the same bytes, and a bundle
that is not as it was written gets one line and status 2."""

import gzip
import hashlib
import io
import json
import os
import tarfile

import suite
from suite import CONFORMANT, INCOMPLETE, NOT_CONFORMANT, USAGE

EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}
FOLDER = "conform/"
PART = ["-q", "-Haligned", "--run=abi.*"]


def members_of(name):
    with tarfile.open(name) as archive:
        return {m.name[len(FOLDER):]: archive.extractfile(m).read() for m in archive}


def packed(members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, data in members.items():
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(FOLDER + name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def sealed(members, **changes):
    """With changes to the report, and a MANIFEST that fits."""
    members = {name: data for name, data in members.items() if name != "MANIFEST"}
    report = {**json.loads(members["report.json"]), **changes}
    members["report.json"] = json.dumps(report).encode()
    members["MANIFEST"] = b"".join(b"%s  %s\n" % (hashlib.sha256(data).hexdigest().encode(),
                                                  name.encode()) for name, data in members.items())
    return members


def written(tap):
    made = [suite.conform(*PART, "--bundle=%s.tar.gz" % name, env=EPOCH) for name in "ab"]
    bundles = [open("%s.tar.gz" % name, "rb").read() for name in "ab"]
    tap.point(made[0].code == CONFORMANT and bundles[0] == bundles[1],
              "the same run makes the same bytes", made)
    os.mkdir("out")
    with tarfile.open("a.tar.gz") as archive:
        archive.extractall("out")
    checked = suite.run(["sha256sum", "--check", "--strict", "MANIFEST"], cwd="out/conform")
    tap.point(checked.code == 0, "sha256sum checks the MANIFEST", checked)
    result = suite.conform(*PART, "--with-subject", "--bundle=with.tar.gz")
    handler = hashlib.sha256(members_of("with.tar.gz")["handler.so"]).hexdigest()
    report = json.loads(members_of("with.tar.gz")["report.json"])
    tap.point(handler == report["subject"]["sha256"], "--with-subject adds the handler", result)


def verified(tap):
    suite.conform("-q", "-H" + suite.FAULTY + "/faulty.so:calloc_wraps", "--run=calloc.*",
                  "--bundle=faulty.tar.gz")
    whole = packed(sealed(members_of("a.tar.gz"), whole=True))
    with open("whole.tar.gz", "wb") as file:
        file.write(whole)
    for name, code, words in (("a", INCOMPLETE, "incomplete: --run or --skip"),
                              ("with", INCOMPLETE, "incomplete"), ("whole", CONFORMANT, "complete"),
                              ("faulty", NOT_CONFORMANT, "NOT CONFORMANT")):
        result = suite.conform("verify", name + ".tar.gz")
        tap.point(result.code == code and words in result.stdout, "verify of %s" % name, result)


def refused(tap):
    members = members_of("with.tar.gz")
    link = tarfile.TarInfo(FOLDER + "link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    changed = dict(members, **{"handler.so": members["handler.so"] + b"!"})
    forged = sealed(members, conformant=False)
    other = sealed(changed)
    cases = {
        "nothing": b"", "text": b"CONFORMANT\n", "gzip": gzip.compress(b"x" * 99),
        "a changed file": packed(changed), "a forged summary": packed(forged),
        "another handler": packed(other), "a link": packed({**members, link: b""}),
        "no report": packed({"MANIFEST": b""}),
        "too large": gzip.compress(bytes(1 << 26)) * 20, "cut": packed(members)[:-100],
    }  # fmt: skip
    for name, data in cases.items():
        with open("bad.tar.gz", "wb") as file:
            file.write(data)
        result = suite.conform("verify", "bad.tar.gz")
        tap.point(result.code == USAGE and result.stderr.count("\n") == 1
                  and result.stderr.startswith("conform: bad.tar.gz: "),
                  "verify of what is not as it was written: " + name, result)
    for words in ["verify", "none"], ["verify"], [*PART, "--with-subject"]:
        result = suite.conform(*words)
        tap.point(result.code == USAGE and result.stderr.count("\n") == 1, " ".join(words), result)


def main():
    tap = suite.Tap()
    with suite.scratch(enter=True):
        written(tap)
        verified(tap)
        refused(tap)
    tap.end()


main()
