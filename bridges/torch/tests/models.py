"""Small models with random weights: (module, arguments, dynamic sizes) by name. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import nn


def _import_torchvision() -> None:
    """A torchvision whose C++ ops are built for another torch does not load; its models use none of them."""
    try:
        import torchvision
    except ImportError:
        return
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision

        torchvision.library_of_tests = library  # it must live as long as the ops


_import_torchvision()  # before transformers does

LARGEST = 1e-5  # error, of the largest result


def expect_equal(got, expected, largest=LARGEST):
    """The leaves of two trees are equal, up to `largest` of the largest element. got: on any device."""
    got, expected = pytree.tree_leaves(got), pytree.tree_leaves(expected)
    assert len(got) == len(expected)
    for g, e in zip(got, expected):
        if not isinstance(e, torch.Tensor):
            assert g == e
            continue
        assert g.shape == e.shape and g.dtype == e.dtype
        g, e = g.detach().cpu().double(), e.detach().double()
        error, size = (g - e).abs().max().item() if e.numel() else 0.0, e.abs().max().item() if e.numel() else 1.0
        assert error <= largest * max(size, 1e-30), f"error {error} of {size}"


Made = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]
MODELS: dict[str, Callable[[], Made]] = {}


def model(fn: Callable[[], Made]) -> Callable[[], Made]:
    MODELS[fn.__name__] = fn
    return fn


def _text(vocabulary: int = 99, batch: int = 2, tokens: int = 7) -> torch.Tensor:
    return torch.randint(0, vocabulary, (batch, tokens))


class _Only(nn.Module):
    """A model that returns tensors and takes its arguments by position."""

    def __init__(self, inner: nn.Module, names: tuple[str, ...], result: str, **fixed: Any):
        super().__init__()
        self.inner, self.names, self.result, self.fixed = inner, names, result, fixed

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        made = self.inner(**dict(zip(self.names, args)), **self.fixed)
        return getattr(made, self.result)


def _dynamic(*axes: dict[int, str]) -> dict[str, Any]:
    from torch.export import Dim

    dims: dict[str, Any] = {}
    made = tuple({axis: dims.setdefault(n, Dim(n, min=1, max=16)) for axis, n in shape.items()} for shape in axes)
    return {"args": made}


@model
def bert() -> Made:
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=37, max_position_embeddings=64)  # fmt: skip
    mask = torch.ones(2, 7, dtype=torch.int64)
    mask[1, 5:] = 0
    net = _Only(BertModel(config), ("input_ids", "attention_mask"), "last_hidden_state")
    return net, (_text(), mask), _dynamic({0: "batch", 1: "tokens"}, {0: "batch", 1: "tokens"})


@model
def gpt2() -> Made:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    net = _Only(GPT2LMHeadModel(config), ("input_ids",), "logits", use_cache=False)
    return net, (_text(),), _dynamic({0: "batch", 1: "tokens"})


def _llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                    num_key_value_heads=2, max_position_embeddings=64)
    )  # fmt: skip


@model
def llama() -> Made:
    return (
        _Only(_llama(), ("input_ids",), "logits", use_cache=False),
        (_text(),),
        _dynamic({0: "batch", 1: "tokens"}),
    )


class _Cached(nn.Module):
    """A step of generation: the cache is an argument and a result, a list of keys and values by layer."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, ids: torch.Tensor, cache: list[tuple[torch.Tensor, torch.Tensor]]) -> Any:
        from transformers import DynamicCache

        made = self.inner(input_ids=ids, past_key_values=DynamicCache(cache), use_cache=True)
        return made.logits, [(layer.keys, layer.values) for layer in made.past_key_values.layers]


@model
def llama_with_cache() -> Made:
    from torch.export import Dim

    cache = [(torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)) for _ in range(2)]
    seen = {2: Dim.AUTO}
    return _Cached(_llama()), (_text(tokens=1), cache), {"ids": None, "cache": [(seen, seen)] * 2}


@model
def vit() -> Made:
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37,
                       image_size=30, patch_size=15)  # fmt: skip
    net = _Only(ViTModel(config, add_pooling_layer=False), ("pixel_values",), "last_hidden_state")
    return net, (torch.randn(2, 3, 30, 30),), _dynamic({0: "batch"})


@model
def t5() -> Made:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4,
                      decoder_start_token_id=0)  # fmt: skip
    net = _Only(T5ForConditionalGeneration(config), ("input_ids", "decoder_input_ids"), "logits", use_cache=False)
    return net, (_text(), _text(tokens=5)), _dynamic({0: "batch", 1: "tokens"}, {0: "batch", 1: "made"})


@model
def resnet18() -> Made:
    from torchvision.models import resnet18

    return resnet18(), (torch.randn(2, 3, 64, 64),), {"x": {0: torch.export.Dim("batch", min=1, max=16)}}


@model
def unet() -> Made:
    from diffusers import UNet2DConditionModel

    net = UNet2DConditionModel(
        sample_size=16, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(32, 64),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), cross_attention_dim=32, attention_head_dim=8,
    )  # fmt: skip
    inner = _Only(net, ("sample", "timestep", "encoder_hidden_states"), "sample")
    given = (torch.randn(2, 4, 16, 16), torch.tensor([3, 50]), torch.randn(2, 5, 32))
    return inner, given, _dynamic({0: "batch"}, {0: "batch"}, {0: "batch", 1: "tokens"})


def make(name: str, seed: int = 0) -> Made:
    """A model in eval mode, with its weights, buffers and arguments from this seed."""
    torch.manual_seed(seed)
    made, args, dynamic = MODELS[name]()
    return made.eval(), args, dynamic
