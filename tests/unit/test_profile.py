"""dovetail.profile: the events, the table, the file, and that nothing of it stays behind."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from dovetail._profile_events import Trace
from trace_events import check, contains, names, slices

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["cpu:0", "sim:0"])
def device(request):
    return dt.device(request.param)


def operand(device):
    return dt.asarray(np.ones((4, 4), np.float32), device=device)


def process_of(events, device):
    (found,) = [
        e["pid"] for e in events if e["name"] == "process_name" and e["args"]["name"].startswith(f"{device.name} (")
    ]
    return found


def run_program(text, **variables):
    """In a process of its own; stdout."""
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=120, env={**os.environ, **variables}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_file_is_a_trace(device, tmp_path):
    path = tmp_path / "t.json"
    x = operand(device)
    with dt.profile(path) as p:
        y = x + x
        y.numpy()
    document = json.loads(path.read_text())
    assert document["traceEvents"] == json.loads(json.dumps(p.events))
    check(document["traceEvents"])
    assert names(p.events, "op") == ["add"]
    assert names(p.events, "kernel") == ["add"]
    about = document["otherData"]
    assert about["dropped_events"] == 0
    assert "clock" in about["devices"][device.name]["times"] or "events" in about["devices"][device.name]["times"]


def test_kernels_lie_on_the_devices_tracks_and_in_the_block(device):
    x = operand(device)
    with dt.profile() as p:
        begin = time.monotonic_ns()
        for _ in range(5):
            x = dt.exp(x) + 1.0
        device.synchronize()
        length = (time.monotonic_ns() - begin) / 1e3
    check(p.events)
    kernels = slices(p.events, "kernel")
    assert len(kernels) == 10
    assert {e["pid"] for e in kernels} == {process_of(p.events, device)}
    assert {e["args"]["times"] for e in kernels} == {"host" if device.name == "cpu:0" else "device"}
    ops = sorted(slices(p.events, "op"), key=lambda e: e["ts"])
    for op, kernel in zip(ops, sorted(kernels, key=lambda e: e["ts"])):
        assert op["name"] == kernel["name"]
        assert op["ts"] <= kernel["ts"]
    last = max(e["ts"] + e["dur"] for e in kernels)
    assert last <= length + (slices(p.events, "op")[0]["ts"]) + 1e6  # in the block, not years away
    assert last <= (p._trace._end - p._trace._begin) / 1e3


def test_the_nodes_of_a_decomposition_are_nested():
    x = operand(dt.device("sim:0"))
    with dt.profile() as p:
        dt.nn.log_softmax(x)
    check(p.events)
    (outer,) = [e for e in slices(p.events, "op") if e["name"] == "log_softmax"]
    inner = [e for e in slices(p.events, "op") if e is not outer]
    assert {"exp", "subtract"} <= {e["name"] for e in inner}
    assert all(contains(outer, e) and e["tid"] == outer["tid"] for e in inner)
    rows = {row["op"]: row for row in p.summary().rows}
    assert rows["log_softmax"]["depth"] == 0 and rows["exp"]["depth"] == 1
    below = sum(row["device"] for row in p.summary().rows if row["depth"] == 1)
    assert rows["log_softmax"]["device"] == pytest.approx(below)


def test_copies_have_directions_and_bytes():
    sim = dt.device("sim:0")
    with dt.profile() as p:
        x = dt.asarray(np.ones(100, np.float32), device="sim:0")
        x.numpy()
        x.to_device("cpu:0")
    check(p.events)
    calls = [e for e in slices(p.events, "copy") if e["pid"] == 1]
    work = [e for e in slices(p.events, "copy") if e["pid"] != 1]
    expected = ["copy host to sim:0", "copy sim:0 to host", "copy sim:0 to host"]
    assert [e["name"] for e in calls] == [e["name"] for e in work] == expected
    assert {e["pid"] for e in work} == {process_of(p.events, sim)}
    assert {e["args"]["bytes"] for e in work} == {400}


def test_bytes_in_use_return_to_where_they_were(device):
    operand(device)
    before = dt.memory.stats(device)["in_use"]
    with dt.profile() as p:
        kept = [dt.full((1000,), 1.0, dtype=dt.float32, device=device) for _ in range(3)]
        kept.append(kept[0] + kept[1])
        inside = dt.memory.stats(device)["in_use"]
        del kept
    check(p.events)
    counts = [e["args"]["bytes"] for e in p.events if e["ph"] == "C" and e["pid"] == process_of(p.events, device)]
    assert counts[0] == counts[-1] == before
    assert max(counts) >= inside >= before + 4 * 4000
    marks = [e for e in p.events if e["ph"] == "i"]
    taken = [e["args"]["bytes"] for e in marks if e["name"] == "allocate"]
    returned = [e["args"]["bytes"] for e in marks if e["name"] == "free"]
    assert sum(taken) == sum(returned) > 0
    assert p.summary().peak_bytes[device.name] == max(counts)


def test_two_streams_overlap():
    """The simulated device sleeps for 20 ms before each kernel."""
    events = json.loads(
        run_program(
            """
