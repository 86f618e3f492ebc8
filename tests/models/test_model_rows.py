"""The rows of models.toml: a family that is not named, what a model is shown, a download's size."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine.models import registry
from tests.models import published_folders
from tests.models.conftest import hub_snapshot

HUB = "Qwen/Qwen2.5-VL-3B-Instruct"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("STAGESCOPE_MODELS", str(tmp_path / "models.toml"))
    return tmp_path


def write(home: Path, checkpoint: str, more: str = "") -> None:
    row = f'[[model]]\nname = "one"\ncheckpoint = "{checkpoint}"\n{more}\n'
    (home / "models.toml").write_text(row)


def test_a_label_is_one_line_of_characters(home: Path) -> None:
    write(home, "a/b", r'label = "a\uFFFEb\u2028c\u0085"')
    assert registry.entry("one").label == "a\ufffdb\ufffdc\ufffd"
    write(home, "a/b", r'label = "a\u001b\nb"')
    assert registry.entry("one").label == "a\ufffd\ufffdb"
    write(home, "a/b", 'label = "  "')
    assert registry.entry("one").label == "one"


def test_a_folder_tells_its_family(home: Path, tiny_folder: Path) -> None:
    for family in ("eventgpt", "video_llava", "llava"):
        shutil.copytree(tiny_folder / family, home / family)
        write(home, f"./{family}")
        found = registry.entry("one")
        assert found.family == family and found.kind == registry.FAMILIES[family].kind
    published_folders.build(home / "qwen")
    write(home, "./qwen")
    found = registry.entry("one")
    assert (found.family, found.kind) == ("transformers", "image")
    write(home, "./llava", 'family = "transformers"')
    assert registry.entry("one").family == "transformers"


def test_a_hub_name_is_transformers_until_its_files_are_here(home: Path, tiny_folder: Path) -> None:
    write(home, "llava-hf/small", 'revision = "main"')
    found = registry.entry("one")
    assert (found.family, found.folder) == ("transformers", None)
    shutil.copytree(tiny_folder / "llava", hub_snapshot(home / "hub", "llava-hf/small"))
    assert registry.entry("one").family == "llava"


def test_a_config_that_cannot_be_read_is_said_later(home: Path) -> None:
    folder = published_folders.build(home / "broken")
    (folder / "config.json").write_text("{")
    write(home, "./broken")
    found = registry.entry("one")
    assert found.family == "transformers"
    assert "config.json" in (registry.unavailable(found) or "")


def test_the_size_of_a_download_is_said(home: Path) -> None:
    write(home, HUB, 'download = "7.5 GB"')
    reason = registry.unavailable(registry.entry("one")) or ""
    assert "run `python -m engine download one` once (about 7.5 GB), or" in reason
    write(home, HUB)
    assert "(about" not in (registry.unavailable(registry.entry("one")) or "(about")
