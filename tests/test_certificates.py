"""A certificate holds while nothing has changed, and for nobody else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine import certificates
from engine.errors import BadInput
from engine.types import Sample
from engine.verify.verdict import CHECKS, Finding, Verdict, VerifyRequest

HERE = {"device": "cpu", "hardware": "x86_64", "threads": "1"}
REQUEST = VerifyRequest(("m",), (Sample("s", "q"),))


def certificate(good: bool = True) -> dict[str, object]:
    outcome = "passed" if good else "failed"
    verdicts = [Verdict(check, "m", "s", Finding(outcome, "So.")) for check in CHECKS]
    models = [certificates.model_entry("m", "d1", "float32", HERE, verdicts)]
    return certificates.make(REQUEST, models, verdicts, "/data")


@pytest.fixture(autouse=True)
def kept_here(cache_dir: Path) -> Path:
    return cache_dir


def test_a_kept_certificate_is_found_and_holds_everything() -> None:
    made = certificate()
    path = certificates.keep(made)
    assert certificates.read(path) == made and certificates.kept() == [made]
    assert certificates.hash_for("d1", "float32", HERE) == made["hash"]
    rows = made["verdicts"]
    assert isinstance(rows, list) and [row["check"] for row in rows] == list(CHECKS)
    assert set(rows[0]) >= {"title", "model", "sample", "outcome", "sentence", "figure", "bound"}


@pytest.mark.parametrize(
    ("digest", "dtype", "place"),
    [
        ("d2", "float32", HERE),
        ("d1", "bfloat16", HERE),
        ("d1", "float32", HERE | {"device": "cuda:0"}),
        ("d1", "float32", HERE | {"hardware": "another"}),
    ],
)
def test_another_checkpoint_dtype_or_device_is_unverified(
    digest: str, dtype: str, place: dict[str, str]
) -> None:
    certificates.keep(certificate())
    assert certificates.hash_for(digest, dtype, place) is None


def test_pixels_of_one_setting_prove_nothing_about_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    certificates.keep(certificate())
    assert certificates.hash_for("d1", "float32", HERE, pixels="fast") is None
    monkeypatch.setitem(globals(), "REQUEST", replace(REQUEST, pixels="fast"))
    fast = certificate()
    certificates.keep(fast)
    assert certificates.hash_for("d1", "float32", HERE, pixels="fast") == fast["hash"]
    assert certificates.hash_for("d1", "float32", HERE) not in (None, fast["hash"])


def test_a_failed_verification_verifies_nobody_and_takes_back_an_earlier_one() -> None:
    early = certificate() | {"made": "2020-01-01T00:00:00+00:00"}
    early["hash"] = certificates.content_hash(early)
    certificates.keep(early)
    assert certificates.hash_for("d1", "float32", HERE) == early["hash"]
    certificates.keep(certificate(good=False))
    assert certificates.hash_for("d1", "float32", HERE) is None


def test_a_certificate_that_its_verdicts_contradict_is_none() -> None:
    for forged in (certificate() | {"verdicts": []}, certificate(good=False)):
        for model in forged["models"]:  # type: ignore[attr-defined]
            model["verified"] = True
        sealed = forged | {"hash": certificates.content_hash(forged)}
        assert certificates.read(certificates.keep(sealed)) is None
    twice = certificate()
    twice["models"] = twice["models"] * 2  # type: ignore[operator]
    sealed = twice | {"hash": certificates.content_hash(twice)}
    assert certificates.read(certificates.keep(sealed)) is None


def test_changed_code_makes_it_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    made = certificate()
    certificates.keep(made)
    assert not certificates.stale(made)
    monkeypatch.setattr(certificates, "engine_digest", lambda: "other code")
    assert certificates.stale(made) and certificates.hash_for("d1", "float32", HERE) is None


def test_the_engines_digest_changes_with_each_source_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models").mkdir()
    file = tmp_path / "models" / "base.py"
    file.write_text("a = 1\n")
    monkeypatch.setattr(certificates, "__file__", str(tmp_path / "certificates.py"))
    digest = certificates.engine_digest.__wrapped__
    before = digest()
    assert digest() == before
    file.write_text("a = 2\n")
    assert digest() != before


def test_what_is_no_number_is_null() -> None:
    odd = Verdict("sight", "m", "s", Finding("failed", "So.", float("nan"), 1.0, "", {"a": (1,)}))
    made = certificates.make(REQUEST, [], [odd], "/data")
    (row,) = made["verdicts"]
    assert row["figure"] is None and row["evidence"] == {"a": [1]}


@pytest.mark.parametrize("lost", ["made", "models", "verdicts", "request", "engine"])
def test_a_sealed_file_of_another_form_is_no_certificate(lost: str) -> None:
    made = certificate()
    for odd in ({k: v for k, v in made.items() if k != lost}, made | {lost: 7}):
        sealed = odd | {"hash": certificates.content_hash(odd)}
        assert certificates.read(certificates.keep(sealed)) is None
    assert certificates.kept() == [] and certificates.hash_for("d1", "float32", HERE) is None


@pytest.mark.parametrize("damage", ["verdict", "garbage", "hash", "format", "list"])
def test_what_was_tampered_with_is_no_certificate(damage: str) -> None:
    made = certificate(good=False)
    path = certificates.keep(made)
    if damage == "verdict":
        for model in made["models"]:  # type: ignore[attr-defined]
            model["verified"] = True
    changed = {"verdict": made, "hash": made | {"hash": "0"}, "format": made | {"format": 1}}
    texts = {"garbage": "{", "list": "[]"}
    path.write_text(texts.get(damage) or json.dumps(changed[damage]))
    assert certificates.read(path) is None and certificates.kept() == []


def test_a_folder_that_cannot_be_written_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STAGESCOPE_RUNS_DIR", str(tmp_path / "file"))
    with pytest.raises(BadInput, match="set STAGESCOPE_RUNS_DIR to another folder"):
        certificates.keep(certificate())
    assert certificates.kept() == []


@pytest.mark.parametrize(
    ("ran", "pixels", "flags"),
    [
        ("eager", "exact", " --backend eager"),
        ("compiled", "exact", " --backend compiled"),
        ("compiled", "fast", " --backend compiled --pixels fast"),
        ("generate", "exact", ""),
    ],
)
def test_the_command_verifies_what_ran(ran: str, pixels: str, flags: str) -> None:
    words = certificates.command("ev", ran, pixels)
    assert words == f"python -m engine verify --models ev{flags}"
