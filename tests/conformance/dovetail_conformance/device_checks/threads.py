"""Any function from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

import numpy as np

from . import Failed, check, expect

THREADS = 8


def together(work: Callable[[int], None], n: int = THREADS) -> None:
    """Runs work(0) ... work(n - 1) at once; raises the first of their exceptions."""
    failures: list[BaseException] = []
    barrier = threading.Barrier(n)

    def run(i: int) -> None:
        try:
            barrier.wait()
            work(i)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0] if isinstance(failures[0], Failed) else Failed(f"in a thread: {failures[0]!r}")


@check
def own_arrays(t, rng):
    """Each thread gets the same result as a single thread; the ops' own cases check whether that is right."""
    add, matmul, total = t.function("add"), t.function("matmul"), t.function("sum")
    hosts = [np.full((16 + i, 16 + i), i % 4, t.float) for i in range(THREADS)]  # sums are exact, in fp16 too

    def computed(i: int) -> dict[str, np.ndarray]:
        x = t.asarray(hosts[i])
        return {"product": t.numpy(add(matmul(x, x), float(i))), "sum": t.numpy(total(x))}

    alone = [computed(i) for i in range(THREADS)]

    def work(i: int) -> None:
        for n in range(50):
            for what, got in computed(i).items():
                expect(np.array_equal(got, alone[i][what], equal_nan=True),
                       f"thread {i}, round {n}: a {what} is not what it was on one thread alone")  # fmt: skip

    together(work)


@check
def shared_array(t, rng):
    host = rng.integers(-99, 99, (64, 64)).astype(t.float)
    x, add = t.asarray(host), t.function("add")

    def work(i: int) -> None:
        for n in range(50):
            got = t.numpy(add(x[i:], float(n)))
            expect(np.array_equal(got, host[i:] + n), f"thread {i}, round {n}: a sum of a shared array is wrong")

    together(work)


@check
def freed_elsewhere(t, rng):
    """Made in one thread, read and freed in another."""
    lanes = [SimpleQueue() for _ in range(THREADS // 2)]

    def work(i: int) -> None:
        lane = lanes[i // 2]
        for n in range(100):
            if i % 2:
                expected, array = lane.get(timeout=30)
                expect(np.all(t.numpy(array) == expected), f"an array handed to thread {i} changed on the way")
            else:
                lane.put((n % 251, t.asarray(np.full(100 + 977 * n, n % 251, np.uint8))))

    together(work)


@check
def first_calls(t, rng):
    """Many threads meet a shape that no call has had yet."""
    shape = tuple(int(n) for n in rng.integers(2, 9, 5))
    host = rng.standard_normal(shape).astype(t.float)
    x = t.asarray(host)

    def work(i: int) -> None:
        y = t.function("add")(t.function("permute_dims")(x, (4, 3, 2, 1, 0)), 1.0)
        expect(np.array_equal(t.numpy(y), host.T + t.float(1)), f"thread {i}: a first call gave a wrong result")

    together(work)


@check
def errors_stay_apart(t, rng):
    """An error in one thread is not seen by another."""
    add = t.function("add")
    good, bad = t.asarray(np.ones(3, t.float)), t.asarray(np.ones(4, t.float))

    def work(i: int) -> None:
        for _ in range(100):
            if i % 2 == 0:
                expect(t.numpy(add(good, good)).tolist() == [2, 2, 2], f"thread {i}: 1 + 1 is wrong")
                continue
            try:
                add(good, bad)
            except ValueError as error:
                expect(
                    "(3,)" in str(error) and "(4,)" in str(error), f"thread {i} got another one's error: {error}"
                )
            else:
                raise Failed("adding arrays of 3 and 4 elements was accepted")

    together(work)
