"""The benchmark of families, on small models: every way is measured, and other tokens stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks import families
from engine.models import registry
from engine.models.adapter import Adapter
from engine.types import Sample
from tests import tiny


@pytest.fixture
def adapter(
    family_folder: Callable[[str], Path],
    cache_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Adapter]:
    monkeypatch.setattr(families, "TOKENS", 6)
    file = tmp_path / "models.toml"
    file.write_text(
        f'[[model]]\nname = "m"\ncheckpoint = "{family_folder("qwen3_vl")}"\nshows = "video"\n'
    )
    monkeypatch.setenv("STAGESCOPE_MODELS", str(file))
    yield registry.load(registry.entry("m"))
    tiny.unload_all()


def test_a_model_is_measured_in_every_way(adapter: Adapter, sample: Sample, tmp_path: Path) -> None:
    staged, cached = families.model(adapter, sample, tmp_path / "kept", 2)
    assert "in stages" in staged["what"] and "cached features" in cached["what"]
    assert cached["n"] == 2 and cached["ratio"] > 0


def test_features_that_are_not_read_are_no_figure(
    adapter: Adapter, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "takes", lambda *_: False)
    with pytest.raises(RuntimeError, match="its features were not as 'use' has them"):
        families.model(adapter, sample, tmp_path / "kept", 1)
