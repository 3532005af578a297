"""Models of transformers, diffusers and torchvision, unchanged, on each device: torch's results, no fallback."""

import copy

import dovetail_torch
import models
import pytest
import torch
import torch.utils._pytree as pytree
import transformers
from models import expect_equal

SMALL = {"vocab_size": 99, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
         "num_attention_heads": 4, "max_position_embeddings": 64}  # fmt: skip


def on(device, tree):
    return pytree.tree_map(lambda x: x.to(device) if isinstance(x, torch.Tensor) else x, tree)


@pytest.mark.parametrize("name", sorted(models.MODELS))
def test_results(name, device, no_fallback):
    model, args, _ = models.make(name)
    other = dovetail_torch.to(copy.deepcopy(model), device)
    with torch.no_grad():
        expect_equal(other(*on(device, args)), model(*args))


def mistral():
    config = transformers.MistralConfig(**SMALL, num_key_value_heads=2, sliding_window=4)
    return transformers.MistralForCausalLM(config)


def opt():
    config = transformers.OPTConfig(vocab_size=99, hidden_size=32, ffn_dim=48, num_hidden_layers=2,
                                    num_attention_heads=4, max_position_embeddings=64,
                                    word_embed_proj_dim=32)  # fmt: skip
    return transformers.OPTForCausalLM(config)


def gpt2():
    return models.MODELS["gpt2"]()[0].inner


def llama():
    return models.MODELS["llama"]()[0].inner


def t5():
    return models.MODELS["t5"]()[0].inner


def whisper():
    config = transformers.WhisperConfig(
        vocab_size=99, num_mel_bins=8, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_source_positions=16,
        max_target_positions=32, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3,
        suppress_tokens=[], begin_suppress_tokens=[],
    )  # fmt: skip
    return transformers.WhisperForConditionalGeneration(config)


HOW = {
    "greedy": {},
    "beams": {"num_beams": 3},
    "penalties": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "min_new_tokens": 4},
}


GENERATING = [gpt2, llama, mistral, opt, t5, whisper]


@pytest.mark.parametrize(
    ("make", "how"),
    [
        pytest.param(make, how, marks=[] if how == "greedy" or make in (gpt2, t5) else [pytest.mark.slow])
        for make in GENERATING
        for how in HOW
    ],
)
def test_generated_tokens_are_equal(make, how, device, no_fallback):
    torch.manual_seed(0)
    model = make().eval()
    given = torch.randint(3, 99, (2, 7))
    if make is whisper:
        given = torch.randn(2, 8, 32)
    options = {"max_new_tokens": 10, "do_sample": False, **HOW[how]}
    expected = model.generate(given, **options)
    got = dovetail_torch.to(copy.deepcopy(model), device).generate(given.to(device), **options)
    assert got.device == device and got.cpu().tolist() == expected.tolist()


def distilbert():
    config = transformers.DistilBertConfig(vocab_size=99, dim=32, hidden_dim=48, n_layers=2, n_heads=4)
    return transformers.DistilBertForSequenceClassification(config)


@pytest.mark.parametrize("make", [distilbert, mistral, opt])
def test_losses_and_gradients(make, device, no_fallback):
    torch.manual_seed(0)
    model = make().eval()
    ids, mask = torch.randint(3, 99, (2, 9)), torch.ones(2, 9, dtype=torch.long)
    mask[1, 6:] = 0
    labels = torch.tensor([0, 1]) if make is distilbert else ids
    other = dovetail_torch.to(copy.deepcopy(model), device)
    losses = []
    for net, place in ((model, "cpu"), (other, device)):
        loss = net(**on(place, {"input_ids": ids, "attention_mask": mask, "labels": labels})).loss
        loss.backward()
        losses.append(loss.detach().cpu())
    expect_equal(losses[1], losses[0])
    for (name, a), (_, b) in zip(model.named_parameters(), other.named_parameters(), strict=True):
        assert (a.grad is None) == (b.grad is None), name
        if a.grad is not None:
            scale = max(a.grad.abs().max().item(), 1e-3)
            assert (b.grad.cpu() - a.grad).abs().max() <= 1e-4 * scale, name


def test_mixture_of_experts(device):
    """Its tokens are counted by torch.histc, which falls back."""
    config = transformers.MixtralConfig(
        **SMALL, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, sliding_window=None
    )
    torch.manual_seed(0)
    model = transformers.MixtralForCausalLM(config).eval()
    ids = torch.randint(0, 99, (2, 7))
    other = dovetail_torch.to(copy.deepcopy(model), device)
    with torch.no_grad():
        expect_equal(other(ids.to(device)).logits, model(ids).logits)


def test_encoder_with_a_padding_mask(device):
    """In evaluation torch would make nested tensors of it, which our devices do not have."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2).eval()
    x, mask = torch.randn(2, 5, 16), torch.zeros(2, 5, dtype=torch.bool)
    mask[0, 3:] = True
    other = copy.deepcopy(model).to(device)
    with torch.no_grad():
        got = other(x.to(device), src_key_padding_mask=mask.to(device)).cpu()
        expected = model(x, src_key_padding_mask=mask)
    torch.testing.assert_close(got[~mask], expected[~mask])
