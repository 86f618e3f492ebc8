"""A checkpoint's generation_config.json is followed: equal to its own generate() on every path."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from engine import media
from engine.decoding import compiled, decode
from engine.decoding.generation_rules import AnswerRules, GenerationRules, notes, refused
from engine.models.adapter import Adapter
from engine.pipeline import batch_run, draft_loop, single_run
from engine.pipeline.draft_loop import ModelDrafter, PromptLookup
from engine.pipeline.feature_cache import FeatureCache
from engine.types import DecodeConfig, RunOptions, RunRequest, Sample
from engine.verify import runner
from engine.verify.verdict import Verdict, VerifyRequest
from tests.conftest import make_sample
from tests.models.conftest import loaded
from tests.tiny import unload_all
from tests.verify.conftest import Notes, steps_for

pytestmark = [pytest.mark.loads, pytest.mark.usefixtures("cache_dir")]
QUESTION = "What is it?"
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
    "min_length": {"min_length": 45, "eos_token_id": [2, *range(20, 120)]},
    "min_new_tokens": {"min_new_tokens": 7, "eos_token_id": [2, *range(20, 120)]},
}
FAMILIES = ("llava", "video_llava", "eventgpt")
OTHERS = [pytest.param(one, marks=pytest.mark.slow) for one in FAMILIES[:-1]]


@pytest.fixture
def model(tiny_folder: Path, tmp_path: Path) -> Callable[..., Adapter]:
    """A tiny model with these generation settings."""

    def made(family: str, settings: dict[str, Any], name: str = "copy") -> Adapter:
        folder = Path(shutil.copytree(tiny_folder / family, tmp_path / name / family))
        path = folder / "generation_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | settings))
        return loaded(folder, family)

    return made


@torch.inference_mode()
def own_answer(adapter: Adapter, sample: Sample, tokens: int = GREEDY.max_new_tokens) -> list[int]:
    """The model's own greedy generate(), by the generation configuration in its folder alone."""
    prepared = adapter.preprocess(media.load(sample, adapter.kind), QUESTION)
    config = GenerationConfig.from_pretrained(adapter.info.source)
    config.max_new_tokens, config.do_sample = tokens, False
    out: list[int] = adapter.generate(prepared, generation_config=config)[0].tolist()
    prompt = prepared.input_ids[0].tolist()
    return out[len(prompt) :] if out[: len(prompt)] == prompt else out


def go(adapter: Adapter, sample: Sample, **more: Any) -> list[int]:
    config = more.pop("decode", GREEDY)
    request = RunRequest(
        sample, adapter.info.name, QUESTION, RunOptions(decode=config, **{"cache": "off"} | more)
    )
    return list(single_run.run(adapter, request, None).generation.token_ids)


@pytest.mark.parametrize("family", [*OTHERS, FAMILIES[-1]])
@pytest.mark.parametrize("name", SETTINGS)
def test_eager_and_hooked_answers_are_the_models_own(
    name: str, family: str, model: Callable[..., Adapter], sample: Sample
) -> None:
    adapter = model(family, SETTINGS[name])
    wanted = own_answer(adapter, sample)
    assert go(adapter, sample) == wanted
    assert go(adapter, sample, mode="hooked") == wanted
    prepared = adapter.preprocess(media.load(sample, adapter.kind), QUESTION)
    with torch.inference_mode():
        config = decode.generation_config(adapter.rules_for(prepared, GREEDY))
        rows = adapter.encode(prepared)
        given = adapter.generate_from_features(prepared, rows, generation_config=config)
    assert given[0].tolist() == wanted


def test_the_settings_change_answers(model: Callable[..., Adapter], sample: Sample) -> None:
    """Control: or the equality above would prove nothing."""
    before = go(model("eventgpt", {}, "plain"), sample)
    changed = {n for n, s in SETTINGS.items() if go(model("eventgpt", s, n), sample) != before}
    assert SETTINGS.keys() - changed <= {"forced_bos_token_id"}


@pytest.mark.parametrize("family", [*OTHERS, FAMILIES[-1]])
def test_compiled_and_batched_answers_are_too(
    family: str,
    model: Callable[..., Adapter],
    sample: Sample,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiled, "_compile", lambda step, device: step)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "")
    adapter = model(family, SETTINGS["several"])
    other = make_sample(tmp_path / "other", seed=1000)
    wanted = [own_answer(adapter, one) for one in (sample, other)]
    fast = replace(GREEDY, backend="compiled")
    assert [go(adapter, one, decode=fast) for one in (sample, other)] == wanted
    requests = [
        RunRequest(one, adapter.info.name, QUESTION, RunOptions(decode=GREEDY, cache="off"))
        for one in (sample, other)
    ]
    results = batch_run.run(adapter, requests, FeatureCache(tmp_path / "features", 64))
    found = [list(one.generation.token_ids) for one in results if not isinstance(one, str)]
    assert found == wanted


