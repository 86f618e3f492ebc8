"""A certificate holds while nothing has changed, and for nobody else."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.errors import BadInput
from engine.media_options import Split, perturbations, window
from engine.storage.result_rows import UNVERIFIED, Standing
from engine.types import (
    Batch,
    DecodeConfig,
    Generation,
    ModelInfo,
    RunOptions,
    RunRequest,
    RunResult,
    Sample,
    Served,
    TensorSpec,
)
from engine.verify import certificates
from engine.verify.certificates import UnusableFile
from engine.verify.verdict import (
    CHECKS,
    SERVED,
    CheckFinding,
    ModelVerdicts,
    Outcome,
    Verdict,
    VerifyRequest,
)
from tests.ui.verify.made import covering_hash

HERE = {"device": "cpu", "hardware": "x86_64", "threads": "1"}
REQUEST = VerifyRequest(("m",), (Sample("s", "q"),))
REACHED = {
    "answer": {"new_tokens": 48, "positions": 148, "pictures": 8},
    "equal_batch": {"size": 4},
}


def certificate(good: bool = True, **outcomes: Outcome) -> dict[str, Any]:
    """All checks passed, but for `outcomes`; answers of 48 tokens in a context of 100."""
    usual: Outcome = "passed" if good else "failed"
    verdicts = [
        Verdict.of(
            check, "m", "s",
            CheckFinding(outcomes.get(check, usual), "So.", evidence=REACHED.get(check, {})),
        )
        for check in CHECKS
    ]  # fmt: skip
    info = ModelInfo("m", "llava", "c", None, "float32", False, digest="d1")
    found = ModelVerdicts("m", info, HERE, tuple(verdicts))
    return certificates.make(REQUEST, [found], "/data")


def result(
    digest: str = "d1",
    dtype: str = "float32",
    place: dict[str, str] = HERE,
    tokens: int = 48,
    config: DecodeConfig = DecodeConfig(),  # noqa: B008
    frames: str = "arange",
    **more: object,
) -> RunResult:
    """A result that is covered, but for what is changed."""
    info = ModelInfo("m", "video_llava", "c", None, dtype, False, digest=digest)
    request = RunRequest(Sample("s", "q"), "m", "Why?", RunOptions(decode=config, frames=frames))
    pictures = int(str(more.pop("pictures", 8)))
    whole: dict[str, object] = {
        "total_ms": 1.0,
        "cold": False,
        "shown": f"MP4: frames 0 of 9 ({frames})",
        "tensors": (TensorSpec("images", (pictures, 4, 4, 3), "uint8", 1),),
        "environment": place,
    }
    answer = Generation((1,) * tokens, "", "eos", 100, ())
    return RunResult(request, info, (), answer, **{**whole, **more})  # type: ignore[arg-type]


def standing(**changes: object) -> Standing:
    return certificates.certificate_status(result(**changes))  # type: ignore[arg-type]


def sealed(made: dict[str, Any]) -> dict[str, Any]:
    """With the hash of its content, whatever that says."""
    return made | {"hash": certificates.content_hash(made)}


def is_none(made: dict[str, Any]) -> bool:
    return isinstance(certificates.read(certificates.store(sealed(made))), UnusableFile)


pytestmark = pytest.mark.usefixtures("cache_dir")


def test_a_kept_certificate_is_found_and_holds_everything() -> None:
    made = certificate()
    path = certificates.store(made)
    assert certificates.read(path) == made and certificates.stored_certificates() == [made]
    assert covering_hash(result()) == made["hash"]
    rows = made["verdicts"]
    assert [row["check"] for row in rows] == list(CHECKS)
    assert set(rows[0]) >= {"title", "model", "sample", "outcome", "sentence", "figure", "bound"}


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"dtype": "bfloat16"}, "dtype bfloat16 (float32 verified)"),
        ({"place": HERE | {"device": "cuda:0"}}, "device cuda:0 (cpu verified)"),
        ({"place": HERE | {"hardware": "abacus"}}, "hardware abacus (x86_64 verified)"),
        ({"backend": "compiled"}, "backend compiled (eager verified)"),
        ({"tokens": 49, "config": DecodeConfig(max_new_tokens=300)}, "49 tokens (48 verified)"),
        ({"extent": "stream"}, "extent stream (slice verified)"),
        ({"pictures": 5}, "prompt with 5 pictures (8 verified)"),
        ({"batch": Batch("b", 8, (), 1.0, 8)}, "batch of 8 (4 verified)"),
    ],
)
def test_a_result_beyond_the_certificate_says_what_is_missing(
    change: dict[str, object], missing: str
) -> None:
    kept = certificate()
    certificates.store(kept)
    assert standing() == Standing("verified", str(kept["hash"]))
    found = standing(**change)
    assert (found.state, found.certificate) == ("not covered", kept["hash"])
    assert found.missing[0] == missing and covering_hash(result(**change)) is None  # type: ignore[arg-type]
    assert found.words.startswith(f"not covered: {missing}")


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ({"window": window("1.25s+50ms")}, "window 1.25s+50ms (whole recordings verified)"),
        ({"split": Split("time")}, "split time:5 (count:5 verified)"),
        ({"perturb": perturbations("drop:0.3"), "perturb_seed": 7}, "perturbed by drop:0.3 seed 7"),
        ({"perturb": perturbations("drop:0")}, None),  # control: nothing is changed
    ],
)
def test_another_part_split_or_change_of_a_recording_is_not_covered(
    options: dict[str, Any], missing: str | None
) -> None:
    certificates.store(certificate())
    usual = result(extent="slice")
    changed = replace(
        usual, request=replace(usual.request, how=replace(usual.request.how, **options))
    )
    assert certificates.certificate_status(usual).state == "verified"
    found = certificates.certificate_status(changed)
    assert found.words == f"not covered: {missing}" if missing else found.state == "verified"
    # Frames are cut by no window.
    frames = certificates.certificate_status(replace(changed, extent=None))
    assert (frames.state == "verified") == ("perturb" not in options or missing is None)


def test_pictures_of_several_sizes_are_counted_together() -> None:
    certificates.store(certificate())
    parts = [
        TensorSpec("images", (count, 4, size, 3), "uint8", 1) for count, size in ((3, 4), (5, 6))
    ]
    assert standing(tensors=tuple(parts)).state == "verified"
    assert standing(tensors=tuple(parts[:1])).missing[0].startswith("prompt with 3 pictures")


def test_a_verification_with_open_checks_takes_back_no_earlier_one() -> None:
    kept = certificate()
    certificates.store(kept)
    for outcome, state in (("unresolved", "verified"), ("failed", "unverified")):
        later = certificate(clock=outcome) | {"made": "2999-01-01T00:00:00+00:00"}
        certificates.store(sealed(later))
        assert standing().state == state


@pytest.mark.parametrize(
    ("open_", "change", "missing"),
    [
        ("sampled", {"config": DecodeConfig(temperature=0.5)}, "sampling"),
        ("ends", {}, "natural end"),
        ("equal_batch", {"batch": Batch("b", 2, (), 1.0, 2)}, "batch of 2 (none verified)"),
    ],
)
def test_what_a_check_left_open_is_not_covered(
    open_: str, change: dict[str, object], missing: str
) -> None:
    """The control: with that check passed the same result is verified."""
    certificates.store(certificate(**{open_: "unresolved"}))
    assert standing(**change).missing == (missing,)
    certificates.store(certificate())
    assert standing(**change).state == "verified"


def test_several_gaps_are_listed_together_and_a_forced_answer_extends_the_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    certificates.store(certificate(sampled="unresolved"))
    far = {"tokens": 96, "config": DecodeConfig(temperature=1.0)}
    words = standing(**far).words
    assert words == "not covered: sampling, 96 tokens (48 verified), 196 positions (148 verified)"
    monkeypatch.setitem(REACHED, "long", {"new_tokens": 272, "positions": 372})
    certificates.store(certificate())
    assert standing(**far).state == "verified"


def test_another_checkpoint_is_unverified() -> None:
    certificates.store(certificate())
    assert standing(digest="d2") == Standing("unverified")
    assert standing(digest="") == Standing("unverified")


def test_a_certificate_of_another_format_is_refused_in_one_sentence() -> None:
    certificates.store(sealed(certificate() | {"format": 2}))
    (refused,) = certificates.unusable_files()
    assert refused.reason == "it has format 2, but this program reads 5"
    assert standing() == Standing("unverified")


def test_coverage_that_the_verdicts_contradict_is_no_certificate() -> None:
    made = certificate()
    for model in made["models"]:
        model["coverage"]["new_tokens"] = 4096
    assert is_none(made)


def test_what_is_not_proved_stands_on_the_certificate() -> None:
    (model,) = certificate(long="unresolved")["models"]
    assert model["unproved"][0] == "Open: Long answers."
    assert any("language model" in sentence for sentence in model["unproved"])


def test_a_certificate_that_its_verdicts_contradict_is_none() -> None:
    for forged in (certificate() | {"verdicts": []}, certificate(good=False)):
        for model in forged["models"]:
            model["verified"] = True
        assert is_none(forged)
    made = certificate()
    assert is_none(made | {"models": made["models"] * 2})


def test_changed_code_makes_it_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    made = certificate()
    certificates.store(made)
    assert not certificates.stale(made)
    monkeypatch.setattr(certificates, "engine_digest", lambda: "other code")
    assert certificates.stale(made) and covering_hash(result()) is None


@pytest.mark.parametrize("lost", ["made", "models", "verdicts", "request", "engine"])
def test_a_sealed_file_of_another_form_is_no_certificate(lost: str) -> None:
    made = certificate()
    for odd in ({k: v for k, v in made.items() if k != lost}, made | {lost: 7}):
        assert is_none(odd)
    assert certificates.stored_certificates() == [] and covering_hash(result()) is None


@pytest.mark.parametrize("text", ["{", "[]", json.dumps(certificate() | {"hash": "0"})])
def test_what_was_tampered_with_is_no_certificate(text: str) -> None:
    path = certificates.store(certificate())
    path.write_text(text)
    assert isinstance(certificates.read(path), UnusableFile)
    assert certificates.stored_certificates() == []


def test_a_folder_that_cannot_be_written_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STAGESCOPE_RUNS_DIR", str(tmp_path / "file"))
    with pytest.raises(BadInput, match="set STAGESCOPE_RUNS_DIR to another folder"):
        certificates.store(certificate())
    assert certificates.stored_certificates() == []


SERVER = {"device": "gpu:8000", "server": "http://gpu:8000/v1", "software": "vLLM 1"}


def of_server(hours: float, **outcomes: Outcome) -> dict[str, Any]:
    """A certificate of a server, so many hours old."""
    evidence = {
        "new_tokens": 48,
        "positions": 148,
        "pictures": 8,
        "natural_end": True,
        "rules": ["arange"],
    }
    verdicts = [
        Verdict.of(check, "m", "", CheckFinding(outcomes.get(check, "passed"), "Found.",
                   evidence=evidence if check == "same" else {}))
        for check in SERVED
    ]  # fmt: skip
    info = ModelInfo("m", "served", "m at gpu:8000", None, "", False)
    found = ModelVerdicts("m", info, SERVER | {"model": "m"}, tuple(verdicts), "server")
    made = certificates.make(REQUEST, [found], "/data")
    made["made"] = (datetime.now(UTC) - timedelta(hours=hours)).isoformat(timespec="seconds")
    return sealed(made)


def served_standing(software: str = "vLLM 1", tokens: int = 48) -> Standing:
    answer = Served("gpu:8000", tokens, 0.0, 1.0, 9.0, (2.0,), (2,))
    found = result(digest="", served=answer, environment=SERVER | {"software": software})
    info = replace(found.model, checkpoint="m at gpu:8000")
    return certificates.certificate_status(replace(found, model=info))


def test_a_servers_certificate_ages_and_holds_for_its_software() -> None:
    assert served_standing() == UNVERIFIED
    certificates.store(of_server(30))
    assert served_standing().words == "not covered: proved 30 hours ago"
    certificates.store(of_server(3))
    assert served_standing().words == "the model it says, proved 3 hours ago"
    certificates.store(of_server(0.5))
    assert served_standing().words == "the model it says, proved within the hour"
    assert served_standing("vLLM 2") == UNVERIFIED
    assert served_standing(tokens=60).words == (
        "not covered: 60 tokens (48 verified), 160 positions (148 verified)"
    )


def test_a_server_whose_answers_differ_is_said_to_be_another_model() -> None:
    certificates.store(of_server(3))
    certificates.store(of_server(1, same="failed"))
    found = served_standing()
    assert (found.state, found.missing) == ("disproved", ("Found.",))
    assert found.words == "not the checkpoint as published"
