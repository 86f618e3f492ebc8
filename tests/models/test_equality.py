"""Each family's answers are the model's own generate(), token for token, in every way of answering.

Runs on tiny random checkpoints and, where they lie in the tree, on the demo checkpoints, in
float32 and bfloat16, and with each setting that a generation_config.json may hold.  The controls
show that the comparison can fail.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import media, settings
from engine.decoding import compiled
from engine.decoding.generation_rules import AnswerRules, notes
from engine.models import registry
from engine.models.adapter import Adapter
from engine.models.checkpoint import ModelEntry
from engine.pipeline import batch_run, draft_loop, single_run
from engine.pipeline.draft_loop import ModelDrafter, PromptLookup
from engine.pipeline.feature_cache import FeatureCache
from engine.types import DecodeConfig, RunOptions, RunResult, Sample
from engine.verify.answer_paths import Subject
from engine.verify.verdict import VerifyRequest
from tests.conftest import make_sample
from tests.models.conftest import loaded
from tests.models.published_folders import change

pytestmark = [pytest.mark.loads, pytest.mark.usefixtures("cache_dir")]

FAMILIES = ("eventgpt", "video_llava", "llava")
SOURCES = ("tiny", "demo")
DTYPES = ("float32", "bfloat16")
ALL = [
    pytest.param(
        (source, family, dtype),
        marks=pytest.mark.slow if (source, dtype) == ("demo", "bfloat16") else (),
        id=f"{source}-{family}-{dtype}",
    )
    for source in SOURCES
    for dtype in DTYPES
    for family in FAMILIES
]
QUESTION = "What are the key elements in this scene?"
CONFIGS = {
    "greedy": DecodeConfig(max_new_tokens=40),
    "sampled": DecodeConfig(max_new_tokens=24, temperature=0.8, top_p=0.9, seed=7),
    "least length": DecodeConfig(max_new_tokens=12, min_new_tokens=12),
}
WAYS = {"computed": True, "decoupled": False, "hooked": True, "features": False}  # they encode
GREEDY = DecodeConfig(max_new_tokens=24)
SETTINGS: dict[str, dict[str, Any]] = {
    "repetition_penalty": {"repetition_penalty": 1.7},
    "no_repeat_ngram_size": {"no_repeat_ngram_size": 1},
    "bad_words_ids": {"bad_words_ids": [[i] for i in range(40, 120)]},
    "suppress_tokens": {"suppress_tokens": list(range(30, 150))},
    "begin_suppress_tokens": {"begin_suppress_tokens": list(range(5, 200))},
    "forced_eos_token_id": {"forced_eos_token_id": 2},
    "forced_bos_token_id": {"forced_bos_token_id": 0},
    "sequence_bias": {"sequence_bias": [[[70], 9.0], [[71, 72], 4.0]]},
    "exponential_decay_length_penalty": {"exponential_decay_length_penalty": [3, 1.9]},
    "several": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 3, "min_new_tokens": 9},
    "min_length": {"min_length": 250, "eos_token_id": [2, *range(20, 120)]},  # prompts: 244, 63
    "min_new_tokens": {"min_new_tokens": 7, "eos_token_id": [2, *range(20, 120)]},
}


def entry_of(source: str, family: str, dtype: str, tiny_folder: Path) -> ModelEntry:
    if source == "demo":
        folder = settings.PROJECT / "engine" / "demo" / "checkpoints" / family
    else:
        folder = tiny_folder / family
    kind = registry.FAMILIES[family].kind
    name = f"{source}-{family}-{dtype}"
    return ModelEntry(name, name, family, kind, str(folder), folder, None, dtype, True)


@pytest.fixture(params=ALL)
def adapter(request: pytest.FixtureRequest, tiny_folder: Path, cache_dir: Path) -> Adapter:
    return registry.load(entry_of(*request.param, tiny_folder))


@pytest.fixture
def model(tiny_copy: Callable[..., Path]) -> Callable[..., Adapter]:
    """A tiny model with these generation settings."""

    def made(family: str, own: dict[str, Any]) -> Adapter:
        folder = tiny_copy(family)
        change(folder, "generation_config.json", **own)
        return loaded(folder, family)

    return made


def subject_of(adapter: Adapter, sample: Sample, folder: Path) -> Subject:
    request = VerifyRequest((adapter.info.name,), (sample,), QUESTION, runs=1)
    return Subject(adapter, sample, request, folder / "features", lambda: False)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_decoupled_cached_and_hooked_equal_generate(
    config: DecodeConfig, adapter: Adapter, sample: Sample, tmp_path: Path
) -> None:
    subject = subject_of(adapter, sample, tmp_path)
    plain = subject.plain(config)
    assert len(plain.ids) >= config.min_new_tokens
    for way, encodes in WAYS.items():
        found = getattr(subject, way)(config)
        assert found.ids == plain.ids, way
        assert any(module.calls for module in found.seen) is encodes
        assert found.result is None or found.result.cached is (way == "decoupled")
    for module in adapter.vision_modules():
        assert not module._forward_hooks and not module._forward_pre_hooks


@pytest.mark.parametrize("family", ["llava", "video_llava"])
def test_rows_come_from_the_layer_that_the_configuration_names(
    family: str, sample: Sample, tiny_folder: Path
) -> None:
    """In transformers' own code, so that no way of answering differs if it reads another layer."""
    adapter = registry.load(entry_of("tiny", family, "float32", tiny_folder))
    shown = adapter.preprocess(media.load(sample, adapter.kind), QUESTION)
    model = adapter.model.model
    assert model.config.vision_feature_layer == -2
    with torch.inference_mode():
        (rows,) = adapter.encode(shown).tensors.values()
        pixels = shown.pixels.reshape(-1, *shown.pixels.shape[-3:])
        layers = adapter.vision_modules()[0](pixels, output_hidden_states=True).hidden_states
        own, other = (
            model.multi_modal_projector(layers[at][:, int(family == "llava") :]) for at in (-2, -1)
        )
    rows = rows.reshape(own.shape)
    assert torch.allclose(rows, own, atol=1e-5) and not torch.allclose(rows, other, atol=1e-2)


