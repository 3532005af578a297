"""What PyTorch documents for every backend of its PrivateUse1 device, and tests on its own example, OpenReg."""

import io
import threading
from pathlib import Path

import dovetail_torch
import pytest
import torch

CPU, SIM = dovetail_torch.device("cpu:0"), dovetail_torch.device("sim:0")
SEED = 20261128


def normal(*size):
    print("seed", SEED)
    return torch.randn(*size, generator=torch.Generator().manual_seed(SEED))


@pytest.fixture(autouse=True)
def first_device():
    yield
    torch.accelerator.set_device_index(0)


# ---- names and generated methods
def test_the_backend_has_a_name_and_a_module():
    assert torch._C._get_privateuse1_backend_name() == "dovetail"
    assert torch.get_device_module("dovetail") is torch.dovetail is torch.get_device_module(SIM)
    assert torch.utils.backend_registration.torch.device("privateuseone:1") == torch.device("dovetail:1")
    with pytest.raises(RuntimeError, match="already been set"):
        torch.utils.rename_privateuse1_backend("acme")
    with pytest.raises(RuntimeError, match="already"):
        torch._register_device_module("dovetail", torch.dovetail)
    assert torch.dovetail.is_available() and torch.dovetail.is_initialized()
    assert not torch.dovetail._is_in_bad_fork()
    assert torch.dovetail.get_amp_supported_dtype() and torch.amp.is_autocast_available("dovetail")


def test_generated_methods():
    x = torch.ones(3).dovetail()
    assert x.is_dovetail and not x.is_cpu and not x.is_cuda and x.device.type == "dovetail"
    assert torch.ones(3).dovetail(1).device == SIM and torch.ones(3).dovetail(SIM, non_blocking=True).is_dovetail
    storage = torch.ones(3).untyped_storage()
    assert not storage.is_dovetail and storage.dovetail().is_dovetail
    layer = torch.nn.Linear(2, 2).dovetail(1)
    assert layer.weight.device == SIM and layer.to("cpu").weight.is_cpu
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.ones(3, 2, 4), [3, 2]).dovetail()
    assert packed.is_dovetail and packed.data.device.type == "dovetail"


def test_types_and_printing(device):
    x = torch.arange(4.0, device=device)
    assert x.type() == "torch.dovetail.FloatTensor"
    assert repr(x) == f"tensor([0., 1., 2., 3.], device='{device}')"
    assert "dovetail" in repr(x.untyped_storage()) or x.untyped_storage().device == device
    assert repr(torch.empty(0, device=device)).startswith("tensor([], device='dovetail")
    assert "1000" in str(torch.arange(1001, device=device))


# ---- devices
def test_devices_are_switched():
    assert torch.accelerator.current_device_index() == 0
    with torch.accelerator.device_index(1):
        assert torch.accelerator.current_device_index() == torch.dovetail.current_device() == 1
        with torch.device("dovetail"):
            assert torch.empty(1).device == SIM
    assert torch.accelerator.current_device_index() == 0
    with torch.accelerator.device_index(None), torch.dovetail.device(-1):
        assert torch.dovetail.current_device() == 0
    torch.dovetail.set_device("dovetail:1")
    assert torch.dovetail.current_device() == 1
    torch.dovetail.set_device(-1)  # no device: nothing changes
    assert torch.dovetail.current_device() == 1


def test_the_current_device_is_the_threads_own():
    torch.accelerator.set_device_index(1)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.accelerator.current_device_index()))
    thread.start()
    thread.join()
    assert seen == [0] and torch.accelerator.current_device_index() == 1


def test_properties():
    for i, name in enumerate(dovetail_torch.devices()):
        properties = torch.dovetail.get_device_properties(i)
        assert properties.name == name == torch.dovetail.get_device_name(i)
        assert 0 < torch.dovetail.mem_get_info(i)[0] <= properties.total_memory


def test_capability():
    capability = torch.accelerator.get_device_capability(0)
    assert {torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool} <= capability["supported_dtypes"]


