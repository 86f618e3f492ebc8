"""The Models page: what can be used here, and why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import settings
from tests.pages.conftest import Open


def test_every_entry_is_listed(app: Open) -> None:
    at = app("pages/models.py")
    words = " ".join(element.value for element in at.markdown)
    for label in ("Tiny eventgpt", "Tiny video", "Tiny llava"):
        assert label in words
    assert words.count("ready") == 3


def test_an_entry_that_cannot_be_loaded_says_why(
    app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = settings.load().models_file.read_text(encoding="utf-8")
    other = tmp_path / "models.toml"
    other.write_text(text, encoding="utf-8")  # its relative folders are not beside it
    monkeypatch.setenv("STAGESCOPE_MODELS", str(other))
    at = app("pages/models.py")
    assert sum("not on this machine" in element.value for element in at.text) == 3
