"""The rows of models.toml: a family that is not named, what a model is shown, a download's size."""

from pathlib import Path

import pytest

from engine.models import registry

HUB = "Qwen/Qwen2.5-VL-3B-Instruct"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("STAGESCOPE_MODELS", str(tmp_path / "models.toml"))
    return tmp_path


def write(home: Path, checkpoint: str, more: str = "") -> None:
    row = f'[[model]]\nname = "one"\ncheckpoint = "{checkpoint}"\n{more}\n'
    (home / "models.toml").write_text(row)


def test_the_size_of_a_download_is_said(home: Path) -> None:
    write(home, HUB, 'download = "7.5 GB"')
    reason = registry.unavailable(registry.entry("one")) or ""
    assert "run `python -m engine download one` once (about 7.5 GB), or" in reason
    write(home, HUB)
    assert "(about" not in (registry.unavailable(registry.entry("one")) or "(about")
