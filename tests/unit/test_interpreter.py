"""Dovetail and the interpreter around it: the GIL, subinterpreters, Ctrl-C and the process's end. Failures here
crash or hang the process, so every program has a process of its own.
"""

import os
import shutil
import subprocess
import sys
import textwrap

import dovetail as dt
import pytest

DEVICES = list(dict.fromkeys([dt.default_device().backend, *(d.backend for d in dt.devices())]))


def run(program, *, device=None, timeout=60, **variables):
    given = os.environ | ({"DOVETAIL_DEVICE": device} if device else {}) | variables
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=given,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.mark.parametrize("device", DEVICES)
def test_the_process_ends_while_daemon_threads_read(device):
    """A thread must not wait for the ending interpreter with a stream's lock held."""
    program = """
        import threading, time
        import dovetail as dt

        a = dt.random.normal((200, 200))
        started = threading.Semaphore(0)

        def read():
            while True:
                float(dt.sum(a @ a))
                started.release()

        def download():
            stream = dt.Stream()
            while True:
                with stream:
                    a[a > 1.0].tolist()

        for _ in range(6):
            threading.Thread(target=read, daemon=True).start()
        threading.Thread(target=download, daemon=True).start()
        for _ in range(12):
            started.acquire()
    """
    for _ in range(3):
        ended = run(program, device=device)
        assert ended.returncode == 0, ended.stderr


SUBINTERPRETER = """
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        import _interpreters as interpreters

    def subinterpreter():
        interpreters.destroy(interpreters.create())
"""


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_had_a_subinterpreter(device, when):
    """Loading a backend and waiting for the lock of a busy stream both release the GIL."""
    use = """
    import threading
    import dovetail as dt

    def work():
        x = dt.ones((64, 64))
        for _ in range(50):
            assert float(dt.sum(x @ x)) == 64**3

    def use():
        threads = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in threads], [t.join() for t in threads]
        dt.synchronize()
    """
    order = ["subinterpreter()", use, "use()"] if when == "before" else [use, "use()", "subinterpreter()", "use()"]
    program = "\n".join(map(textwrap.dedent, [SUBINTERPRETER, *order, "print('done')"]))
    ended = run(program, device=device)
    assert ended.returncode == 0 and "done" in ended.stdout, ended.stderr


def test_no_method_takes_none_for_its_object():
    """Call every method and property of every class with None for self and for its arguments."""
    ended = run("""
        from dovetail import _core
        import dovetail as dt

        dt.devices()
        tried = 0
        for cls in [c for c in vars(_core).values() if isinstance(c, type)]:
            for name, member in vars(cls).items():
                function = member.fget if isinstance(member, property) else member
                if not callable(function) or name in ("__new__", "_make", "__init_subclass__", "__module__"):
                    continue
                for n in (0, 1, 2, 3):
                    print(cls.__name__, name, n, flush=True)  # the last one is at fault
                    tried += 1
                    try:
                        function(None, *[None] * n)
                    except (TypeError, AttributeError):
                        continue
                    # those that any object may stand in for
                    assert cls is dt.Array or name in ("__enter__", "__exit__", "__module__"), name
        assert tried > 200, tried
    """)
    assert ended.returncode == 0, ended.stdout[-200:] + ended.stderr


def test_no_function_crashes_with_none():
    ended = run("""
        from dovetail import _core
        import dovetail as dt

        dt.devices()
        for name, function in vars(_core).items():
            if callable(function) and not isinstance(function, type) and name != "refuse_reentry":
                for n in range(6):
                    print(name, n, flush=True)
                    try:
                        function(*[None] * n)
                    except Exception:
                        pass
    """)
    assert ended.returncode == 0, ended.stdout[-200:] + ended.stderr


# ---- a queue that stands still -----------------------------------------------------------------------------------

needs_sim = pytest.mark.skipif("sim" not in DEVICES, reason="the simulated device is not installed")


@needs_sim
def test_ctrl_c_ends_every_wait(tmp_path):
    """It ends while the queue is blocked; the operands live until the work has ended."""
    gate = tmp_path / "gate"
    ended = run(
        f"""
        import os, signal, threading
        import dovetail as dt, numpy as np

        gate = {str(gate)!r}
        x = dt.asarray(np.arange(100_000, dtype=np.float32))
        stream, event = dt.current_stream(), dt.Event()
        (x + 1).tolist()
        open(gate, "w").close()
        y = x + 1
        event.record()

        for wait in [
            dt.synchronize,
            stream.synchronize,
            event.synchronize,
            y.tolist,
            y.numpy,
            lambda: float(y[7]),
            lambda: y[:1].item(),
            lambda: y.to_device("sim:1").numpy(),
            lambda: np.from_dlpack(y, device="cpu"),
        ]:
            timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            try:
                wait()
                raise AssertionError("the wait ended by itself")
            except KeyboardInterrupt:
                timer.join()
        del event
        os.unlink(gate)
        np.testing.assert_array_equal(y.numpy(), np.arange(1, 100_001))
        """,
        device="sim",
        DOVETAIL_SIM_FAULT=f"hold:0:{gate}",
    )
    assert ended.returncode == 0, ended.stderr


@needs_sim
def test_the_process_ends_with_a_blocked_queue(tmp_path):
    gate = tmp_path / "gate"
    ended = run(
        f"""
        import dovetail as dt

        x = dt.ones(1000)
        dt.synchronize()
        open({str(gate)!r}, "w").close()
        y = x + 1
        """,
        device="sim",
        DOVETAIL_SIM_FAULT=f"hold:0:{gate}",
        DOVETAIL_EXIT_TIMEOUT="0.3",
    )
    assert ended.returncode == 0, ended.stderr
    assert "sim:0: its work has not ended 0.3 s after the program" in ended.stderr
    assert "DOVETAIL_EXIT_TIMEOUT" in ended.stderr and "sim:1" not in ended.stderr


# ---- the locale --------------------------------------------------------------------------------------------------


@pytest.fixture
def comma_locale(tmp_path):
    """The variables that make de_DE.UTF-8, which writes 1.5 as 1,5, available to a program."""
    if not (localedef := shutil.which("localedef")):
        pytest.skip("there is no localedef")
    command = [localedef, "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("localedef has no sources of de_DE")
    return {"LOCPATH": str(tmp_path), "LC_ALL": "de_DE.UTF-8"}


@needs_sim
def test_numbers_in_a_locale_with_a_decimal_comma(comma_locale):
    ended = run(
        """
        import locale
        locale.setlocale(locale.LC_ALL, "")
        assert locale.format_string("%.1f", 1.5) == "1,5"
        import dovetail as dt

        print((dt.ones(2, device="sim") * 2.5).tolist())
        try:
            dt.zeros(2**40 + 2**39, dtype="uint8", device="sim")
        except MemoryError as error:
            print(error)
        """,
        DOVETAIL_SIM_FAULT="delay:0:0.5ms",
        DOVETAIL_EXIT_TIMEOUT="2.5",
        **comma_locale,
    )
    assert ended.returncode == 0 and "is ignored" not in ended.stderr, ended.stderr
    assert "[2.5, 2.5]" in ended.stdout and "cannot allocate 1.5 TiB" in ended.stdout
