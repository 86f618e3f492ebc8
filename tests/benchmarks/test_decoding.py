"""The benchmark of decoding, on a tiny model: every way is counted, and none may stop early."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks import decoding
from engine.decoding import compiled
from engine.models import registry
from engine.types import Sample


@pytest.fixture(autouse=True)
def as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled step as it is written, few turns."""
    monkeypatch.setattr(compiled, "_compile", lambda step, device: step)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "")
    for name, value in {"PAIRS": 2, "TOKENS": 6, "GROWTH_TOKENS": 3, "GROWTH_TURNS": 1}.items():
        monkeypatch.setattr(decoding, name, value)
    monkeypatch.setattr(decoding, "LENGTHS", (2, 5))
    monkeypatch.setattr(decoding, "CONTEXTS", (7, 70))


@torch.inference_mode()
def test_a_model_is_measured_in_every_way(tiny_models: Path, sample: Sample) -> None:
    adapter = registry.load(registry.entry("tiny-eventgpt"))
    found = decoding._model(adapter, sample)
    answer = found["answer"]
    assert list(answer["cpu_ms"]) == ["generate", "eager", "compiled"]
    assert answer["generate_over_cpu"]["generate"]["median"] == 1.0
    assert answer["generate_over_wall"]["compiled"]["n"] == 2
    assert list(found["step_cpu_ms_by_new_tokens"]["eager"]) == ["2", "5"]
    assert found["step_cpu_ms_by_context"]["compiled"]["70"] > 0


@torch.inference_mode()
def test_a_way_that_stops_early_is_no_figure(tiny_models: Path, sample: Sample) -> None:
    embeds = decoding._embeds(registry.load(registry.entry("tiny-llava")), sample)
    with pytest.raises(RuntimeError, match="2 tokens were generated, but 6 were requested"):
        decoding._timed(lambda rows, tokens: [0.0, 1.0], embeds, 6)
