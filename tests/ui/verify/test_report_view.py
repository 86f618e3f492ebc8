"""A running verification and its certificate are drawn alike; odd files are refused."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import BadInput
from engine.verify.verdict import CHECKS, ONCE
from tests.ui.verify.made import A, B, certificate, verdicts, view
from ui.verify import report_view


def test_a_view_and_its_certificate_hold_the_same_rows() -> None:
    live = report_view.of_view(view(verdicts()))
    kept = report_view.of_certificate(certificate())
    assert live.rows == kept.rows and live.samples == kept.samples == (A, B)
    assert (live.prompt, live.runs) == (kept.prompt, kept.runs) == ("Why?", 2)
    assert not live.ended and kept.ended


def test_a_job_that_has_its_certificate_shows_what_that_says() -> None:
    done = report_view.of_view(view([], state="done", certificate=certificate()))
    assert done.certificate is not None and done.models[0].verified is True
    assert done.models[0].place == "cpu (x86_64)"


def test_progress_counts_checks_and_forgets_what_a_failed_model_leaves_out() -> None:
    all_checks = 2 * (len(CHECKS) - len(ONCE)) + len(ONCE)
    start = report_view.of_view(view(verdicts()[:4]))
    assert start.progress == (4, all_checks)
    failed = verdicts()[:1]
    request = view([]).request
    two = type(request)(("one", "two"), request.samples, runs=2)
    later = report_view.of_view(view(failed, request=two, doing=("two", A, "timing")))
    assert later.progress == (1, 1 + all_checks)
    assert report_view.of_view(view(failed, state="cancelled")).progress == (1, 1)


def test_a_model_left_behind_has_its_verdict_before_the_others() -> None:
    request = view([]).request
    two = type(request)(("one", "two"), request.samples, runs=2)
    found = report_view.of_view(view(verdicts(), request=two, doing=("two", A, "timing")))
    assert [model.verified for model in found.models] == [True, None]


def test_nobody_is_verified_by_a_job_that_was_cancelled() -> None:
    found = report_view.of_view(view(verdicts(), state="cancelled"))
    assert found.models[0].verified is False


def test_the_worst_finding_of_a_cell_comes_first() -> None:
    rows = [*verdicts()[:1], *verdicts(changed={("answer", A): "failed"})[:1]]
    found = report_view.of_view(view(rows)).found("one", "answer", A)
    assert [row.outcome for row in found] == ["failed", "passed"]


def test_a_certificate_that_contradicts_itself_is_not_believed() -> None:
    odd = certificate(verdicts(changed={("keys", B): "failed"}))
    odd["models"][0]["verified"] = True
    assert report_view.of_certificate(odd).models[0].verified is False
    assert report_view.of_certificate(certificate()).models[0].verified is True


def test_an_open_measurement_does_not_take_the_proof_away() -> None:
    still_good = certificate(verdicts(changed={("observer", ""): "unresolved"}))
    assert report_view.of_certificate(still_good).models[0].verified is True


def _set(key: str, value: Any) -> Any:
    return lambda found: found.__setitem__(key, value)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda c: c.pop("request"),
        _set("verdicts", [{"check": "answer"}]),
        _set("verdicts", "passed"),
        _set("models", [{"name": "one"}]),
        lambda c: c["verdicts"][0].update(outcome="EXCELLENT"),
        lambda c: c["verdicts"][0].update(evidence="seen"),
        lambda c: c["verdicts"][0].update(figure="many"),
        lambda c: c["request"].update(runs=None),
        lambda c: c["request"].pop("dataset"),
        lambda c: c.pop("libraries"),
        lambda c: c["models"][0].update(environment=[]),
    ],
)
def test_a_file_that_is_no_certificate_is_a_sentence(spoil: Any) -> None:
    found = certificate()
    spoil(found)
    with pytest.raises(BadInput, match="is damaged or incomplete"):
        report_view.of_certificate(found)


def test_a_check_of_another_version_has_a_row_of_its_own() -> None:
    found = certificate()
    found["verdicts"].append({**found["verdicts"][0], "check": "smell", "title": "Smell"})
    read = report_view.of_certificate(found)
    assert read.checks == (*CHECKS, "smell")
    assert read.title("smell") == ("Smell", report_view.OTHER_VERSION)
    assert read.title("keys") == CHECKS["keys"]


def test_names_of_samples_are_short_and_differ() -> None:
    long = "a_very_long_name_of_a_sample"
    twin = A[:8] + B[8:].replace("a", "b")
    names = report_view.short_names([A, B, long, long + "2", twin])
    assert names[A] == "357e6028" and len(names[long]) <= 14
    assert len(set(names.values())) == 5


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        ("2026-11-21T12:30:09+02:00", "2026-11-21 10:30 UTC"),
        ("yesterday", "yesterday"),
        ("x" * 999, "x" * 40),
    ],
)
def test_when_it_was_made(made: str, shown: str) -> None:
    assert report_view.made({"made": made}) == shown