import json, dovetail as dt
x = dt.full((4, 4), 1.0, dtype=dt.float32, device="sim:0")
streams = [dt.Stream("sim:0"), dt.Stream("sim:0")]
with dt.profile() as p:
    for _ in range(4):
        for stream in streams:
            with stream:
                x + x
print(json.dumps(p.events))
""",
            DOVETAIL_SIM_LATENCY_US="20000",
        )
    )
    check(events)
    kernels = slices(events, "kernel")
    tracks = sorted({e["tid"] for e in kernels})
    assert len(kernels) == 8 and len(tracks) == 2
    one, two = ([e for e in kernels if e["tid"] == track] for track in tracks)
    assert all(e["dur"] >= 19_000 and e["args"]["times"] == "device" for e in kernels)
    assert any(a["ts"] < b["ts"] + b["dur"] and b["ts"] < a["ts"] + a["dur"] for a in one for b in two)
    ops = slices(events, "op")
    assert max(e["ts"] for e in ops) < max(e["ts"] for e in kernels), "the host waited for each kernel"


def test_many_kernels_of_a_device_with_queues():
    """More than are read at the end: times are read on the way, too."""
    x = operand("sim:0")
    with dt.profile() as p:
        for _ in range(1000):
            x = x * 1.0
    check(p.events)
    kernels = slices(p.events, "kernel")
    assert len(kernels) == 1000 and {e["args"]["times"] for e in kernels} == {"device"}


def test_threads_have_tracks(device):
    x = operand(device)
    ready, count = threading.Barrier(4), 200

    def work():
        y = x
        ready.wait()
        for _ in range(count):
            y = y * 0.5
        done.wait()

    done = threading.Barrier(4)
    threads = [threading.Thread(target=work, name=f"worker {i}") for i in range(3)]
    with dt.profile() as p:
        for thread in threads:
            thread.start()
        ready.wait()
        done.wait()
    for thread in threads:
        thread.join()
    check(p.events)
    by_track = {}
    for e in slices(p.events, "op"):
        by_track[e["tid"]] = by_track.get(e["tid"], 0) + 1
    assert sorted(by_track.values()) == [count] * 3
    assert len(slices(p.events, "kernel")) == 3 * count
    # Threads run calls on a synchronous device themselves, and at once where these are long.
    assert len({e["tid"] for e in slices(p.events, "kernel")}) == (3 if device.name == "cpu:0" else 1)
    tracks = {e["args"]["name"] for e in p.events if e["name"] == "thread_name" and e["pid"] == 1}
    assert {f"thread worker {i}" for i in range(3)} <= tracks


def test_the_file_is_written_when_the_block_fails(device, tmp_path):
    path = tmp_path / "t.json"
    x = operand(device)
    with pytest.raises(ZeroDivisionError), dt.profile(path):
        x + x
        _ = 1 / 0
    assert names(json.loads(path.read_text())["traceEvents"], "kernel") == ["add"]
    with dt.profile() as p:  # the failed one has ended
        x + x
    assert names(p.events, "op") == ["add"]


def test_a_failing_call_is_recorded(device):
    x = operand(device)
    with dt.profile() as p, pytest.raises(ValueError, match="matmul"):
        x @ dt.full((3,), 1.0, device=device)
    check(p.events)
    assert "matmul" in names(p.events, "op")


def test_a_nested_profile_is_an_error(device, tmp_path):
    x = operand(device)
    with dt.profile() as p:
        with pytest.raises(RuntimeError, match=r"\[profile\] a profile is being recorded already"):
            dt.profile(tmp_path / "t.json").__enter__()
        x + x
    assert names(p.events, "op") == ["add"]
    assert not list(tmp_path.iterdir())


def test_the_path_is_checked_before_the_block(tmp_path):
    file = tmp_path / "file"
    file.write_text("kept")
    for path, error, cure in [
        (tmp_path / "none" / "t.json", FileNotFoundError, "create the folder first: mkdir -p"),
        (tmp_path, IsADirectoryError, "name a file, not a folder"),
        (file / "t.json", NotADirectoryError, "create the folder first"),
    ]:
        ran = False
        with pytest.raises(error, match=cure), dt.profile(path):
            ran = True
        assert not ran
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert file.read_text() == "kept"
    with dt.profile():  # none of them has left a recording open
        pass


def test_no_events_before_the_end():
    p = dt.profile()
    for look in (lambda: p.events, p.summary, lambda: p.save("t.json")):
        with pytest.raises(RuntimeError, match="must end first"):
            look()


def test_arguments():
    with pytest.raises(TypeError, match=r"write @dovetail.profile\(\) with parentheses"):
        dt.profile(lambda: None)
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="max_events: expected a positive int"):
            dt.profile(max_events=wrong)

    async def coroutine(): ...

    def generator():
        yield

    for function in (coroutine, generator):
        with pytest.raises(TypeError, match=r"use `with dovetail\.profile"):
            dt.profile()(function)


def test_decorator(device, tmp_path):
    path = tmp_path / "t.json"
    x = operand(device)

    @dt.profile(path)
    def double(y):
        """Doc."""
        return y + y

    assert double.__name__ == "double" and double.__doc__ == "Doc."
    for _ in range(2):
        path.unlink(missing_ok=True)
        np.testing.assert_array_equal(double(x).numpy(), 2)
        assert names(json.loads(path.read_text())["traceEvents"], "op") == ["add"]


def test_save_compressed(tmp_path):
    import gzip

    x = operand("cpu:0")
    with dt.profile(tmp_path / "t.json.gz") as p:
        x + x
    check(json.loads(gzip.decompress((tmp_path / "t.json.gz").read_bytes()))["traceEvents"])
    p.save(tmp_path / "again.json")
    check(json.loads((tmp_path / "again.json").read_text())["traceEvents"])


def test_dropped_events_are_counted(device):
    x = operand(device)
    with pytest.warns(RuntimeWarning, match=r"\d+ events were dropped.*max_events"), dt.profile(max_events=10) as p:
        for _ in range(50):
            x + x
    check(p.events)
    recorded = [e for e in p.events if e["ph"] in "Xi"]
    assert len(recorded) == 10
    dropped = p._trace.document()["otherData"]["dropped_events"]
    assert dropped + 10 >= 50 * 3  # op, kernel, allocation at least
    assert f"{dropped} events were dropped" in str(p.summary())


def test_summary(device):
    x = operand(device)
    with dt.profile() as p:
        for _ in range(7):
            y = dt.exp(x)
        y + y
    summary = p.summary()
    rows = {row["op"]: row for row in summary.rows}
    assert rows["exp"]["calls"] == 7 and rows["add"]["calls"] == 1
    for name in ("exp", "add"):
        spent = sum(e["dur"] for e in slices(p.events, "op") if e["name"] == name) * 1e-6
        assert rows[name]["host"] == pytest.approx(spent, abs=1e-7)
        spent = sum(e["dur"] for e in slices(p.events, "kernel") if e["name"] == name) * 1e-6
        assert rows[name]["device"] == pytest.approx(spent, abs=1e-7)
    text = str(summary)
    assert text == repr(summary)
    head, line, *_ = text.splitlines()
    assert head.split() == ["op", "calls", "host", "time", "per", "call", "device", "time"]
    assert set(line) == {"-"}
    assert len({len(row) for row in text.splitlines()[:4]}) == 1


def test_results_and_caches_are_as_without(device):
    """The caches of threads, which are closed meanwhile, open again."""
    x = operand(device)
    with dt.profile():
        y = x * 3.0
        z = y - x
    np.testing.assert_array_equal(z.numpy(), 2)
    del y, z
    before = dt.memory.stats(device)
    for _ in range(100):
        x + x
    device.synchronize()
    after = dt.memory.stats(device)
    assert after["in_use"] == before["in_use"]
    assert after["device_allocations"] - before["device_allocations"] <= 8


def test_a_device_that_is_opened_in_the_block_has_device_times():
    events = json.loads(
        run_program("""
