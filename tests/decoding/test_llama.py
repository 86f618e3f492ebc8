"""The lean step is the model's own, bit for bit; what it does not fit is left to the model."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import DynamicCache, LlamaConfig, LlamaModel

from engine import media
from engine.decoding import llama
from engine.decoding.decode import Decoder
from engine.models import registry
from engine.models.adapter import Adapter
from engine.types import Sample
from tests.models.test_equality import FAMILIES, entry_of

QUESTION = "What is on the road?"
STEPS = 12


@pytest.fixture(
    params=[
        pytest.param((f, d), marks=pytest.mark.loads if d != "float32" else ())
        for f in FAMILIES
        for d in ("float32", "bfloat16", "float16")
    ]
)
def adapter(request: pytest.FixtureRequest, tiny_folder: Path, cache_dir: Path) -> Adapter:
    return registry.load(entry_of("tiny", *request.param, tiny_folder))


def embeds_of(adapter: Adapter, sample: Sample) -> torch.Tensor:
    shown = media.load(sample, adapter.kind)
    prepared = adapter.preprocess(shown, QUESTION)
    return adapter.embed(prepared, adapter.encode(prepared))


def plain_step(decoder: Decoder, token: torch.Tensor, cache: DynamicCache) -> torch.Tensor:
    """The language model's own forward()."""
    out = decoder.language_model(input_ids=token, past_key_values=cache, use_cache=True)
    return decoder.head(out.last_hidden_state[:, -1]).float()


def scores(decoder: Decoder, embeds: torch.Tensor, step: Any, cache: Any) -> torch.Tensor:
    """[STEPS, vocabulary]: the greedy answer's scores, over a cache of this kind."""
    out = decoder.language_model(inputs_embeds=embeds, past_key_values=cache, use_cache=True)
    rows = [decoder.head(out.last_hidden_state[:, -1]).float()]
    while len(rows) < STEPS:
        rows.append(step(decoder, rows[-1].argmax(-1, keepdim=True), cache))
    return torch.cat(rows)


@pytest.mark.loads
@torch.inference_mode()
def test_scores_are_equal_bit_for_bit(
    adapter: Adapter, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama, "AHEAD", 7)  # rooms and rotations are made anew several times
    decoder, embeds = adapter.decoder, embeds_of(adapter, sample)
    own = DynamicCache(config=adapter.text_config)
    expected = scores(decoder, embeds, plain_step, own)
    assert decoder.llama is not None
    found = scores(decoder, embeds, Decoder.step, llama.cache(adapter.text_config))
    assert torch.equal(found, expected)
    assert not torch.equal(*expected[-2:])


@torch.inference_mode()
def test_control_a_rotation_of_the_next_position_is_seen(
    adapter: Adapter, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder, embeds = adapter.decoder, embeds_of(adapter, sample)
    expected = scores(decoder, embeds, Decoder.step, llama.cache(adapter.text_config))
    rotation = llama.Llama._rotation
    monkeypatch.setattr(llama.Llama, "_rotation", lambda self, place: rotation(self, place + 1))
    found = scores(decoder, embeds, Decoder.step, llama.cache(adapter.text_config))
    assert torch.equal(found[0], expected[0]) and not torch.equal(found[1], expected[1])


@pytest.fixture
def small() -> LlamaModel:
    return made()


def made(**options: Any) -> LlamaModel:
    config = LlamaConfig(
        vocab_size=20,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        attn_implementation=options.pop("attn_implementation", "sdpa"),
        **options,
    )
    return LlamaModel(config).eval()


def quantized(model: Any) -> None:
    class Quantized(torch.nn.Linear):
        pass

    model.layers[1].mlp.up_proj = Quantized(16, 24, bias=False)


def hooked(model: Any) -> None:
    model.layers[0].self_attn.register_forward_hook(lambda *_: None)


def watched(model: Any) -> None:
    model.layers[0].register_forward_pre_hook(lambda *_: None)


def dispatched(model: Any) -> None:
    model.layers[0].forward = model.layers[0].forward


CHANGES: list[Callable[[Any], None]] = [quantized, hooked, watched, dispatched]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_changed_model_is_left_to_itself(small: LlamaModel, change: Any) -> None:
    assert llama.read(small) is not None
    change(small)
    assert llama.read(small) is None


@torch.inference_mode()
def test_a_cache_cropped_copied_or_selected_goes_on_as_transformers_own(small: LlamaModel) -> None:
    def after(cache: Any) -> torch.Tensor:
        small(inputs_embeds=embeds, past_key_values=cache, use_cache=True)
        cache.crop(-2)
        cache = copy.deepcopy(cache)
        cache.batch_select_indices(torch.tensor([1, 0, 1]))
        token = torch.tensor([[3], [5], [7]])
        for _ in range(2):
            out = small(input_ids=token, past_key_values=cache, use_cache=True)
        assert cache.get_seq_length() == 8 - 2 + 2
        return out.last_hidden_state

    embeds = torch.randn(2, 8, 16)
    roomy = llama.cache(small.config)
    assert all(type(layer) is llama.RoomyLayer for layer in roomy.layers)
    assert torch.equal(after(roomy), after(DynamicCache(config=small.config)))


@torch.inference_mode()
def test_a_token_is_written_and_the_others_stay_where_they_are(small: LlamaModel) -> None:
    cache = llama.cache(small.config)
    small(inputs_embeds=torch.randn(1, 5, 16), past_key_values=cache, use_cache=True)
    place, before = cache.layers[0].keys.data_ptr(), cache.layers[0].keys.clone()
    token = llama.read(small)
    assert token is not None
    token.token(torch.tensor([[4]]), cache)
    after = cache.layers[0].keys
    assert after.data_ptr() == place and after.shape[2] == 6
    assert torch.equal(after[:, :, :5], before)
