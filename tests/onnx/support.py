"""Writes docs/onnx_support.md, the ops of ONNX and what serves them: python tests/onnx/support.py

Counts are those of the suite's cases and not_passed.json, which test_suite.py holds to be true.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import onnx

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs/onnx_support.md"
HEAD = """# The ops of ONNX

Written by `tests/onnx/support.py`. *handler*: `dovetail.onnx` has the op, from the opsets on that stand behind it.
*function*: ONNX's own definition, whose ops are handled. Cases are those of `onnx.backend.test` with the op in
their graph, and how many of them do not pass, with the reason, on `dovetail-cpu`. On the simulated device the same
cases pass, but for those that need more than its 256 MiB.

"""


def page(cases: dict[str, Any]) -> str:
    """The page for the suite's cases by name."""
    import dovetail.onnx  # noqa: F401 - it registers the handlers
    import suite
    from dovetail.onnx import registry
    from dovetail.onnx.functions import has_function

    recorded = json.loads((HERE / "not_passed.json").read_text())
    failing = recorded["any"] | recorded["cpu:0"]
    counts: dict[tuple[str, str], int] = defaultdict(int)
    failed: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, case in cases.items():
        model, _ = suite.materialised(case)
        for op in {(registry.same_domain(n.domain), n.op_type) for n in model.graph.node}:
            counts[op] += 1
            if name in failing:
                failed[op].append(failing[name][1])
    lines = ["| op | served by | cases | not passed |", "| --- | --- | --- | --- |"]
    handled = registry.handled()
    newest: dict[tuple[str, str], int] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        key = schema.domain, schema.name
        newest[key] = max(newest.get(key, 0), schema.since_version)
    for key in sorted({*newest, *handled}, key=lambda k: (k[0], k[1])):
        domain, op = key
        if key in handled:
            since = [str(v) for v in handled[key]]
            by = "handler" + (f" ({', '.join(since)})" if since != ["1"] else "")
        else:
            by = "function" if has_function(op, newest[key], domain) else "not supported"
        why = "; ".join(f"{failed[key].count(w)}: {w}" for w in dict.fromkeys(failed[key]))
        lines.append(f"| {f'{domain}.' if domain else ''}{op} | {by} | {counts[key] or ''} | {why} |")
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    import suite

    PAGE.write_text(page(suite.cases()))
