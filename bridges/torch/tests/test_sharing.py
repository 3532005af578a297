"""Tensors that leave torch: pickled, in other processes, as arrays of Dovetail and as bare memory."""

import copy
import os
import pickle
import subprocess
import sys
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import dovetail as dt
import dovetail_torch
import loading
import numpy as np
import pytest
import torch

CPU, SIM = dovetail_torch.device("cpu:0"), dovetail_torch.device("sim:0")


def numbers(device, dtype=torch.float32):
    return torch.arange(12.0).to(dtype).to(device).reshape(3, 4)


# ---- pickles
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex64])
def test_tensors_are_pickled(device, dtype):
    x = numbers(device, dtype)
    back, view = pickle.loads(pickle.dumps((x, x[:, 1:])))
    assert back.device == view.device == device and view.stride() == (4, 1)
    assert torch.equal(back.cpu(), x.cpu()) and torch.equal(view.cpu(), x.cpu()[:, 1:])


def test_pickles_and_copies_keep_what_a_tensor_is(device):
    weight = torch.nn.Parameter(numbers(device))
    for other in (pickle.loads(pickle.dumps(weight)), copy.deepcopy(weight)):
        assert isinstance(other, torch.nn.Parameter) and other.requires_grad and other.device == device
        assert torch.equal(other.cpu(), weight.cpu()) and other.data_ptr() != weight.data_ptr()
    x = numbers(device)
    assert copy.deepcopy({"a": x, "b": x[1]})["b"].tolist() == [4, 5, 6, 7]


def test_a_pickle_waits_for_the_device():
    x = torch.ones(256, 256, device=SIM)
    with torch.Stream(SIM):
        for _ in range(20):
            x = x @ x / 256
    assert pickle.loads(pickle.dumps(x)).sum().item() == 65536


# ---- other processes
def loaded(device, context):
    loader = torch.utils.data.DataLoader(
        loading.Rows(str(device)), batch_size=3, num_workers=1, multiprocessing_context=context
    )
    return list(loader)


def test_workers_send_tensors_of_a_device():
    for rows, index in (*loaded(CPU, "fork"), *loaded(SIM, "spawn")):
        assert rows.device in (CPU, SIM) and index.device.type == "cpu"
        assert rows.tolist() == [[i, i] for i in index.flatten().tolist()]


def test_a_forked_worker_says_that_it_cannot_use_the_device():
    with pytest.raises(RuntimeError, match="spawn"):
        loaded(SIM, "fork")


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_tensors_as_arguments_of_a_process(device, method):
    context = torch.multiprocessing.get_context(method)
    queue, arrived = context.Queue(), context.Event()
    layer, x = torch.nn.Linear(2, 3).to(device), numbers(device, torch.bfloat16)
    started = torch.multiprocessing.start_processes(
        loading.doubled, (layer, x[:, 1:], queue, arrived), nprocs=1, join=False, start_method=method
    )
    rank, kind, requires_grad, weight, y = queue.get(timeout=60)
    arrived.set()
    assert started.join(60)
    assert rank == 0 and kind is torch.nn.Parameter and requires_grad and weight.device == y.device == device
    assert torch.equal(weight, 2 * layer.weight) and torch.equal(y, 2 * x[:, 1:])


def test_queues_send_parameters_but_no_graph(device):
    weight = pickle.loads(bytes(ForkingPickler.dumps(torch.nn.Parameter(numbers(device), requires_grad=False))))
    assert isinstance(weight, torch.nn.Parameter) and not weight.requires_grad and weight.device == device
    x = numbers(device).requires_grad_()
    assert pickle.loads(bytes(ForkingPickler.dumps(x))).requires_grad
    with pytest.raises(RuntimeError, match=r"tensor\.detach"):
        ForkingPickler.dumps(x * 2)


# ---- arrays of Dovetail
def test_arrays_share_memory(device):
    x = numbers(device)
    array = dt.from_dlpack(x)
    assert array.device == dt.device(dovetail_torch.devices()[device.index])
    assert array.shape == (3, 4) and np.array_equal(np.asarray(array), x.cpu().numpy())
    x[0, 0] = 50  # what the owner writes shows in the array
    assert float(array[0, 0]) == 50
    array += 1  # the array never writes to shared memory
    assert x[0, 1].item() == 1 and float(array[0, 1]) == 2
    assert np.array_equal(np.asarray(dt.from_dlpack(x.t()[1:])), x.cpu().numpy().T[1:])


def test_arrays_are_copied_or_refused_as_wished(device):
    x = numbers(device)
    array = dt.from_dlpack(x, copy=True)
    x.zero_()
    assert float(array[2, 3]) == 11
    assert float(dt.asarray(numbers(device))[2, 3]) == 11
    other = dt.device("cpu:0" if device == SIM else "sim:0")
    assert dt.from_dlpack(numbers(device), device=other).device == other
    with pytest.raises(BufferError, match=r"x\.detach\(\)"):
        dt.from_dlpack(x.clone().requires_grad_())
    assert np.array_equal(np.asarray(dt.from_dlpack(torch.ones(2))), [1, 1])  # of torch's own CPU
    z = torch.tensor([1 + 2j], device=device).conj()
    assert complex(dt.from_dlpack(z)[0]) == 1 - 2j


# ---- bare memory
def test_capsules_of_torch_come_back(device):
    x = numbers(device)
    y = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    assert y.device == device and torch.equal((y + 1).cpu(), x.cpu() + 1)
    y[0] = 7
    assert x[0].tolist() == [7] * 4
    del x
    assert y.sum().item() == 28 + sum(range(4, 12))


# ---- Ctrl-C
INTERRUPTED = """
import _thread, os, signal, threading, torch, loading
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background job would ignore
x = torch.ones(8, device="dovetail:1")
y = x + 1
waits = {
    "synchronize": lambda: torch.accelerator.synchronize(1),
    "a stream": lambda: torch.accelerator.current_stream(1).synchronize(),
    "cpu": lambda: y.cpu(),
    "item": lambda: y[0].item(),
}
for name, wait in waits.items():
    threading.Timer(0.3, _thread.interrupt_main).start()
    try:
        wait()
    except KeyboardInterrupt:
        print("interrupted", name, flush=True)
os._exit(0)  # without a wait for the device
"""


def test_ctrl_c_ends_a_wait():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        env={
            **os.environ,
            "DOVETAIL_SIM_LATENCY_US": "60000000",  # longer than a loaded machine takes to interrupt
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]),
        },
        capture_output=True,
        text=True,
    )
    ended = done.stdout.splitlines()
    assert ended == [f"interrupted {name}" for name in ("synchronize", "a stream", "cpu", "item")], done.stderr
