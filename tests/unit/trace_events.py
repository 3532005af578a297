"""Chrome's trace format: what it demands of events, and how to find them."""

# The fields that Chrome's trace format requires of an event, by its phase.
REQUIRED = {
    "X": {"ts", "dur", "cat"},
    "C": {"ts", "args"},
    "i": {"ts", "s"},
    "M": {"args"},
    "s": {"ts", "id", "cat"},
}
REQUIRED["f"] = REQUIRED["s"]
METADATA = {"process_name", "process_sort_index", "thread_name", "thread_sort_index"}


def slices(events, category):
    return [e for e in events if e["ph"] == "X" and e["cat"] == category]


def names(events, category):
    return [e["name"] for e in slices(events, category)]


def contains(outer, inner):
    """Times are rounded to nanoseconds, so that their sums may differ by one."""
    begins, ends = outer["ts"] - 2e-3, outer["ts"] + outer["dur"] + 2e-3
    return begins <= inner["ts"] and inner["ts"] + inner["dur"] <= ends


def check(events):
    """Asserts what the format demands, and that slices of one track are nested or apart."""
    tracks, named, flows = {}, set(), {}
    for e in events:
        missing = ({"name", "ph", "pid", "tid"} | REQUIRED[e["ph"]]) - e.keys()
        assert not missing, (missing, e)
        assert isinstance(e["pid"], int) and isinstance(e["tid"], int) and isinstance(e["name"], str)
        if e["ph"] == "M":
            assert e["name"] in METADATA
            named.add((e["name"], e["pid"], e["tid"]))
        elif e["ph"] == "X":
            assert e["dur"] >= 0
            tracks.setdefault((e["pid"], e["tid"]), []).append(e)
        elif e["ph"] == "C":
            assert all(isinstance(value, int) and value >= 0 for value in e["args"].values())
        elif e["ph"] == "i":
            assert e["s"] in "tpg"
        else:
            flows.setdefault(e["id"], []).append(e["ph"])
    assert all(sorted(phases) == ["f", "s"] for phases in flows.values())
    for track, found in tracks.items():
        assert ("thread_name", *track) in named
        assert ("process_name", track[0], 0) in named
        open_slices = []
        for e in sorted(found, key=lambda e: (e["ts"], -e["dur"])):
            while open_slices and open_slices[-1]["ts"] + open_slices[-1]["dur"] <= e["ts"] + 2e-3:
                open_slices.pop()
            assert not open_slices or contains(open_slices[-1], e), (track, open_slices[-1], e)
            open_slices.append(e)