# ---- streams
def test_streams(device):
    stream = torch.Stream(device)
    assert stream.device == device and stream.query() and stream == stream
    assert str(device.index) in repr(stream) and "dovetail" in repr(stream)
    other, default = torch.Stream(device), torch.accelerator.current_stream(device)
    if device == SIM:
        assert stream != other != default and len({stream, other, default}) == 3
    torch.accelerator.set_stream(stream)
    assert torch.accelerator.current_stream(device) == stream
    assert torch.accelerator.current_device_index() == device.index
    torch.accelerator.set_stream(default)
    with stream as entered:
        assert entered is stream and torch.accelerator.current_stream(device) == stream
    assert torch.accelerator.current_stream(device) == default
    with torch.dovetail.stream(stream):
        assert torch.dovetail.current_stream(device) == stream
    stream.wait_stream(other)
    stream.wait_event(other.record_event())
    stream.synchronize()
    torch.accelerator.synchronize(device)
    assert stream.query()


def test_work_of_streams_is_ordered():
    first, second = torch.Stream(SIM), torch.Stream(SIM)
    x, y = normal(200, 200).to(SIM), torch.zeros(200, 200, device=SIM)
    torch.accelerator.synchronize(SIM)
    with first:
        z = x
        for _ in range(10):
            z = (z @ x) * 0.05
        y.copy_(z)
    second.wait_stream(first)
    with second:
        total = y.sum()
    assert torch.isclose(total.cpu(), z.cpu().sum(), rtol=1e-4)


# ---- events
def test_events(device):
    event = torch.Event(device)
    assert event.device.type == "dovetail" and event.query() and event.event_id == 0
    event.synchronize()  # not recorded: nothing to wait for
    stream = torch.Stream(device)
    event = stream.record_event()
    assert event.device == device and event.event_id != 0
    assert stream.record_event(event) is event
    event.synchronize()
    assert event.query() and "dovetail" in repr(event)
    torch.Event().record()  # of the current accelerator
    other = torch.Event(device)
    other.record(stream)
    other.wait(torch.Stream(device))
    other.wait()


def test_times_of_events():
    first, last = (torch.Event(SIM, enable_timing=True) for _ in range(2))
    with pytest.raises(ValueError, match="recorded"):
        first.elapsed_time(last)
    first.record()
    normal(300, 300).to(SIM) @ normal(300, 300).to(SIM)
    last.record()
    last.synchronize()
    assert first.elapsed_time(last) > 0
    plain = torch.Event(SIM)
    plain.record()
    with pytest.raises(ValueError, match="timing"):
        plain.elapsed_time(last)


# ---- random numbers
def test_generators_are_of_a_device(device):
    g = torch.Generator(device)
    assert g.device == device and g.initial_seed() == torch.Generator().initial_seed()
    g.manual_seed(3)
    other = torch.Generator(device)
    other.set_state(g.get_state())
    assert torch.equal(*(torch.randn(9, device=device, generator=x).cpu() for x in (g, other)))
    assert g.seed() == g.initial_seed() != 3
    clone = g.clone_state()
    assert torch.equal(*(torch.rand(9, device=device, generator=x).cpu() for x in (g, clone)))
    with pytest.raises(RuntimeError, match="16 bytes"):
        g.set_state(torch.zeros(3, dtype=torch.uint8))


def test_seeds_of_the_process():
    torch.manual_seed(11)
    assert torch.dovetail.initial_seed() == torch.initial_seed() == 11
    draws = [torch.rand(5, device=d).cpu() for d in (CPU, SIM)]
    torch.dovetail.manual_seed_all(11)
    states = torch.dovetail.get_rng_state_all()
    assert all(torch.equal(draw, torch.rand(5, device=d).cpu()) for draw, d in zip(draws, (CPU, SIM)))
    torch.dovetail.set_rng_state_all(states)
    assert torch.equal(draws[1], torch.rand(5, device=SIM).cpu())
    with torch.random.fork_rng([0, 1], device_type="dovetail"):
        torch.rand(5, device=SIM)
        torch.manual_seed(12)
    torch.dovetail.manual_seed(11)
    assert torch.equal(draws[0], torch.rand(5, device="dovetail").cpu())