import json, dovetail as dt
with dt.profile() as p:
    x = dt.full((4, 4), 1.0, dtype=dt.float32, device="sim:0")
    x + x
print(json.dumps(p.events))
""")
    )
    check(events)
    assert {e["args"]["times"] for e in slices(events, "kernel")} == {"device"}


def test_a_fork_does_not_write_the_parents_trace(tmp_path):
    path = tmp_path / "t.json"
    run_program(f"""
import os, dovetail as dt
x = dt.full((4, 4), 1.0, device="cpu:0")
with dt.profile({str(path)!r}):
    x + x
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
    else:
        x * x
if not child:
    os._exit(os.path.exists({str(path)!r}))
""")
    assert names(json.loads(path.read_text())["traceEvents"], "op")[-1] == "add"


def test_ctrl_c_keeps_what_was_recorded(tmp_path):
    path, hold = tmp_path / "t.json", tmp_path / "hold"
    hold.touch()
    program = f"""
import sys, dovetail as dt
x = dt.full((4, 4), 1.0, dtype=dt.float32, device="sim:0")
dt.synchronize()
with dt.profile({str(path)!r}):
    x * x
    dt.device("sim:0").synchronize()
    open({str(hold)!r}, "w").close()
    x + x
    print("ready", flush=True)
    dt.device("sim:0").synchronize()  # it never ends
