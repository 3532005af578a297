"""--merge: the shards of a run, put together to a level."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from ..levels.waivers import Waivers
from ..reporting.live import Live
from ..results import Result, Status
from . import journal
from .conclusion import Conclusion, several
from .journal import Earlier
from .options import STDOUT, Options, UsageError
from .plan import plan, read_waivers
from .publish import publish
from .shard import Shard


def merge(options: Options, paths: Sequence[Path]) -> int:
    """Reports on the shards as a run of all cases does; the exit code. `options` have the folder to write to."""
    parts = [journal.read(path) for path in paths]
    _expect_all_shards(paths, parts)
    options = _as_asked(options, parts[0])
    whole = plan(options)
    expected = options.record() | whole.record()
    for path, part in zip(paths, parts):
        journal.expect_same(f"--merge {path}", part.run, expected, [k for k in journal.SAME_RUN if k != "shard"])
        journal.expect_same_device(f"--merge {path}", part.description, parts[0].description)
    options.make_folder()
    description = parts[0].description
    backend = description["backend"]
    waivers = Waivers(read_waivers(options), backend["name"], backend["version"], date.today())
    found = {id: result for part in parts for id, result in part.results.items()}
    results: dict[str, Result] = {}
    with Live(len(whole.cases), options.replay, sys.stderr if options.json_file == STDOUT else sys.stdout) as live:
        live.begin(f"{options.device}: {several(len(parts), 'shard')}, {several(len(whole.cases), 'case')}", list)
        for case in whole.cases:
            results[case.id] = waivers.apply(case, found.get(case.id, Result(case.id, Status.NOT_RUN)))
            live.show(results[case.id])
    conclusion = Conclusion(options, whole, results, description, waivers.report(whole.cases, results))
    return publish(conclusion, expected | _run_record(parts), live)


def _expect_all_shards(paths: Sequence[Path], parts: list[Earlier]) -> None:
    if not parts:
        raise UsageError(
            "--merge: name the folders of all shards: dovetail conform --merge dovetail-report/shard-*"
        )
    shards: dict[Shard, Path] = {}
    for path, part in zip(paths, parts):
        if not part.run["shard"]:
            raise UsageError(f"--merge {path}: that run was not a shard: name results of --shard I/N")
        shard = Shard.parse(part.run["shard"])
        if shard in shards:
            raise UsageError(f"--merge: {shards[shard]} and {path} are both shard {shard}: leave one out")
        shards[shard] = path
    counts = {shard.of for shard in shards}
    if len(counts) > 1:
        numbers = " and ".join(f"/{n}" for n in sorted(counts))
        raise UsageError(f"--merge: shards of {numbers} do not make one run: name those of one --shard I/N")
    n = counts.pop()
    if missing := [str(Shard(i, n)) for i in range(1, n + 1) if Shard(i, n) not in shards]:
        raise UsageError(f"--merge: shard {', '.join(missing)} is missing: run it with --shard {missing[0]}")


def _as_asked(options: Options, part: Earlier) -> Options:
    """The options of one run of everything."""
    run = part.run
    given: dict[str, Any] = {
        key: run[key] for key in ("level", "quick", "profile", "expression", "seed", "timeout")
    }
    return replace(options, device=part.description["device"]["name"], cases=tuple(run["cases"]), **given)


def _run_record(parts: list[Earlier]) -> dict[str, Any]:
    runs = [part.run for part in parts]
    return {
        "workers": max(run["workers"] for run in runs),
        "started": min(run["started"] for run in runs),
        "seconds": round(sum(run["seconds"] for run in runs), 3),
        "complete": all(run["complete"] for run in runs),
        "stopped_by": next(filter(None, (run["stopped_by"] for run in runs)), None),
        "system": runs[0]["system"],
    }