# ---- memory
def test_memory_statistics_have_the_names_of_torch():
    x = torch.empty(1 << 20, dtype=torch.uint8, device=SIM)
    stats = torch.dovetail.memory_stats(SIM)
    assert set(stats) <= set(torch.accelerator.memory_stats(1))
    assert stats["allocated_bytes.all.current"] == torch.dovetail.memory_allocated(SIM) >= x.nbytes
    assert stats["allocated_bytes.all.peak"] == torch.dovetail.max_memory_allocated(SIM)
    assert stats["reserved_bytes.all.current"] == torch.dovetail.memory_reserved(SIM)
    assert stats["num_device_alloc"] >= stats["num_device_free"] > -1 and stats["num_device_alloc"] > 0
    assert "num_ooms" not in stats  # the runtime does not count them


def test_memory_statistics():
    torch.accelerator.empty_cache()
    torch.accelerator.reset_peak_memory_stats(1)
    before = torch.accelerator.memory_allocated(1)
    x = torch.empty(1 << 20, dtype=torch.uint8, device=SIM)
    stats = torch.accelerator.memory_stats(1)
    assert stats["allocated_bytes.all.current"] == torch.accelerator.memory_allocated(1) >= before + (1 << 20)
    assert torch.accelerator.max_memory_allocated(1) >= before + (1 << 20)
    assert torch.accelerator.memory_reserved(1) >= torch.accelerator.memory_allocated(1)
    del x
    assert torch.accelerator.memory_allocated(1) == before
    assert torch.accelerator.max_memory_allocated(1) >= before + (1 << 20)
    torch.accelerator.reset_accumulated_memory_stats(1)
    free, total = torch.accelerator.get_memory_info(1)
    assert 0 < free <= total


def test_pinned_views_are_pinned():
    pinned = normal(10).pin_memory()
    assert pinned.is_pinned() and pinned.untyped_storage().is_pinned()
    view = torch.tensor(()).set_(pinned.untyped_storage()[8:], size=(5,), stride=(1,), storage_offset=0)
    assert view.is_pinned() and view.data_ptr() == pinned.data_ptr() + 8
    assert torch.equal(view, pinned[2:7])
    assert torch.empty(3, pin_memory=True).is_pinned() and not pinned.clone().is_pinned()
    assert not pinned.to(SIM).is_pinned()
    with pytest.raises(RuntimeError, match="cannot pin"):
        pinned.to(SIM).pin_memory()


# ---- storages
def test_storages_are_resized_and_viewed(device):
    x = normal(8).to(device)
    storage = x.untyped_storage()
    assert storage.device == device and storage.nbytes() == 32 and storage.data_ptr() == x.data_ptr()
    storage.resize_(0)
    assert storage.size() == 0
    storage.resize_(64)
    assert storage.nbytes() == 64
    y = torch.empty(0, device=device).set_(storage, 4, (3,), (2,)).fill_(5)
    assert y.tolist() == [5, 5, 5] and y.untyped_storage()._cdata == storage._cdata
    other = torch.UntypedStorage(16, device=device)
    other.copy_(storage[:16] if device.type == "cpu" else torch.ones(4, device=device).untyped_storage())
    assert torch.tensor((), device=device).set_(other.cpu().dovetail(device.index)).numel() == 4
    assert storage.clone().nbytes() == 64 and storage.cpu().device.type == "cpu"


def test_storages_copy_between_devices(device):
    x, y = normal(6).to(device), torch.zeros(6, device=CPU if device == SIM else SIM)
    y.untyped_storage().copy_(x.untyped_storage())
    assert torch.equal(y.cpu(), x.cpu())
    host = torch.zeros(6)
    host.untyped_storage().copy_(x.untyped_storage(), non_blocking=True)
    torch.accelerator.synchronize(device)
    assert torch.equal(host, x.cpu())