"""
    hold.unlink()
    environment = {**os.environ, "DOVETAIL_SIM_FAULT": f"hold:*:{hold}"}
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True
    )
    try:
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        for _ in range(1000):
            if path.exists() and path.stat().st_size:
                break
            time.sleep(0.02)
        hold.unlink()
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert "KeyboardInterrupt" in errors
    events = json.loads(path.read_text())["traceEvents"]
    check(events)
    done = {e["name"]: e["args"].get("unfinished", False) for e in slices(events, "kernel")}
    assert done == {"multiply": False, "add": True}


def test_a_plugins_trace_lies_on_its_devices_track(tmp_path):
    source = (ROOT / "tests/abi/minimal.c").read_text()
    head = "static dvt_status add(dvt_device* d, const dvt_call* c) {\n"
    assert source.count(head) == 1
    source = source.replace(
        head,
        "#include <time.h>\nstatic uint64_t now(void) {\n  struct timespec t;\n"
        "  clock_gettime(CLOCK_MONOTONIC, &t);\n"
        "  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;\n}\n"
        + head
        + "  uint64_t begin = now();\n"
        '  host->trace(host, 0, "prepare", begin, now());\n  host->trace(host, 0, "nonsense", 1, 2);\n',
    )
    (tmp_path / "traced.c").write_text("#define _POSIX_C_SOURCE 200809L\n" + source)
    built = tmp_path / "libtraced.so"
    include = f"-I{ROOT / 'core/include'}"
    options = ["-std=c11", "-fPIC", "-shared", include]
    subprocess.run(
        [os.environ.get("CC", "cc"), *options, tmp_path / "traced.c", "-o", built], check=True, timeout=120
    )
    document = json.loads(
        run_program(f"""
import json, dovetail as dt
dt.load_backend({str(built)!r})
x = dt.asarray([1.0, 2.0], dtype=dt.float32, device="minimal:0")
with dt.profile() as p:
    x + x
print(json.dumps(p._trace.document()))
""")
    )
    events = document["traceEvents"]
    check(events)
    (traced,), (kernel,) = slices(events, "plugin"), slices(events, "kernel")
    assert traced["name"] == "prepare" and traced["pid"] == kernel["pid"] and contains(kernel, traced)
    assert document["otherData"]["plugin_events_outside_of_the_block"] == 1


def record(activity, name, begin, end, *, device=None, detail=None, stream=0, value=0, enqueued=None):
    enqueued = begin if enqueued is None else enqueued
    return (activity, name, detail, device, stream, begin, end, enqueued, 0, value, True, False)


def test_late_traces_are_found_by_correlation_id_and_overlapping_ones_are_parted():
    """As a plugin's own thread reports them. Streams number their calls on their own: ids are not unique."""
    devices = [("acme:0", "", "events", 0), ("acme:1", "", "events", 0)]
    own = [
        record("kernel", "a", 1000, 2000, device="acme:0", value=7),
        record("kernel", "b", 5000, 6000, device="acme:1", value=7),
    ]
    late = [
        record("traced", "part of b", 5100, 5900, detail="acme", value=7, stream=None),
        record("traced", "other", 5500, 6100, detail="acme", value=7, stream=None),
        record("traced", "unknown", 100, 200, detail="acme", value=9, stream=None),
    ]
    trace = Trace((0, 10_000, devices, [(1, 0, own), (2, 0, late)]), {})
    check(trace.events)
    found = {e["name"]: (e["pid"], e["tid"]) for e in slices(trace.events, "plugin")}
    acme = {
        e["args"]["name"]: e["pid"]
        for e in trace.events
        if e["name"] == "process_name" and "acme" in e["args"]["name"]
    }
    assert found["part of b"][0] == found["other"][0] == acme["acme:1"]
    assert found["part of b"][1] != found["other"][1]
    assert found["unknown"][0] == acme["acme:0"]


def test_a_device_without_timing_says_so():
    trace = Trace((0, 100, [("acme:0", "", "host", 0)], []), {})
    assert "no timing events" in trace.document()["otherData"]["devices"]["acme:0"]["times"]


def test_a_python_device_is_recorded(now):
    with dt.profile() as p:
        dt.asarray(np.ones(4, np.float32), device=now.device)
    check(p.events)
    assert len([e for e in slices(p.events, "copy") if e["pid"] == process_of(p.events, now.device)]) == 1
