"""What the core recorded, as events of Chrome's trace format and as a table."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from dovetail._core import __version__

_HOST = 1  # the process of the host's threads; devices follow
_FIRST_DEVICE = 100
_TRACED = 1_000  # tracks of what plugins report, behind those of streams
_CLOCKS = {
    "run": "host clock: a call on this device is done when it returns",
    "events": "timing events of the device",
    "host": "host clock: the device has no timing events; kernels and copies show how long enqueueing took",
}


class _Record(NamedTuple):
    activity: str
    name: str
    detail: str | None  # a kernel's engine, an op's file:line in a program, a traced activity's plugin
    device: str | None
    stream: int | None
    begin: int
    end: int
    enqueued: int
    bytes: int
    value: int  # the correlation id; bytes in use
    device_time: bool
    unfinished: bool


class _Device(NamedTuple):
    name: str
    hardware: str
    clock: str
    uncertainty_ns: int


class Trace:
    def __init__(self, recorded: Any, thread_names: dict[int, str]) -> None:
        self._begin, self._end, devices, threads = recorded
        self._devices = [_Device(*device) for device in devices]
        self._threads = [[_Record(*record) for record in records] for _, _, records in threads]
        self._names = [_thread_name(number, thread_names) for number, _, _ in threads]
        self.dropped = sum(dropped for _, dropped, _ in threads)
        self._outside = 0  # activities that plugins reported with times outside of the block
        self._process = {device.name: _FIRST_DEVICE + i for i, device in enumerate(self._devices)}
        self._clock = {device.name: device.clock for device in self._devices}
        self._tracks: dict[tuple[int, int], str] = {}
        self._flows = 0
        self.events = self._make_events()

    def document(self) -> dict[str, Any]:
        devices = {
            device.name: {
                "hardware": device.hardware,
                "times": _CLOCKS[device.clock],
                "times_may_be_off_by_us": device.uncertainty_ns / 1e3,
            }
            for device in self._devices
        }
        about = {
            "dovetail": __version__,
            "program": " ".join(sys.argv),
            "clock": "monotonic clock of the host, 0 is the beginning of the block",
            "devices": devices,
            "dropped_events": self.dropped,
            "plugin_events_outside_of_the_block": self._outside,
        }
        return {"traceEvents": self.events, "displayTimeUnit": "ns", "otherData": about}

    # ---- events -----------------------------------------------------------------------------------------------

    def _make_events(self) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        traced: list[_Record] = []
        for i, records in enumerate(self._threads):
            track = i + 1
            self._tracks[_HOST, track] = self._names[i]
            for r in records:
                if r.activity in ("op", "copy_call"):
                    category = "op" if r.activity == "op" else "copy"
                    args = {"where": r.detail} if r.detail else {}  # of a node of a program
                    events.append(self._slice(r, category, _HOST, track, args))
                elif r.activity == "memory":
                    where = {"device": r.device, "bytes": abs(r.bytes)}
                    at = {"ts": self._us(r.begin), "pid": _HOST, "tid": track}
                    events.append({"name": r.name, "cat": "memory", "ph": "i", "s": "t", **at, "args": where})
                elif r.activity == "traced":
                    traced.append(r)
                else:
                    events += self._device_events(r, track)
        events += self._counters()
        events += self._traced_events(traced)
        events.sort(key=lambda e: (e["ts"], -e.get("dur", 0.0)))
        return [*self._metadata(), *events]

    def _us(self, ns: int) -> float:
        return (ns - self._begin) / 1e3

    def _slice(self, r: _Record, category: str, process: int, track: int, args: dict[str, Any]) -> dict[str, Any]:
        begin = self._us(r.begin)
        where = {"ts": begin, "dur": round(self._us(r.end) - begin, 3), "pid": process, "tid": track}
        return {"name": r.name, "cat": category, "ph": "X", **where, "args": args}

    def _device_events(self, r: _Record, host_track: int) -> Iterable[dict[str, Any]]:
        """A kernel or copy, and an arrow to it from where the host enqueued it."""
        assert r.device is not None
        process, synchronous = self._process[r.device], self._clock[r.device] == "run"
        # Several threads run calls on a synchronous device at once.
        track = host_track if synchronous else r.stream or 0
        name = "default stream" if track == 0 else f"stream {track}"
        self._tracks[process, track] = f"run by {self._names[host_track - 1]}" if synchronous else name
        args: dict[str, Any] = {"times": "device" if r.device_time else "host"}
        if r.detail:
            args["engine"] = r.detail
        if r.activity == "copy":
            args["bytes"] = r.bytes
        if r.value:
            args["correlation"] = r.value
        if r.unfinished:
            args |= {"unfinished": True}
        yield self._slice(r, r.activity, process, track, args)
        if synchronous:
            return
        self._flows += 1
        flow = {"name": "enqueue", "cat": "enqueue", "id": self._flows}
        yield {**flow, "ph": "s", "ts": self._us(r.enqueued), "pid": _HOST, "tid": host_track}
        yield {**flow, "ph": "f", "bp": "e", "ts": self._us(r.begin), "pid": process, "tid": track}

    def _counters(self) -> Iterable[dict[str, Any]]:
        memory = sorted((r for rs in self._threads for r in rs if r.activity == "memory"), key=lambda r: r.begin)
        started = set()
        for r in memory:
            assert r.device is not None
            counter = {"name": "bytes in use", "cat": "memory", "ph": "C", "pid": self._process[r.device], "tid": 0}
            if r.device not in started:
                started.add(r.device)
                yield {**counter, "ts": 0.0, "args": {"bytes": r.value - r.bytes}}
            yield {**counter, "ts": self._us(r.begin), "args": {"bytes": r.value}}

    def _traced_events(self, traced: list[_Record]) -> Iterable[dict[str, Any]]:
        """What plugins report, below the streams of their device: one track, and more where activities overlap."""
        calls: dict[int, list[_Record]] = {}
        for records in self._threads:
            for r in records:
                if r.activity == "kernel" and r.value:
                    calls.setdefault(r.value, []).append(r)
        ends: dict[int, list[list[int]]] = {}  # per process and track: the ends of the activities that are open
        for r in sorted(traced, key=lambda r: (r.begin, -r.end)):
            if r.begin < self._begin or r.end > self._end:
                self._outside += 1
                continue
            device = self._device_of(r, calls.get(r.value, []))
            process = self._process.get(device or "", _HOST)
            lane = _lane(ends.setdefault(process, []), r)
            self._tracks[process, _TRACED + lane] = f"traced by {r.detail}" + (f", {lane + 1}" if lane else "")
            args = {"correlation": r.value} if r.value else {}
            yield self._slice(r, "plugin", process, _TRACED + lane, args)

    def _device_of(self, r: _Record, calls: list[_Record]) -> str | None:
        if r.device is not None:
            return r.device
        own = [d.name for d in self._devices if d.name.rpartition(":")[0] == r.detail]
        # Streams number their calls on their own: of several with this id, the one that it overlaps longest.
        best = max(
            (c for c in calls if c.device in own or not own),
            key=lambda c: min(c.end, r.end) - max(c.begin, r.begin),
            default=None,
        )
        return best.device if best else own[0] if own else None

    def _metadata(self) -> Iterable[dict[str, Any]]:
        def about(process: int, track: int, what: str, **args: Any) -> dict[str, Any]:
            return {"name": what, "ph": "M", "ts": 0.0, "pid": process, "tid": track, "args": args}

        hardware = {
            self._process[d.name]: f"{d.name} ({d.hardware})" if d.hardware else d.name for d in self._devices
        }
        used = {process for process, _ in self._tracks} | {
            self._process[r.device] for records in self._threads for r in records if r.device
        }
        for process in sorted(used | {_HOST}):
            yield about(process, 0, "process_name", name=hardware.get(process, f"host, process {os.getpid()}"))
            yield about(process, 0, "process_sort_index", sort_index=process)
        for (process, track), name in sorted(self._tracks.items()):
            yield about(process, track, "thread_name", name=name)
            yield about(process, track, "thread_sort_index", sort_index=track)

    # ---- the table --------------------------------------------------------------------------------------------

    def summary(self) -> Summary:
        root = _Node("")
        for records in self._threads:
            _collect(root, records)
        peaks: dict[str, int] = {}
        for records in self._threads:
            for r in records:
                if r.activity == "memory" and r.device:
                    peaks[r.device] = max(peaks.get(r.device, 0), r.value)
        return Summary(root, (self._end - self._begin) / 1e9, peaks, self.dropped)


def _thread_name(number: int, names: dict[int, str]) -> str:
    name = names.get(number, "")
    return "main thread" if name == "MainThread" else f"thread {name or number}"


def _lane(lanes: list[list[int]], r: _Record) -> int:
    """The first track on which the activity lies inside, or behind, all others."""
    for i, ends in enumerate(lanes):
        while ends and ends[-1] <= r.begin:
            ends.pop()
        if not ends or r.end <= ends[-1]:
            ends.append(r.end)
            return i
    lanes.append([r.end])
    return len(lanes) - 1


class _Node:
    """The calls of one name below the calls of another."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = self.host = self.device = 0
        self.below: dict[str, _Node] = {}

    def child(self, name: str) -> _Node:
        return self.below.setdefault(name, _Node(name))


