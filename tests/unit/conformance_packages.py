"""Submission packages of made-up runs."""

import gzip
import io
import json
import re
from dataclasses import replace

import dovetail
import pytest
from conformance_small_run import DESCRIPTION, RUN
from dovetail_conformance.reporting.document import document
from dovetail_conformance.results import Result, Status
from dovetail_conformance.running.options import Options
from dovetail_conformance.running.plan import plan
from dovetail_conformance.submission import Refused, derived, package
from dovetail_conformance.submission import verify as verifier
from dovetail_conformance.submission.wheels import SUITE, WHEEL, Wheel, digest, parts


def made(level="L0", statuses=None, waivers=(), groups=None):
    """The results of a made-up run, with `statuses` of some groups, or of `groups` alone."""
    options = Options(device="x:0", level=level, seed=RUN["seed"], no_report=True)
    whole = plan(options)
    if groups:
        whole = of_groups(whole, groups)
    found = []
    for case in whole.cases:
        status = (statuses or {}).get(case.group, Status.PASS)
        exact = {"tol": 0.0, "ulp": 0.0, "errors": [5, *9 * [0]]} if case.op else {}
        why = "" if status is Status.PASS else "it did not\nwork"
        found.append((case, Result(case.id, status, 0.125, why, exact)))
    content = document(
        found,
        run=RUN | options.record() | whole.record(),
        description=DESCRIPTION | {"dovetail": dovetail.__version__},
        replay=options.replay,
        waivers=[w.as_dict() | {"state": "unused", "cases": [], "passed": [], "refused": []} for w in waivers],
        level={"reached": None, "asked": level, "profile": None, "text": ""},
    )
    return json.loads(json.dumps(derived.derived(content, whole)))


def of_groups(whole, groups):
    few = [case for case in whole.cases if case.group in groups]
    return replace(whole, demanded=few, cases=few)


def wheels(content):
    files = [{f"{part.partition(' ')[0]}/a.so": "0" * 64} for part in parts(content)]
    versions = [content["dovetail"], content["run"]["suite"], *["2.0"] * len(files)]
    return [
        Wheel(part, "a-wheel", v, WHEEL if part != SUITE else "development", "", digest(f), f)
        for part, v, f in zip(parts(content), versions, files)
    ]


def log(content):
    return "\n".join([*(c["replay"] for c in content["cases"] if "replay" in c), content["level"]["text"], ""])


def assembled(content, **changed):
    """A package of these results; the rest follows from them."""
    given = {"log": log(content), "submitter": "Acme", "wheels": wheels(content)} | changed
    return package.assemble(content, **given)


def checked(tmp_path, data):
    path = tmp_path / "p.tgz"
    path.write_bytes(data)
    return verifier.verify(path)


def refused(tmp_path, data, expected):
    with pytest.raises(Refused) as why:
        checked(tmp_path, data)
    assert re.search(expected, str(why.value)) and "\n" not in str(why.value), why.value


def compressed(tar):
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=out, mtime=0) as file:
        file.write(tar)
    return out.getvalue()
