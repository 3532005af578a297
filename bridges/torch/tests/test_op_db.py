"""torch's own samples: 5 of each operator in float32, on the CPU device and on the simulated accelerator."""

import warnings
from pathlib import Path

import op_db
import pytest
import torch

LIST = Path(__file__).parent / "op_db_failures.txt"
N_PARTS = 8
AT_LEAST_RIGHT, AT_LEAST_WITHOUT_FALLBACK, MOST_FALLBACKS = 669, 400, 120


def expected_failures() -> dict[str, str]:
    lines = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    return {name: reason for name, _, reason in (line.partition(": ") for line in lines)}


def check_against_list(results: dict[str, op_db.Result]) -> None:
    listed = expected_failures()
    wrong = {name: r.error for name, r in results.items() if r.error and name not in listed}
    assert not wrong, "\n".join(f"{name}: {error}" for name, error in wrong.items())
    mended = [name for name, r in results.items() if name in listed and not r.error]
    assert not mended, f"right, and still in {LIST.name}: {', '.join(mended)}"


def test_each_listed_failure_has_a_reason_and_an_entry():
    listed = expected_failures()
    assert len(op_db.infos()) - len(listed) >= AT_LEAST_RIGHT
    assert all(listed.values())
    assert set(listed) <= {op_db.name_of(info) for info in op_db.infos()}


def test_values_and_fallbacks(device):
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = op_db.run(device)
    counts = op_db.summary(results)
    print(counts)
    check_against_list(results)
    assert counts["right"] >= AT_LEAST_RIGHT
    assert counts["right without a fallback"] >= AT_LEAST_WITHOUT_FALLBACK
    assert counts["distinct ops that fall back"] <= MOST_FALLBACKS


def test_out_of_another_shape(device):
    """torch gives it the shapes of the results, and warns where it had elements."""
    torch.set_num_threads(1)
    wrong = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for info in op_db.infos():
            name = op_db.name_of(info)
            if info.supports_out and name not in expected_failures() and (error := op_db.check_out(info, device)):
                wrong[name] = error
    assert not wrong, "\n".join(f"{name}: {error}" for name, error in wrong.items())


@pytest.mark.slow
def test_gradients(device):
    """Those of three samples of each operator."""
    torch.set_num_threads(1)
    listed = expected_failures() | {"to_sparse": "the gradient of a sparse result is a tensor of torch's CPU"}
    wrong = {}
    for info in op_db.infos():
        if (
            info.supports_autograd
            and op_db.name_of(info) not in listed
            and (error := op_db.check_gradients(info, device))
        ):
            wrong[op_db.name_of(info)] = error
    assert not wrong, "\n".join(f"{name}: {error}" for name, error in wrong.items())


@pytest.mark.slow
@pytest.mark.parametrize("part", range(N_PARTS))
def test_gradients_are_those_of_difference_quotients(device, part):
    torch.set_num_threads(1)
    wrong = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for info in op_db.infos(torch.float64)[part::N_PARTS]:
            name = op_db.name_of(info)
            if not info.supports_autograd or name in expected_failures():
                continue
            if error := op_db.difference_quotients(info, device):
                wrong[name] = error
    assert not wrong, "\n".join(f"{name}: {error}" for name, error in wrong.items())


TIES = {"kthvalue", "sort", "topk"}  # of equal elements torch may name any: their values are compared
STATISTICS = {"native_batch_norm", "_native_batch_norm_legit"}  # are float32, as on GPUs
CANCELLING = {
    "addbmm",
    "nn.functional.conv_transpose3d",
}  # rounded sums of terms that cancel


def test_logit_with_eps_above_a_half(device):
    """Samples of torch 2.14, which those of 2.13 lack: eps > 1 - eps."""
    x = torch.linspace(-1, 2, 125)
    for eps in (0.2, 0.6, 1.0):
        torch.testing.assert_close(torch.logit(x.to(device), eps).cpu(), torch.logit(x, eps))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(N_PARTS))
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.complex64])
def test_other_dtypes_have_no_wrong_value(device, dtype, part):
    """A value that is not the CPU's is wrong; an error is not."""
    left_out = {*expected_failures(), "argsort"}
    if dtype.itemsize == 2:
        left_out |= STATISTICS | CANCELLING
    wrong = {}
    for info in op_db.infos(dtype)[part::N_PARTS]:
        name = op_db.name_of(info)
        if name in left_out:
            continue
        result = op_db.check(info, device, dtype, first_only=name in TIES)
        if result.error.startswith("AssertionError"):
            wrong[name] = result.error
    assert not wrong, "\n".join(f"{name}: {error}" for name, error in wrong.items())
