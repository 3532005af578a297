"""MiniLM's forward against torch eager and ONNX Runtime on the same weights in one run:

python benchmarks/minilm.py [--device cpu] [--seconds 6]

Milliseconds per forward of batch x tokens, eager and compiled. The ratio is the time of the faster peer by that of
the compiled function: above 1, dovetail is faster. Peers take part where they are installed. The contenders take
turns of blocks of calls, with a pause before each, in which threads that spin after a call go to sleep.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import warnings
from pathlib import Path

import dovetail as dt
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "minilm"))
from model import MiniLM
from turns import medians

SHAPES = [(1, 16), (1, 128), (8, 128)]


def torch_module(model: MiniLM):
    """The same network in torch, from the same weights."""
    import torch
    import torch.nn.functional as F

    w = {name: torch.from_numpy(np.asarray(value).copy()) for name, value in model.weights.items()}
    heads, eps, width = (model.config[k] for k in ("num_attention_heads", "layer_norm_eps", "hidden_size"))

    def norm(x, name):
        return F.layer_norm(x, (width,), w[f"{name}.weight"], w[f"{name}.bias"], eps)

    def linear(x, name):
        return F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    class Module(torch.nn.Module):
        def forward(self, ids, mask):
            batch, tokens = ids.shape
            e = "embeddings"
            x = w[f"{e}.word_embeddings.weight"][ids] + w[f"{e}.position_embeddings.weight"][:tokens]
            x = norm(x + w[f"{e}.token_type_embeddings.weight"][0], f"{e}.LayerNorm")
            attend = mask.bool()[:, None, None, :]
            for i in range(model.config["num_hidden_layers"]):
                layer = f"encoder.layer.{i}"
                q, k, v = (
                    linear(x, f"{layer}.attention.self.{p}")
                    .view(batch, tokens, heads, width // heads)
                    .transpose(1, 2)
                    for p in ("query", "key", "value")
                )
                y = F.scaled_dot_product_attention(q, k, v, attend).transpose(1, 2).reshape(batch, tokens, width)
                x = norm(x + linear(y, f"{layer}.attention.output.dense"), f"{layer}.attention.output.LayerNorm")
                y = F.gelu(linear(x, f"{layer}.intermediate.dense"))
                x = norm(x + linear(y, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
            keep = mask[..., None].float()
            return F.normalize((x * keep).sum(1) / keep.sum(1), dim=-1)

    return Module().eval()


def peers(model: MiniLM, folder: Path) -> dict:
    """By name, functions of ids and mask as NumPy arrays that return the embeddings."""
    found: dict = {}
    try:
        import torch
    except ImportError:
        return found
    threads = dt._core.num_threads()
    torch.set_num_threads(threads)
    module = torch_module(model)

    @torch.inference_mode()
    def by_torch(ids, mask):
        return module(torch.from_numpy(ids), torch.from_numpy(mask)).numpy()

    found["torch"] = by_torch
    try:
        import onnx  # noqa: F401
        import onnxruntime
    except ImportError:
        return found
    file, example = folder / "minilm.onnx", torch.ones((2, 16), dtype=torch.int64)
    names = ["ids", "mask"]
    how = {"opset_version": 17, "dynamic_axes": {name: {0: "batch", 1: "tokens"} for name in names}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the other exporter needs onnxscript
        torch.onnx.export(module, (example, example), file, dynamo=False, input_names=names, **how)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    found["onnxruntime"] = lambda ids, mask: session.run(None, {"ids": ids, "mask": mask})[0]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=10.0, help="per shape")
    options = parser.parse_args()
    model = MiniLM(options.device)
    compiled = dt.compile(model.embed)
    with tempfile.TemporaryDirectory() as folder:
        others = peers(model, Path(folder))
    print(f"ms on {options.device}, {dt._core.num_threads()} threads; torch and ONNX Runtime on the host")
    print(f"{'batch x tokens':>14}", *(f"{name:>11}" for name in ("eager", "compiled", *others)), " ratio")
    ratios = []
    for batch, tokens in SHAPES:
        rng = np.random.default_rng(0)
        ids, mask = rng.integers(0, 30000, (batch, tokens)), np.ones((batch, tokens), np.int64)
        a, m = dt.asarray(ids, device=options.device), dt.asarray(mask, device=options.device)

        def ours(function, a=a, m=m):
            y = function(a, m)
            model.device.synchronize()
            return y

        calls: dict = {"eager": lambda: ours(model.embed), "compiled": lambda: ours(compiled)}
        want = np.asarray(calls["eager"]())
        for name, other in others.items():
            calls[name] = lambda other=other, ids=ids, mask=mask: other(ids, mask)
        for call in calls.values():
            np.testing.assert_allclose(np.asarray(call()), want, atol=1e-4)
        result = medians(calls, options.seconds)
        line = [f"{f'{batch} x {tokens}':>14}", *(f"{t:11.2f}" for t in result.values())]
        if others:
            ratios.append(min(result[name] for name in others) / result["compiled"])
            line.append(f"{ratios[-1]:6.2f}")
        print(*line, flush=True)
    if ratios:
        print(f"geometric mean {statistics.geometric_mean(ratios):.2f}, the least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
