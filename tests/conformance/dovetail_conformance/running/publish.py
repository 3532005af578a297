"""The end of a run: its results are written, then printed."""

from __future__ import annotations

import sys
from typing import Any

from ..reporting import performance
from ..reporting.baseline import difference
from ..reporting.document import as_text, document
from ..reporting.live import Live
from ..reporting.write_report import write, write_report
from ..submission.package import package
from .conclusion import INTERRUPTED, MET, NOT_MET, NOT_WRITTEN, UNAVAILABLE, Conclusion
from .journal import Journal
from .options import STDOUT, Options
from .pool import DeviceUnavailable


def publish(conclusion: Conclusion, run: dict[str, Any], live: Live, stopped: BaseException | None = None,
            journal: Journal | None = None) -> int:  # fmt: skip
    """The exit code."""
    if isinstance(stopped, DeviceUnavailable) and not conclusion.description:
        print(f"Error: {stopped}", file=sys.stderr)
        conclusion.options.remove_empty_folder()
        return UNAVAILABLE
    say = live.say
    content = document_of(conclusion, run) if conclusion.description else None
    written, failures = _write(conclusion, content)
    if conclusion.performance:
        timed = [conclusion.results[c.id] for c in conclusion.plan.timed]
        for line in performance.lines(conclusion.performance["ceilings"], timed):
            say(line)
    if content and conclusion.baseline:
        for line in difference(conclusion.baseline, content).lines():
            say(line)
    for line in conclusion.lines(run["seconds"], content["undeclared"] if content else []):
        say(line)
    if isinstance(stopped, DeviceUnavailable):
        say(f"Error: the device was lost on the way: {stopped}", "red")
    elif stopped:
        say(f"stopped by {run['stopped_by']}")
    for failure in failures:
        say(f"Error: {failure}", "red")
    if written:
        say(f"report: {written}")
        if journal:
            journal.remove()
        if stopped:
            say(f"what is missing can still be run: give --resume {conclusion.options.folder} too")
    code = conclusion.exit_code
    say(conclusion.level["text"], "green" if code == MET else "red")
    if content and conclusion.options.package:
        failures += _submit(conclusion.options, content, live)
    if isinstance(stopped, DeviceUnavailable):
        return UNAVAILABLE
    if stopped:
        return INTERRUPTED if isinstance(stopped, KeyboardInterrupt) else NOT_MET
    return code or (NOT_WRITTEN if failures else MET)


def document_of(conclusion: Conclusion, run: dict[str, Any]) -> dict[str, Any]:
    content = document(
        [(case, conclusion.results[case.id]) for case in conclusion.plan.cases],
        run=run,
        description=dict(conclusion.description),
        level=conclusion.level,
        replay=conclusion.options.replay,
        waivers=conclusion.waivers,
        performance=conclusion.performance,
    )
    if conclusion.baseline:
        content["baseline"] = difference(conclusion.baseline, content).as_dict()
    return content


def _write(conclusion: Conclusion, content: dict[str, Any] | None) -> tuple[str | None, list[str]]:
    """The report's folder, and the files that could not be written."""
    if content is None:
        return None, []
    file, folder = conclusion.options.json_file, conclusion.options.folder
    written, failures = None, []
    try:
        if file == STDOUT:
            sys.stdout.write(as_text(content))
        elif file:
            write(file, as_text(content))
    except OSError as error:
        failures.append(f"{file} could not be written: {error.strerror}")
    try:
        if folder:
            written = str(write_report(folder, content, content.get("baseline")))
    except OSError as error:
        failures.append(f"the report could not be written: {error.filename or folder}: {error.strerror}")
    return written, failures


def _submit(options: Options, content: dict[str, Any], live: Live) -> list[str]:
    """Writes the submission package; returns the error, if any."""
    file = options.package
    assert file
    if content["level"]["reached"] is None or not content["run"]["complete"]:
        live.say(f"{file} was not written: there is no level to show", "red")
        return []
    try:
        file.write_bytes(package(content, "\n".join(live.log) + "\n", options.submitter))
    except OSError as error:
        live.say(f"Error: {file} could not be written: {error.strerror}", "red")
        return [str(file)]
    live.say(f"package: {file}, for dovetail verify")
    return []
