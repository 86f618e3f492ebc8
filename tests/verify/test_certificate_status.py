"""Whether a certificate still says something about what runs now."""

import dataclasses
import platform
from pathlib import Path
from typing import Any

import pytest

from engine.models import checkpoint, checkpoint_files, registry
from engine.models.checkpoint import ModelEntry
from engine.storage.result_rows import Standing
from engine.verify import certificates
from tests.ui.verify.made import PLACE, certificate, verdicts

HERE = PLACE | {"hardware": platform.machine()}


@pytest.fixture
def entry(tiny_models: Path) -> ModelEntry:
    """A tiny model whose files have been hashed, as loading does."""
    found = registry.entry("tiny-llava")
    assert certificates.digest_now(found) is None
    folder = checkpoint.locate(found)
    assert checkpoint_files.digest(folder, found.name) == certificates.digest_now(found)
    return found


def proof(entry: ModelEntry, **changes: Any) -> dict[str, Any]:
    """A certificate for the entry as it is, but for what is changed."""
    as_is = {
        "digest": certificates.digest_now(entry),
        "name": entry.name,
        "environment": HERE,
        "shows": entry.kind,
    }
    return certificate(**as_is | changes)


def test_a_variant_needs_a_certificate_of_its_own(entry: ModelEntry) -> None:
    shown = registry.entry(f"{entry.name}@events")
    kept = proof(entry)
    certificates.store(kept)
    assert certificates.covering(entry) is not None  # the control
    assert certificates.covering(shown) is None
    certificates.store(proof(shown))
    assert certificates.covering(shown) is not None
    assert certificates.why_stale(proof(shown), [entry]) == ""
    gone = proof(shown, name="nobody@events")
    assert "no longer in models.toml" in certificates.why_stale(gone, [entry])


def test_a_certificate_covers_the_entry_it_verified_with_the_usual_settings(
    entry: ModelEntry,
) -> None:
    assert certificates.covering(entry) is None
    certificates.store(proof(entry, backend="compiled"))
    assert certificates.covering(entry) is None
    kept = proof(entry, backend="eager")
    certificates.store(kept)
    assert certificates.covering(entry) == Standing("verified", kept["hash"])
    assert certificates.why_stale(kept, [entry]) == ""


def test_each_change_takes_the_cover_away_and_says_why(entry: ModelEntry) -> None:
    changes: dict[str, dict[str, Any]] = {
        "checkpoint": {"digest": "0" * 32},
        "float16": {"dtype": "float16"},
        "device": {"environment": HERE | {"hardware": "abacus"}},
        "models.toml": {"name": "gone"},
    }
    for words, change in changes.items():
        kept = proof(entry, **change)
        assert words in certificates.why_stale(kept, [entry])
        if "name" not in change:  # what counts is the checkpoint, not what it is called
            certificates.store(kept)
    assert certificates.covering(entry) is None


def test_other_code_and_other_libraries_are_told_apart(
    entry: ModelEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = proof(entry)
    certificates.store(kept)
    monkeypatch.setattr(certificates, "engine_digest", lambda: "another")
    assert certificates.covering(entry) is None
    assert "engine's code" in certificates.why_stale(kept, [entry])
    kept["libraries"] = kept["libraries"] | {"torch": "0.1"}
    assert "torch was 0.1 then" in certificates.why_stale(kept, [entry])


def test_a_refused_model_is_not_covered(entry: ModelEntry) -> None:
    kept = proof(entry, found=verdicts(entry.name, {("observer", ""): "failed"}))
    certificates.store(kept)
    assert certificates.covering(entry) is None


def test_a_model_that_did_not_load_makes_no_certificate_stale(entry: ModelEntry) -> None:
    assert certificates.why_stale(proof(entry, digest="", dtype=""), [entry]) == ""


def test_a_checkpoint_that_is_gone_covers_nothing(entry: ModelEntry, tmp_path: Path) -> None:
    certificates.store(proof(entry))
    assert certificates.covering(dataclasses.replace(entry, folder=tmp_path / "gone")) is None
