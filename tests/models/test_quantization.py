"""8-bit and 4-bit: offered where they work, one sentence elsewhere, in every key and result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers.quantizers.quantizers_utils import should_convert_module

from engine.errors import ModelUnavailable
from engine.models import loading, quantization, registry
from engine.pipeline import single_run
from engine.storage.result_rows import ResultRow
from engine.types import DecodeConfig, ModelInfo, RunOptions, Sample


def test_without_the_extra_one_sentence_says_what_to_install(
    tiny_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantization, "find_spec", lambda name: None)
    item = replace(registry.entry("tiny-llava"), quantization="4bit")
    assert quantization.offered() == ()
    reason = registry.unavailable(item)
    assert reason is not None and "asks for 4bit weights" in reason and "\n" not in reason
    assert "pip install bitsandbytes accelerate" in reason
    with pytest.raises(ModelUnavailable, match="do not work here"):
        registry.load(item)
    assert item not in registry.resident()


def test_the_extra_without_cuda_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantization, "find_spec", lambda name: object())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert "needs CUDA" in (quantization.reason() or "")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("STAGESCOPE_DEVICE", "cpu")
    assert quantization.offered() == ()
    monkeypatch.setenv("STAGESCOPE_DEVICE", "cuda:0")
    assert quantization.offered() == ("8bit", "4bit")


def info(kind: str | None) -> ModelInfo:
    return ModelInfo(
        "a", "llava", "./a", None, "float16", False, device="cuda:0", quantization=kind
    )


class _Config(dict[str, Any]):
    """Stands for BitsAndBytesConfig, whose own checks ask for the extra."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(fields)


def test_what_loading_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformers, "BitsAndBytesConfig", _Config)
    assert quantization.options(info(None)) == {}
    for kind, field in (("8bit", "load_in_8bit"), ("4bit", "load_in_4bit")):
        told = quantization.options(info(kind))
        assert told["device_map"] == {"": torch.device("cuda:0")}
        config = told["quantization_config"]
        assert config[field] is True and len(config["llm_int8_skip_modules"]) > 10
    assert config["bnb_4bit_compute_dtype"] is torch.float16
    assert config["bnb_4bit_quant_type"] == "nf4"


def _converted(model: torch.nn.Module, skipped: list[str]) -> set[str]:
    """The linear layers that transformers would quantize, as it decides it."""
    return {
        name
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and should_convert_module(name, skipped)
    }


def test_only_the_language_model_is_quantized(
    tiny_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformers, "BitsAndBytesConfig", _Config)
    skipped = quantization.options(info("8bit"))["quantization_config"]["llm_int8_skip_modules"]
    for item in registry.entries():
        model = registry.load(item).model
        found = _converted(model, skipped)
        assert len(found) == 2 * 7  # two layers of seven each
        assert not any(word in name for name in found for word in ("tower", "project", "adaptor"))
    bare = _converted(model, list(quantization.UNTOUCHED))  # control: names alone are not enough
    assert any("vision_tower" in name for name in bare)


@pytest.mark.loads
@pytest.mark.parametrize(
    "family",
    ["qwen2_5_vl", "smolvlm", "video_llama_3", "lighton_ocr", "gemma4", "gemma3", "blip-2"],
)
def test_the_towers_of_other_families_are_left_alone(
    family: str, family_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformers, "BitsAndBytesConfig", _Config)
    skipped = quantization.options(info("4bit"))["quantization_config"]["llm_int8_skip_modules"]
    config = transformers.AutoConfig.from_pretrained(family_folder(family))
    with torch.device("meta"):
        model = transformers.AutoModelForImageTextToText.from_config(config)
    found = _converted(model, skipped)
    assert found and all("language_model" in name or "text_model" in name for name in found)


def test_a_result_names_it(tiny_models: Path, sample: Sample) -> None:
    adapter = registry.load(registry.entry("tiny-llava"))
    asked = RunOptions(decode=DecodeConfig(max_new_tokens=3)).ask(sample, "tiny-llava", "Why?")
    other = adapter.remade(replace(adapter.info, quantization="4bit"))
    for model, kind in ((adapter, None), (other, "4bit")):
        assert ResultRow.from_result(single_run.run(model, asked, None)).quantization == kind


def test_loading_hands_the_options_on(tiny_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through a class that stands for transformers': what it is told, and no move afterwards."""
    item, told, held = registry.entry("tiny-llava"), dict[str, Any](), torch.nn.Module()
    monkeypatch.setattr(held, "to", None)

    class Model(transformers.LlavaForConditionalGeneration):
        @classmethod
        def from_pretrained(cls, *_: Any, **options: Any) -> Any:
            told.update(options)
            report = {"missing_keys": (), "mismatched_keys": (), "unexpected_keys": ("stray",)}
            return held, report

    monkeypatch.setattr(quantization, "options", lambda _: {"quantization_config": "q"})
    card = replace(registry.card(item), quantization="8bit", device="cpu")
    model, known = loading.load_weights(Model, card, tiny_models / "llava")
    assert model is held and told["quantization_config"] == "q"
    assert told["local_files_only"] and told["weights_only"]
    assert known.extra == ("stray",) and known.parameters == card.parameters
