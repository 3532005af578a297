"""torch's own samples of its operators (op_db), on a device and on torch's CPU.

python op_db.py DEVICE [-k NAME] [--samples N] prints each operator that differs, the ops that fell back, counts.
"""

import argparse
import collections
import dataclasses
import sys
import warnings

import dovetail_torch
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

# Their values are drawn at random, by generators that differ from torch's on the CPU, or are not set at all.
RANDOM = {
    *("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "uniform"),
    *("rand_like", "randint", "randint_like", "randn", "randn_like", "svd_lowrank", "pca_lowrank"),
    *("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"),
    *("nn.functional.alpha_dropout", "nn.functional.dropout", "nn.functional.dropout2d"),
    *("nn.functional.dropout3d", "nn.functional.feature_alpha_dropout", "nn.functional.rrelu"),
    *("nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d"),
}
MEMORY = {"resize_", "resize_as_"}  # what a tensor has grown by is not set
TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 5e-2}
TOLERANCE.update(dict.fromkeys((torch.float32, torch.int64, torch.bool, torch.complex64), 1e-4))


@dataclasses.dataclass
class Result:
    error: str = ""
    served: int = 0  # calls of Dovetail
    fallbacks: dict[str, int] = dataclasses.field(default_factory=dict)


def name_of(info) -> str:
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name


def on_device(x, device):
    if isinstance(x, torch.Tensor):
        return x.to(device)
    return torch.device(device) if x == "cpu" or (isinstance(x, torch.device) and x.type == "cpu") else x


def draws(info, sample) -> bool:
    if info.name == "nn.functional.multi_head_attention_forward":
        return sample.args[9] > 0
    return info.name in RANDOM or bool(sample.kwargs.get("dropout_p"))


def shape_of(x):
    return x.shape if isinstance(x, torch.Tensor) else x


def on_host(x):
    return x.detach().cpu() if isinstance(x, torch.Tensor) else x


def compare(info, sample, device, tolerance, first_only=False) -> None:
    """AssertionError where the device's result, or the first of its results, is not the CPU's."""
    torch.manual_seed(0)
    try:
        expected = info(sample.input, *sample.args, **sample.kwargs)
    except Exception:
        return  # torch's CPU does not have the operator for this sample: there is nothing to compare with
    moved = sample.transform(lambda x: on_device(x, device))
    kwargs = {key: on_device(value, device) for key, value in moved.kwargs.items()}
    torch.manual_seed(0)
    got = info(moved.input, *moved.args, **kwargs)
    if info.name in MEMORY or draws(info, sample):
        got, expected = (
            tree_map(lambda x: x.shape if isinstance(x, torch.Tensor) else x, r) for r in (got, expected)
        )
    if first_only:
        got, expected = got[0], expected[0]
    torch.testing.assert_close(
        tree_map(on_host, got), tree_map(on_host, expected), equal_nan=True, rtol=tolerance, atol=tolerance
    )


def compare_out(info, sample, device, size, tolerance=1e-4) -> None:
    """The same where results go into an `out=` of another size."""

    def call(sample, device):
        kwargs = {key: on_device(value, device) for key, value in sample.kwargs.items()}
        out = tree_map(lambda x: torch.empty(size, dtype=x.dtype, device=device), expected)
        returned = info(sample.input, *sample.args, **kwargs, out=out)
        return tree_map(on_host, out), tree_map(on_host, returned)

    try:
        expected = info(sample.input, *sample.args, **sample.kwargs)
        expected = tuple(expected) if isinstance(expected, tuple) else expected
        call(sample, "cpu")
    except Exception:
        return  # torch's CPU does not take such an `out=` of this operator
    for got in call(sample.transform(lambda x: on_device(x, device)), device):
        if got is None:  # some return nothing
            continue
        got = tuple(got) if isinstance(got, tuple) else got
        torch.testing.assert_close(got, expected, equal_nan=True, rtol=tolerance, atol=tolerance)


def check_out(info, device, n_samples=2) -> str:
    """What differs where torch is to give `out=` the results' shapes; "" where nothing does."""
    for _, sample in zip(range(n_samples), info.sample_inputs("cpu", torch.float32), strict=False):
        for size in ((0,), (2, 5)):
            try:
                if not draws(info, sample):
                    compare_out(info, sample, device, size)
            except Exception as error:
                return f"{size}: {type(error).__name__}: {str(error).strip()[:200]}"
    return ""


def gradients(info, sample, device):
    """The gradients of the sum of the results' squares by the operands that take part; None without any."""

    def moved(x):
        return x.detach().to(device).requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x

    sample = sample.transform(moved)
    results = tree_leaves(info(sample.input, *sample.args, **sample.kwargs))
    results = [r for r in results if isinstance(r, torch.Tensor) and r.requires_grad and r.is_floating_point()]
    operands = tree_leaves((sample.input, sample.args, sample.kwargs))
    operands = [x for x in operands if isinstance(x, torch.Tensor) and x.requires_grad]
    if not results or not operands:
        return None
    found = torch.autograd.grad(sum((r * r).sum() for r in results), operands, allow_unused=True)
    return [None if g is None else g.detach().cpu() for g in found]


