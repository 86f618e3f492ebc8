"""A running verification and its certificate are one report, which claims only what was found."""

import re
from dataclasses import replace

import pytest

from engine.verify import report
from engine.verify.report import CLAIMS, Report, Summary, of_certificate, summary
from engine.verify.verdict import ALWAYS, CHECKS, ONCE, unproved
from tests.ui.verify.made import REQUEST, A, B, certificate, job, verdicts

TWO = replace(REQUEST, models=("one", "two"))


def test_a_view_and_its_certificate_hold_the_same_rows() -> None:
    live = job(verdicts()).report
    kept = of_certificate(certificate())
    assert live.rows == kept.rows and live.samples == kept.samples == (A, B)
    assert live.runs == kept.runs == 2
    assert not live.ended and kept.ended


def test_a_job_that_has_its_certificate_shows_what_that_says() -> None:
    done = job([], state="done", certificate=certificate()).report
    assert done.certificate is not None and done.models[0].verified is True
    assert done.models[0].place == "cpu (x86_64)"


def test_progress_counts_checks_and_forgets_what_a_failed_model_leaves_out() -> None:
    all_checks = 2 * (len(CHECKS) - len(ONCE)) + len(ONCE)
    start = job(verdicts()[:4]).report
    assert start.progress == (4, all_checks)
    failed = verdicts()[:1]
    later = job(failed, request=TWO, step=("two", A, "timing")).report
    assert later.progress == (1, 1 + all_checks)
    assert job(failed, state="cancelled").report.progress == (1, 1)


def test_the_worst_finding_of_a_cell_comes_first() -> None:
    rows = [*verdicts(), *verdicts(changed={("answer", A): "failed"})[:1]]
    found = job(rows).report.found("one", "answer", A)
    assert [row.outcome for row in found] == ["failed", "passed"]


def test_a_check_of_another_version_has_a_row_of_its_own() -> None:
    found = certificate()
    found["verdicts"].append({**found["verdicts"][0], "check": "smell", "title": "Smell"})
    read = of_certificate(found)
    assert read.checks == (*CHECKS, "smell")
    assert read.title("smell") == ("Smell", report.OTHER_VERSION)
    assert read.title("sight") == CHECKS["sight"][:2]


def of(found: Report) -> Summary:
    return summary(found, found.models[0])


def limits(found: Report) -> list[str]:
    return unproved(found.of(found.models[0].name), found.samples)


def test_a_verified_model_says_what_was_proved_and_where_that_ends() -> None:
    for changed in ({}, {("equal_hooked", A): "tie"}):
        found = of_certificate(certificate(verdicts(changed=changed)))
        said = of(found)
        assert said.state == "verified" and said.headline == f"{len(CHECKS)} passed."
        assert said.proved == tuple(CLAIMS.values()) and limits(found) == list(ALWAYS)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("outcome", ["failed", "unresolved"])
def test_a_claim_is_not_made_when_one_of_its_checks_is_not_passed(check: str, outcome: str) -> None:
    where, some = ("", "") if check in ONCE else (B, " on 1 of 2 samples")
    found = of_certificate(certificate(verdicts(changed={(check, where): outcome})))  # type: ignore[dict-item]
    said = of(found)
    claim = next(words for checks, words in CLAIMS.items() if check in checks)
    assert claim not in said.proved and len(said.proved) == len(CLAIMS) - 1
    word = "Failed" if outcome == "failed" else "Open"
    assert limits(found)[0] == f"{word}: {CHECKS[check].title}{some}."
    if outcome == "failed":
        assert said.state == "refused" and f"; 1 failed: {CHECKS[check].title}." in said.headline


def test_while_it_goes_on_nothing_is_claimed() -> None:
    said = of(job(verdicts()[:5]).report)
    assert said.state == "checking" and said.proved == ()
    assert said.headline == "5 checks done, none failed so far."
    failed = of(job(verdicts(changed={("answer", A): "failed"})[:5]).report)
    assert failed.state == "refused" and "1 failed: Answers" in failed.headline
    waiting = of(job([], step=("", "", "")).report)
    assert waiting.state == "waiting"


def test_what_was_cancelled_says_what_was_not_done() -> None:
    early = job(verdicts()[:5], state="cancelled").report
    said = of(early)
    assert said.state == "unfinished" and "did not finish" in said.headline
    assert re.fullmatch(r"Not done on every sample: \d+ checks\.", limits(early)[0])
    late = limits(job(verdicts()[:-3], state="cancelled").report)
    assert late[0] == "Not done on every sample: Model unchanged; Effect of the input."
    whole = job(verdicts(), state="cancelled").report
    assert "there is no certificate" in of(whole).headline and not whole.models[0].verified