@torch.inference_mode()
@pytest.mark.parametrize("name", ["repetition_penalty", "several", "suppress_tokens"])
def test_drafted_answers_are_too(name: str, model: Callable[..., Adapter], sample: Sample) -> None:
    adapter = model("llava", SETTINGS[name])
    wanted = own_answer(adapter, sample)
    prepared = adapter.preprocess(media.load(sample, adapter.kind), QUESTION)
    embeds = adapter.embed(prepared, adapter.encode(prepared))
    rules = adapter.rules_for(prepared, GREEDY)
    drafters = (
        PromptLookup(adapter.question_ids(prepared)[0].tolist()),
        ModelDrafter(adapter.decoder, embeds, rules),
        ModelDrafter(adapter.decoder, embeds, AnswerRules(GREEDY, adapter.eos_ids)),
    )
    for drafter in drafters:
        found = draft_loop.generate(
            adapter.decoder, embeds, rules, drafter, 4, lambda _: None, lambda: False
        )
        assert found.ids == wanted


def test_the_users_length_is_kept(model: Callable[..., Adapter], sample: Sample) -> None:
    """A checkpoint's least length neither exceeds the most nor lowers the user's least."""
    adapter = model("llava", {"min_new_tokens": 50, "eos_token_id": [2, *range(20, 120)]})
    assert len(go(adapter, sample, decode=DecodeConfig(6))) == 6
    assert adapter.rules.options(DecodeConfig(60, min_new_tokens=55), 0)["min_new_tokens"] == 55


def test_what_is_followed_and_what_is_not_is_said(
    model: Callable[..., Adapter], sample: Sample
) -> None:
    settings = {"do_sample": True, "temperature": 0.2, "top_p": 0.9, "repetition_penalty": 1.2}
    adapter = model("llava", settings)
    request = RunRequest(
        sample, adapter.info.name, QUESTION, RunOptions(decode=GREEDY, cache="off")
    )
    said = " ".join(single_run.run(adapter, request, None).notes)
    assert "default is sampling (temperature 0.2, top_p 0.9)" in said
    assert "settings are used: repetition_penalty" in said
    assert adapter.info.generation == adapter.notes
    assert "beam search with 4 beams" in " ".join(notes({"num_beams": 4}))
    assert notes({"do_sample": False, "repetition_penalty": 1.0, "num_beams": 1}) == ()


def test_settings_without_effect_are_not_refused() -> None:
    settings = {"guidance_scale": 1, "encoder_no_repeat_ngram_size": 0, "repetition_penalty": 1.0}
    assert refused(settings) is None and GenerationRules.read(settings).values == {}


Verified = Callable[..., dict[str, Verdict]]
EQUAL = frozenset(("equal_hooked", "equal_decoupled", "equal_features", "greedy", "sampled"))


@pytest.fixture
def verified(
    tiny_models: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Verified]:
    """check -> verdict of a tiny model with these generation settings."""
    monkeypatch.setattr(runner, "STEPS", steps_for(EQUAL))
    kept = {f: (tiny_models / f / "generation_config.json").read_bytes() for f in FAMILIES}

    def verify(family: str, settings: dict[str, Any]) -> dict[str, Verdict]:
        unload_all()
        path = tiny_models / family / "generation_config.json"
        path.write_text(json.dumps(json.loads(kept[family]) | settings))
        request = VerifyRequest((f"tiny-{family}",), (sample,), max_new_tokens=8, runs=1)
        (examined,) = runner.verify(request, Notes())
        return {verdict.check: verdict for verdict in examined.verdicts}

    yield verify
    for family in FAMILIES:
        (tiny_models / family / "generation_config.json").write_bytes(kept[family])
    unload_all()


@pytest.mark.parametrize("family", [*OTHERS, FAMILIES[-1]])
def test_verify_passes_with_the_settings_and_fails_where_they_are_dropped(
    family: str, verified: Verified, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: no rule is read.  plain is the model's own configuration and answers otherwise."""
    settings = {"repetition_penalty": 1.7, "suppress_tokens": list(range(5, 150))}
    found = verified(family, settings)
    assert {found[check].outcome for check in EQUAL} == {"passed"}
    monkeypatch.setattr(GenerationRules, "read", classmethod(lambda cls, settings: cls()))
    found = verified(family, settings)
    assert "failed" in {found[check].outcome for check in ("equal_hooked", "equal_decoupled")}