def _collect(root: _Node, records: list[_Record]) -> None:
    """Puts each call below the call that it lies in; device time counts for all calls around it."""
    timed = [(r, i) for i, r in enumerate(records) if r.activity in ("op", "copy_call", "kernel", "copy")]
    # A call around another one is recorded later.
    timed.sort(key=lambda x: (x[0].enqueued, -x[0].end if x[0].activity in ("op", "copy_call") else 0, -x[1]))
    path: list[tuple[int, _Node]] = []
    for r, _ in timed:
        while path and path[-1][0] < r.enqueued:
            path.pop()
        if r.activity in ("op", "copy_call"):
            node = (path[-1][1] if path else root).child(r.name)
            node.calls += 1
            node.host += r.end - r.begin
            path.append((r.end, node))
            continue
        for _, node in path or [(0, root.child(r.name))]:
            node.device += r.end - r.begin


class Summary:
    """Ops by host time; those that an op's decomposition calls are indented below it.

    rows: one dict per line with op, depth, calls, host and device (seconds, which include the lines below).
    """

    def __init__(self, root: _Node, seconds: float, peaks: dict[str, int], dropped: int) -> None:
        self.rows: list[dict[str, Any]] = []
        self.seconds, self.peak_bytes, self.dropped_events = seconds, peaks, dropped
        self._add(root, 0)

    def _add(self, node: _Node, depth: int) -> None:
        for below in sorted(node.below.values(), key=lambda n: (-n.host, -n.device, n.name)):
            times = {"host": below.host / 1e9, "device": below.device / 1e9}
            self.rows.append({"op": below.name, "depth": depth, "calls": below.calls, **times})
            self._add(below, depth + 1)

    def __str__(self) -> str:
        columns = ["op", "calls", "host time", "per call", "device time"]
        top = [row for row in self.rows if not row["depth"]]
        table = [columns]
        for row in self.rows:
            calls = row["calls"]
            each = _duration(row["host"] / calls) if calls else ""
            name = "  " * row["depth"] + row["op"]
            table.append([name, str(calls), _duration(row["host"]), each, _duration(row["device"])])
        host, device = sum(row["host"] for row in top), sum(row["device"] for row in top)
        table.append(["total", str(sum(row["calls"] for row in top)), _duration(host), "", _duration(device)])
        widths = [max(len(line[i]) for line in table) for i in range(len(columns))]
        lines = [
            "  ".join(
                cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(zip(line, widths))
            )
            for line in table
        ]
        lines.insert(1, "-" * len(lines[0]))
        lines.insert(-1, "-" * len(lines[0]))
        lines.append(f"the block took {_duration(self.seconds)}")
        lines += [f"{device}: at most {_bytes(count)} in use" for device, count in sorted(self.peak_bytes.items())]
        if self.dropped_events:
            lines.append(f"{self.dropped_events} events were dropped and do not count here: see max_events")
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__


def _duration(seconds: float) -> str:
    for factor, unit in ((1e6, "us"), (1e3, "ms")):
        if seconds * factor < 1000:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds:.2f} s"


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