# a checkpoint's generation_config.json


@pytest.mark.parametrize("family", ["eventgpt", pytest.param("llava", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SETTINGS)
def test_generation_settings_are_followed_in_every_way(
    name: str, family: str, model: Callable[..., Adapter], sample: Sample, tmp_path: Path
) -> None:
    """EventGPT's generate() counts new tokens only, LLaVA's the prompt too."""
    adapter = model(family, SETTINGS[name])
    subject = subject_of(adapter, sample, tmp_path)
    plain = subject.plain(GREEDY)
    for way in WAYS:
        assert getattr(subject, way)(GREEDY).ids == plain.ids, way
    with torch.inference_mode():  # in one pass, which rounding is measured by
        again = adapter.again(plain.embeds, subject.prepared, plain.ids)
    torch.testing.assert_close(again, plain.logits, rtol=0, atol=1e-4)
    adapter.rules = {}  # the control
    if name != "forced_bos_token_id":
        assert subject.decoupled(GREEDY).ids != plain.ids


def run(adapter: Adapter, sample: Sample, decoding: DecodeConfig) -> RunResult:
    asked = RunOptions(decode=decoding, cache="off").ask(sample, adapter.info.name, QUESTION)
    return single_run.run(adapter, asked, None)


@torch.inference_mode()
@pytest.mark.parametrize("family", ["eventgpt", "llava"])
def test_compiled_batched_and_drafted_answers_follow_the_settings_too(
    family: str,
    model: Callable[..., Adapter],
    sample: Sample,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiled, "_compile", lambda step, device: step)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "")
    adapter = model(family, SETTINGS["several"])
    samples = (sample, make_sample(tmp_path / "other", seed=1000))
    wanted = [subject_of(adapter, one, tmp_path).plain(GREEDY).ids for one in samples]
    fast = replace(GREEDY, backend="compiled")
    results = [run(adapter, one, fast) for one in samples]
    assert {one.backend for one in results} == {"compiled"}
    asked = RunOptions(decode=GREEDY, cache="off")
    requests = [asked.ask(one, adapter.info.name, QUESTION) for one in samples]
    together = batch_run.run(adapter, requests, FeatureCache(tmp_path / "features", 64))
    for found in (results, together):
        assert [one.generation.token_ids for one in found if isinstance(one, RunResult)] == wanted
    prepared = adapter.preprocess(media.load(sample, adapter.kind), QUESTION)
    embeds = adapter.embed(prepared, adapter.encode(prepared))
    rules = adapter.rules_for(prepared, GREEDY)
    drafters = (
        PromptLookup(adapter.question_ids(prepared)[0].tolist()),
        ModelDrafter(adapter.decoder, embeds, rules),
        ModelDrafter(adapter.decoder, embeds, AnswerRules(GREEDY, adapter.eos_ids)),
    )
    for drafter in drafters:
        drafted = draft_loop.generate(
            adapter.decoder, embeds, rules, drafter, 4, lambda _: None, lambda: False
        )
        assert tuple(drafted.ids) == wanted[0]


def test_what_is_followed_and_what_is_not_is_said(
    model: Callable[..., Adapter], sample: Sample
) -> None:
    own = {"do_sample": True, "temperature": 0.2, "top_p": 0.9, "repetition_penalty": 1.2}
    adapter = model("llava", own)
    said = " ".join(run(adapter, sample, GREEDY).notes)
    assert "default is sampling (temperature 0.2, top_p 0.9)" in said
    assert "settings are used: repetition_penalty" in said
    assert adapter.info.generation == adapter.notes
    assert "beam search with 4 beams" in " ".join(notes({"num_beams": 4}))
    assert notes({"do_sample": False, "repetition_penalty": 1.0, "num_beams": 1}) == ()
