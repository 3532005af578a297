"""The group dovetail.collectives: the arguments that NCCL gets, and its errors. A fake NCCL logs its calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from cuda_programs import EMULATED, PROGRAMS, plugin, run

START = ["ncclGetUniqueId", "ncclCommInitRank id=7 rank=0 of 2"]
INT8, UINT8, INT32, HALF, FLOAT, BFLOAT = 0, 1, 2, 6, 7, 9  # ncclDataType_t


@pytest.fixture
def talk(tmp_path: Path):
    """talk("init", "send", ...): the calls that NCCL got, and the errors that the host got."""

    def talk(*commands: str, libraries: Path = PROGRAMS / "fake", **variables: str) -> tuple[list[str], list[str]]:
        log = tmp_path / "log"
        log.write_text("", "utf-8")
        variables |= EMULATED | {"DOVETAIL_CUDA_LIBS": str(libraries), "FAKE_NCCL_LOG": str(log)}
        words = [word for command in commands for word in command.split()]
        errors = run(PROGRAMS / "collectives", plugin(), *words, **variables).stdout
        return log.read_text("utf-8").splitlines(), errors.splitlines()

    return talk


@pytest.mark.parametrize(
    ("command", "calls"),
    [
        ("all_reduce f32 sum", [f"ncclAllReduce 24 of type {FLOAT} op=0"]),
        ("all_reduce bf16 mean", [f"ncclAllReduce 24 of type {BFLOAT} op=4"]),
        ("reduce_scatter i8 max", [f"ncclReduceScatter 24 of type {INT8} op=2"]),
        ("all_gather f16 sum", [f"ncclAllGather 48 of type {UINT8}"]),
        ("broadcast bool sum", [f"ncclBroadcast 24 of type {UINT8} root=1"]),
        (
            "all_to_all i16 sum",
            [
                "ncclGroupStart",
                "ncclSend 24 of type 1 to 0",
                "ncclRecv 24 of type 1 from 0",
                "ncclSend 24 of type 1 to 1",
                "ncclRecv 24 of type 1 from 1",
                "ncclGroupEnd",
            ],
        ),
        ("send", [f"ncclSend 96 of type {UINT8} to 1"]),
        ("receive", [f"ncclRecv 96 of type {UINT8} from 1"]),
    ],
)
def test_arguments_passed_to_nccl(talk, command, calls):
    """Reductions count elements, all others bytes, so those accept any data type."""
    assert talk("init", command, "destroy") == ([*START, *calls, "ncclCommDestroy"], [])


def test_a_group_ends_with_a_wait_for_calls_without_a_stream(talk):
    calls, errors = talk("init", "begin", "send", "receive", "end", "destroy")
    assert calls[2:-1] == [
        "ncclGroupStart",
        "ncclSend 96 of type 1 to 1",
        "ncclRecv 96 of type 1 from 1",
        "ncclGroupEnd",
    ]
    assert errors == []


def test_what_nccl_cannot_do_is_refused(talk):
    commands = "all_reduce i16 sum", "all_reduce bool sum", "all_reduce f32 other", "all_gather f32 strided", "end"
    calls, errors = talk("init", *commands, "destroy")
    assert calls == [*START, "ncclCommDestroy"]
    assert errors == [
        "1: NCCL has no reduction 0 of this data type",
        "1: NCCL has no reduction 0 of this data type",
        "1: NCCL has no reduction 5 of this data type",
        "2: collectives: expected row-major operands",
        "2: a group of collectives ends that never began",
    ]


@pytest.mark.parametrize(
    "name", ["ncclGetUniqueId", "ncclCommInitRank", "ncclAllReduce", "ncclSend", "ncclGroupEnd"]
)
def test_a_failure_has_nccls_message(talk, name):
    commands = {
        "ncclGetUniqueId": ["init"],
        "ncclCommInitRank": ["init"],
        "ncclAllReduce": ["init", "all_reduce f32 sum"],
        "ncclSend": ["init", "all_to_all f32 sum"],
        "ncclGroupEnd": ["init", "begin", "end"],
    }[name]
    calls, errors = talk(*commands, FAKE_NCCL_FAIL=name)
    assert errors == [f"5: NCCL: {name}: remote process exited: rank 1 is gone"]
    assert calls.count("ncclGroupStart") == calls.count("ncclGroupEnd")


def test_an_error_of_an_earlier_call_and_what_comes_after_an_abort(talk):
    assert talk("init", "async_error", "destroy")[1] == []
    calls, errors = talk(
        "init", "async_error", "abort", "async_error", "send", "destroy", FAKE_NCCL_FAIL="an earlier call"
    )
    assert calls == [*START, "an earlier call", "ncclCommAbort"]
    assert errors == [
        "5: NCCL: an earlier call: remote process exited: rank 1 is gone",
        "2: the communicator was aborted: make another one",
        "2: the communicator was aborted: make another one",
    ]


def test_without_nccl_the_cure_is_reported(talk, tmp_path):
    (tmp_path / "libnccl.so.2").write_bytes(b"")
    (line,) = talk("init", libraries=tmp_path)[1]
    assert line.startswith("1: NCCL cannot be opened: ") and "pip install -U 'dovetail-cuda[nccl]'" in line
