"""dovetail fuzz-compile: its programs, its command, and what it prints."""

import pytest
from click.testing import CliRunner
from dovetail_conformance.programs import run
from dovetail_conformance.programs.command import fuzz_compile
from dovetail_conformance.programs.generate import generate
from dovetail_conformance.running.target import Target


@pytest.fixture
def target(kept_defaults):
    return Target("sim:0")


@pytest.fixture
def kept_defaults():
    import dovetail as dt

    before, mode = dt.default_device(), dt.fallback()
    yield
    dt.set_default_device(before)
    dt.fallback(mode)


def test_a_seed_is_a_program(target):
    sources = [generate(target, seed).source() for seed in range(30)]
    assert sources == [generate(target, seed).source() for seed in range(30)]
    assert len(set(sources)) == 30
    text = "".join(sources)
    for part in ("box.samples", "box.w", "W", "[...] = ", ".shape[0]", "if ", "for i in range(n)", "n", "k", ".mT"):
        assert part in text, part
    assert sum(source.count("\n") for source in sources) > 300


def test_the_command(kept_defaults):
    ended = CliRunner().invoke(fuzz_compile, ["--device", "sim:0", "--seed", "7", "--programs", "3"])
    assert ended.exit_code == 0, ended.output
    assert "3 programs on sim:0, seeds 7 to 9: no differences" in ended.output
    assert CliRunner().invoke(fuzz_compile, ["--device", "none:0"]).exit_code == 3
    assert CliRunner().invoke(fuzz_compile, ["--device", "sim:0", "--minutes", "0"]).exit_code == 2


def test_a_difference_is_printed_and_made_smaller(kept_defaults, monkeypatch):
    seen = run._seen

    def broken(results, given, held):  # arrays that were written look otherwise in every second call
        found = seen(results, given, held)
        broken.calls += 1
        if any("op('" in line for line in current[-1].lines) and broken.calls % 2 == 0:
            found["W"] = "lost"
        return found

    broken.calls = 0
    current = []
    difference = run.difference

    def noted(target, program):
        current.append(program)
        broken.calls = 0
        return difference(target, program)

    monkeypatch.setattr(run, "_seen", broken)
    monkeypatch.setattr(run, "difference", noted)
    ended = CliRunner().invoke(fuzz_compile, ["--device", "sim:0", "--seed", "3", "--programs", "1"])
    assert ended.exit_code == 1
    assert "program 3 differs: call 0, W: got 'lost', expected" in ended.output
    assert "dovetail fuzz-compile --device sim:0 --seed 3 --programs 1" in ended.output
    assert ended.output.count("op('") == 1
