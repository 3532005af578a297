"""A worker process: reads case ids from standard input, a line each, and answers each with one line of JSON.

    python -m dovetail_conformance.running.worker '{"device": "cpu", "seed": 0, "timeout": 60}'

Its first line describes the device, or why there is none; before an answer may come what it is about to call, so
that a crash report has its call. What plugins print goes to standard error.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import signal
import sys
from typing import Any, TextIO

GRACE = 30.0  # seconds after which a worker ends itself if the runner has not stopped it at its time limit


def serve(config: dict[str, Any], requests: TextIO, answers: TextIO) -> None:
    def say(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    from ..cases import choose_profile, find
    from .execute import execute
    from .float_mode import unusual
    from .target import Target, Unavailable

    choose_profile(config.get("profile"))
    try:
        target = Target(config["device"], config.get("api", "dovetail"))
        target.announce = lambda call: say({"calling": call})
        say({"ready": target.describe()})
    except Unavailable as why:
        return say({"unavailable": str(why)})

    gc.freeze()  # cases that collect garbage need not look at the suite itself, each time
    for line in requests:
        faulthandler.dump_traceback_later(config["timeout"] + GRACE, exit=True)
        result = execute(find(line.strip()), target, config["seed"])
        faulthandler.cancel_dump_traceback_later()
        say(result._asdict() | {"lost": result.bad and (target.lost() or bool(unusual()))})
    return None


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the runner's business
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    faulthandler.enable()
    with answers:
        serve(json.loads(sys.argv[1]), sys.stdin, answers)
    sys.stdout.flush()
    os._exit(0)  # the device's exit is not part of any case


if __name__ == "__main__":
    main()