# ---- autograd
def test_autograd_has_a_thread_for_each_device():
    """A backward pass of a device runs on that device's thread, in which it is the current device."""
    seen = {}

    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            name = Path(f"/proc/self/task/{threading.get_native_id()}/comm").read_text().strip()
            seen[grad.device.index] = name, torch.accelerator.current_device_index()
            return grad

    for d in (CPU, SIM):
        Identity.apply(torch.ones(2, device=d, requires_grad=True)).sum().backward()
    assert seen == {0: ("pt_autograd_0", 0), 1: ("pt_autograd_1", 1)}


def test_gradients_cross_devices_and_streams():
    x = normal(4, 4).requires_grad_()
    with torch.Stream(SIM):
        y = (x.to(SIM) * 2).to(CPU).sum()
    torch.accelerator.synchronize(SIM)
    y.backward()
    assert x.grad.is_cpu and torch.equal(x.grad, torch.full((4, 4), 2.0))
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        z = x.to(SIM).exp().sum()
        z.backward()
        z.backward()


@pytest.mark.parametrize("use_reentrant", [True, False])
@pytest.mark.parametrize("preserve_rng_state", [True, False])
def test_checkpoints_of_activations_drop_the_same_elements(device, use_reentrant, preserve_rng_state):
    x = normal(1000).to(device).requires_grad_()
    y = torch.utils.checkpoint.checkpoint(
        lambda x: torch.nn.functional.dropout(x * 2, 0.5, training=True),
        x,
        use_reentrant=use_reentrant,
        preserve_rng_state=preserve_rng_state,
    )
    state = torch.dovetail.get_rng_state(device)
    y.sum().backward()
    assert set(x.grad.tolist()) == {0, 4}  # 2 / (1 - 0.5), where the mask of the second pass has a one
    assert torch.equal(x.grad != 0, y != 0) == preserve_rng_state
    assert torch.equal(torch.dovetail.get_rng_state(device), state) == preserve_rng_state


# ---- fallbacks
def test_fallbacks_of_each_kind_of_argument(device):
    x = torch.tensor([1.0, 2.0, 3.0], device=device)
    assert torch.triu_indices(3, 3, device=device).tolist() == [[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    assert [t.tolist() for t in torch._foreach_add([x, x], [x, x])] == [[2, 4, 6]] * 2
    values, vectors = torch.linalg.eigh(torch.diag(x))
    assert values.device == vectors.device == device and torch.allclose(values.cpu(), x.cpu())
    assert torch.linalg.cholesky(torch.eye(3, device=device)).device == device
    index = [None, torch.tensor([2, 0], device=device)]
    assert torch.ops.aten.index(x.reshape(1, 3), index).tolist() == [[3, 1]]
    assert torch.bincount(x.long()).tolist() == [0, 1, 1, 1]
    assert torch.kaiser_window(4, device=device).device == device  # a factory that is torch's own
    out = torch.empty(3, device=device)
    assert torch.special.i1(x, out=out) is out and torch.allclose(out.cpu(), torch.special.i1(x.cpu()))


# ---- serialization
def test_checkpoints_name_the_device(device):
    file = io.BytesIO()
    layer = torch.nn.Linear(2, 2).to(device)
    torch.save(layer, file)
    for options in ({"weights_only": False}, {"weights_only": False, "map_location": "cpu"}):
        file.seek(0)
        back = torch.load(file, **options)
        assert back.weight.device == (device if len(options) == 1 else torch.device("cpu"))
        assert torch.equal(back.weight.cpu(), layer.weight.cpu())
    assert torch.serialization.location_tag(layer.weight.untyped_storage()) == str(device)


def test_a_checkpoint_of_a_missing_device_says_so():
    file = io.BytesIO()
    torch.save(torch.ones(3, device=SIM), file)
    data = file.getvalue().replace(b"dovetail:1", b"dovetail:7")
    with pytest.raises(RuntimeError, match=r"dovetail.*7|7.*dovetail"):
        torch.load(io.BytesIO(data), weights_only=True)
