"""8-bit and 4-bit: offered where they work, one sentence elsewhere, in every key and result."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers.quantizers.quantizers_utils import should_convert_module

from engine.errors import ModelUnavailable
from engine.models import families, registry
from engine.types import ModelInfo


def test_without_the_extra_one_sentence_says_what_to_install(
    tiny_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(families, "find_spec", lambda name: None)
    item = replace(registry.entry("tiny-llava"), quantization="4bit")
    assert families.quantizations() == ()
    reason = registry.unavailable(item)
    assert reason is not None and "asks for 4bit weights" in reason and "\n" not in reason
    assert "pip install bitsandbytes accelerate" in reason
    with pytest.raises(ModelUnavailable, match="do not work here"):
        registry.load(item)
    assert item not in registry.resident()


def test_the_extra_without_cuda_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "find_spec", lambda name: object())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert "needs CUDA" in (families.cannot_quantize() or "")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("STAGESCOPE_DEVICE", "cpu")
    assert families.quantizations() == ()
    monkeypatch.setenv("STAGESCOPE_DEVICE", "cuda:0")
    assert families.quantizations() == ("8bit", "4bit")


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
    assert families.quantization_options(info(None)) == {}
    for kind, field in (("8bit", "load_in_8bit"), ("4bit", "load_in_4bit")):
        told = families.quantization_options(info(kind))
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
    config = families.quantization_options(info("8bit"))["quantization_config"]
    for item in registry.entries():
        model = registry.load(item).model
        found = _converted(model, config["llm_int8_skip_modules"])
        assert len(found) == 2 * 7  # two layers of seven each
        assert not any(word in name for name in found for word in ("tower", "project", "adaptor"))
    bare = _converted(model, list(families.UNTOUCHED))  # control: names alone are not enough
    assert any("vision_tower" in name for name in bare)
