"""DOVETAIL_CPU_AUTOTUNE: engines are compared once, and a file remembers the fastest."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Prints what was logged. Products have 80 rows of 48 or 96 numbers.
PROGRAM = """
    import sys
    sys.path.insert(0, {here!r})
    import harness, numpy as np
    cpu = harness.fresh()
    rng = np.random.default_rng(1)
    for dtype in ("f4", "f8", harness.bfloat16):
        x, y = rng.uniform(-1, 1, (80, 96)).astype(dtype), rng.uniform(-1, 1, (96, 48)).astype(dtype)
        want = x.astype("f8") @ y.astype("f8")
        for _ in range(2):
            got = cpu.run("matmul", x, y, out=dtype, shape=(80, 48)).astype("f8")
            assert np.allclose(got, want, atol=0.1 if dtype == harness.bfloat16 else 1e-4)
    small = rng.uniform(-1, 1, (8, 8)).astype("f4")
    cpu.run("matmul", small, small, out="f4", shape=(8, 8))
    print(*cpu.logged, sep="\\n")
"""


def run(cache: Path, wish: str = "1", program: str = PROGRAM) -> str:
    code = textwrap.dedent(program).format(here=str(HERE))
    environment = os.environ | {"DOVETAIL_CPU_AUTOTUNE": wish, "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_the_fastest_engine_is_remembered(tmp_path):
    assert run(tmp_path) == ""
    (file,) = (tmp_path / "dovetail").iterdir()
    first = file.read_text()
    identity, *lines = first.splitlines()
    assert "dovetail-cpu" in identity and "kernels" in identity
    assert [line.partition(":")[0] for line in lines] == ["f32", "f64", "bf16"]
    for line in lines:
        kind, engine, microseconds = line.split()
        assert "80x48x96" in kind and engine in ("usual", "own", "openblas", "onednn") and float(microseconds) > 0
    run(tmp_path)
    assert file.read_text() == first  # nothing was measured again
    # An engine that cannot do it is replaced by the usual one; a name that means nothing is not read.
    file.write_text(
        "\n".join([identity, *(f"{line.split()[0]} onednn 1" for line in lines[:2]), "nonsense other 1", ""])
    )
    run(tmp_path)
    assert [line.split()[0] for line in file.read_text().splitlines()[-1:]] == [lines[2].split()[0]]


def test_a_file_of_another_processor_or_version_is_replaced(tmp_path):
    run(tmp_path)
    (file,) = (tmp_path / "dovetail").iterdir()
    identity, *lines = file.read_text().splitlines()
    file.write_text("\n".join(["another " + identity, *lines, ""]))
    run(tmp_path)
    now = file.read_text().splitlines()
    assert now[0] == identity and len(now) == len(lines) + 1


def test_lines_that_are_broken_do_not_hide_those_that_follow(tmp_path):
    """Two processes that began the file at once have both written its first line; one may have been killed."""
    run(tmp_path)
    (file,) = (tmp_path / "dovetail").iterdir()
    identity, *lines = file.read_text().splitlines()
    for broken in (identity, lines[0].split()[0]):
        file.write_text("\n".join([identity, broken, *lines, ""]))
        before = file.read_text()
        run(tmp_path)
        assert file.read_text() == before  # nothing was measured again


FORKS = """
    import sys
    sys.path.insert(0, {here!r})
    import harness, numpy as np
    cpu = harness.fresh()
    sizes = iter(range(80, 10**6))

    def product():
        n = next(sizes)
        x, y = np.ones((80, 256), "f4"), np.ones((256, n), "f4")
        assert (cpu.run("matmul", x, y, out="f4", shape=(80, n)) == 256).all()

    print(harness.forked_meanwhile(product, 8, 30))
"""


def test_a_child_forked_while_others_measure_computes(tmp_path):
    assert run(tmp_path, program=FORKS) == str([0] * 8)


def test_off_by_default_and_a_wrong_value(tmp_path):
    run(tmp_path, "0")
    assert not list(tmp_path.iterdir())
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); import harness; harness.fresh().device_count()"
    environment = os.environ | {"DOVETAIL_CPU_AUTOTUNE": "always"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert 'DOVETAIL_CPU_AUTOTUNE is not a switch: expected 0 or 1, got "always"' in done.stderr


def test_a_file_that_cannot_be_written(tmp_path):
    (tmp_path / "dovetail").write_text("a file where the folder should be")
    logged = run(tmp_path)
    assert logged.count("cannot write") == 1 and "each process will measure anew" in logged
