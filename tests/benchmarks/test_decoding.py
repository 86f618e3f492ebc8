"""The benchmark of decoding, on a tiny model: other tokens and other counts are no figure."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import decoding
from engine.models import registry
from engine.pipeline import single_run
from engine.types import Sample


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "TOKENS", 6)
    monkeypatch.setattr(decoding, "TARGETS", {"eager": 1.5})


def test_a_model_is_measured(tiny_models: Path, sample: Sample) -> None:
    (row,) = decoding.model(registry.load(registry.entry("tiny-eventgpt")), sample, 2)
    assert row["n"] == 2 and row["ratio"] > 0 and "6 tokens, eager" in row["what"]


@pytest.mark.parametrize("change", [lambda ids: (*ids[:-1], ids[-1] + 1), lambda ids: ids[:2]])
def test_other_tokens_are_no_figure(
    tiny_models: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch, change: Any
) -> None:
    run = single_run.run

    def changed(adapter: Any, request: Any, cache: Any) -> Any:
        found = run(adapter, request, cache)
        ids = found.generation.token_ids
        ids = ids if request.how.mode == "hooked" else change(ids)
        return replace(found, generation=replace(found.generation, token_ids=ids))

    monkeypatch.setattr(single_run, "run", changed)
    with pytest.raises(SystemExit, match="gives other tokens than generate"):
        decoding.model(registry.load(registry.entry("tiny-llava")), sample, 1)
