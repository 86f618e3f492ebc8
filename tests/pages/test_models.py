"""The Models page: what can be used here, and why not."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from engine import certificates, settings
from engine.models import checkpoint, registry
from tests.pages.conftest import Open
from tests.ui.verify.made import PLACE, certificate


def test_every_entry_is_listed(app: Open) -> None:
    at = app("pages/models.py")
    words = " ".join(element.value for element in at.markdown)
    for label in ("Tiny eventgpt", "Tiny video", "Tiny llava"):
        assert label in words
    assert words.count("ready") == 3
    assert words.count("unverified") == 3


def test_a_certificate_is_named_where_it_covers_a_model_now(app: Open) -> None:
    at = app("pages/models.py")
    entry = registry.entry("tiny-llava")
    folder = checkpoint.locate(entry)
    digest = checkpoint.digest(folder, entry.name, settings.load().hashes_file)
    here = PLACE | {"hardware": platform.machine()}
    kept = certificate(name=entry.name, digest=digest, environment=here)
    certificates.keep(kept)
    words = " ".join(element.value for element in at.run().markdown)
    assert words.count(f"verified {kept['hash'][:12]}") == 1 and words.count("unverified") == 2
    labels = [link.proto.label for link in at.get("page_link")]
    assert sum("certificate" in label for label in labels) == 1


def test_an_entry_that_cannot_be_loaded_says_why(
    app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = settings.load().models_file.read_text(encoding="utf-8")
    other = tmp_path / "models.toml"
    other.write_text(text, encoding="utf-8")  # its relative folders are not beside it
    monkeypatch.setenv("STAGESCOPE_MODELS", str(other))
    at = app("pages/models.py")
    assert sum("not on this machine" in element.value for element in at.text) == 3