def check_gradients(info, device, n_samples=3, tolerance=1e-3) -> str:
    """What differs from the CPU's gradients; "" where nothing does."""
    samples = info.sample_inputs("cpu", torch.float32, requires_grad=True)
    for _, sample in zip(range(n_samples), samples, strict=False):
        if draws(info, sample):
            continue
        torch.manual_seed(0)
        try:
            expected = gradients(info, sample, "cpu")
        except Exception:
            continue  # torch's CPU has no gradient for this sample
        torch.manual_seed(0)
        try:
            got = gradients(info, sample, device)
            torch.testing.assert_close(got, expected, equal_nan=True, rtol=tolerance, atol=tolerance)
        except Exception as error:
            return f"{type(error).__name__}: {str(error).strip()[:200]}"
    return ""


def difference_quotients(info, device, n_samples=2, most_elements=200) -> str:
    """What torch's gradcheck finds in float64, where it finds nothing on the CPU; "" where nothing is wrong."""
    for _, sample in zip(
        range(n_samples), info.sample_inputs("cpu", torch.float64, requires_grad=True), strict=False
    ):
        if draws(info, sample):
            continue
        try:
            if not gradcheck(info, sample, "cpu", most_elements):
                continue
        except Exception:
            continue  # torch's CPU has no gradient for this sample, or a wrong one
        try:
            gradcheck(info, sample, device, most_elements)
        except Exception as error:
            return f"{type(error).__name__}: {str(error).strip()[:200]}"
    return ""


def gradcheck(info, sample, device, most_elements) -> bool:
    """False: the sample has no gradient, or more elements. Raises GradcheckError where the gradient is wrong."""

    def moved(x):
        if isinstance(x, torch.Tensor):
            return x.detach().to(device).requires_grad_(x.requires_grad)
        return on_device(x, device)

    leaves, spec = tree_flatten(tree_map(moved, (sample.input, sample.args, sample.kwargs)))
    places = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor) and x.requires_grad]

    def run(*operands):
        now = list(leaves)
        for i, x in zip(places, operands, strict=True):
            now[i] = x
        x, args, kwargs = tree_unflatten(now, spec)
        results = tree_leaves(info(x, *args, **kwargs))
        return tuple(r for r in results if isinstance(r, torch.Tensor) and r.requires_grad)

    operands = [leaves[i] for i in places]
    if not 0 < sum(x.numel() for x in operands) <= most_elements or not run(*operands):
        return False
    return torch.autograd.gradcheck(run, operands, fast_mode=True, check_undefined_grad=False, nondet_tol=1e-10)


def check(info, device, dtype=torch.float32, n_samples=5, first_only=False) -> Result:
    result = Result()
    samples = info.sample_inputs("cpu", dtype)
    dovetail_torch.fallback_report(reset=True)
    with dovetail_torch.counting_calls() as counts:
        for _, sample in zip(range(n_samples), samples, strict=False):
            try:
                compare(info, sample, device, TOLERANCE[dtype], first_only)
            except Exception as error:
                result.error = f"{type(error).__name__}: {str(error).strip()[:200]}"
                break
    result.served, result.fallbacks = counts["served"], dovetail_torch.fallback_report()
    return result


def infos(dtype=torch.float32) -> list:
    return [info for info in op_db if dtype in info.dtypes]


def run(device, dtype=torch.float32, n_samples=5, keyword="", log=None) -> dict[str, Result]:
    results = {}
    for info in infos(dtype):
        if keyword not in name_of(info):
            continue
        if log:
            print(name_of(info), end=" ", flush=True, file=log)
        result = results[name_of(info)] = check(info, device, dtype, n_samples)
        if log:
            print(result.error.replace("\n", " ") or "ok", result.served, result.fallbacks, file=log)
    return results


def summary(results: dict[str, Result]) -> dict[str, int]:
    right = [r for r in results.values() if not r.error]
    return {
        "entries": len(results),
        "right": len(right),
        "right without a fallback": sum(not r.fallbacks for r in right),
        "distinct ops that fall back": len(fallbacks(results)),
    }


def fallbacks(results: dict[str, Result]) -> collections.Counter:
    """Each op that fell back, and how many entries used it."""
    return collections.Counter(name for r in results.values() for name in r.fallbacks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device", help="cpu, sim:0, ...")
    parser.add_argument("-k", default="", help="only entries whose name contains this")
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--gradients", action="store_true", help="of float32, in place of values")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dovetail_torch._autoload()
    device = str(dovetail_torch.device(options.device))
    if options.gradients:
        for info in infos():
            if options.k in name_of(info) and info.supports_autograd and (error := check_gradients(info, device)):
                print(f"{name_of(info)}: {error}", flush=True)
        return
    results = run(device, getattr(torch, options.dtype), options.samples, options.k, sys.stdout)
    print("\nDifferent:")
    for name, result in results.items():
        if result.error:
            print(f"  {name}: {result.error}")
    print("Fell back:")
    for name, count in fallbacks(results).most_common():
        print(f"  {name} {count}")
    print(summary(results))


if __name__ == "__main__":
    main()
