"""What a card claims, and that it claims nothing which a check did not find."""

from __future__ import annotations

import pytest

from engine.verify.limits import ALWAYS
from engine.verify.verdict import CHECKS, ONCE
from tests.ui.verify.made import A, B, certificate, verdicts, view
from ui.verify import report_view
from ui.verify.proof_summary import CLAIMS, Summary, summary


def of(found: report_view.Report) -> Summary:
    return summary(found, found.models[0])


def test_a_verified_model_says_what_was_proved_and_where_that_ends() -> None:
    said = of(report_view.of_certificate(certificate()))
    assert said.state == "verified" and said.headline.startswith("Verified:")
    assert said.proved == tuple(CLAIMS.values())
    limits, covered, *shared = said.not_proved
    assert tuple(shared) == ALWAYS
    for part in ("these 2 samples", "this question", "float32", "cpu (x86_64)"):
        assert part in limits
    for part in ("272 tokens", "372 positions", "natural end", "batches of up to 4", "prefixes"):
        assert part in covered


def test_every_check_is_behind_exactly_one_claim() -> None:
    behind = [check for checks in CLAIMS for check in checks]
    assert sorted(behind) == sorted(CHECKS)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("outcome", ["failed", "unresolved"])
def test_a_claim_is_not_made_when_one_of_its_checks_is_not_passed(check: str, outcome: str) -> None:
    where = "" if check in ONCE else B
    said = of(report_view.of_certificate(certificate(verdicts(changed={(check, where): outcome}))))  # type: ignore[dict-item]
    claim = next(words for checks, words in CLAIMS.items() if check in checks)
    assert claim not in said.proved and len(said.proved) == len(CLAIMS) - 1
    word = "Failed" if outcome == "failed" else "Open"
    assert said.not_proved[0].startswith(f"{word}: {CHECKS[check][0]}")
    if outcome == "failed":
        assert (
            said.state == "refused"
            and f"1 of {2 * len(CHECKS) - len(ONCE)} checks failed" in said.headline
        )


def test_a_tie_is_said() -> None:
    said = of(
        report_view.of_certificate(certificate(verdicts(changed={("equal_hooked", A): "tie"})))
    )
    assert said.state == "verified" and "1 numeric tie" in said.headline


def test_a_sample_that_it_cannot_take_is_said_and_counts_for_nothing() -> None:
    kept = [verdict for verdict in verdicts() if verdict.sample != B]
    other = [v for v in verdicts(changed={("answer", B): "skipped"}) if v.outcome == "skipped"]
    said = of(report_view.of_certificate(certificate([*kept, *other])))
    assert said.state == "verified" and "on 1 sample." in said.headline
    assert said.proved == tuple(CLAIMS.values())
    skipped, limits, *_ = said.not_proved
    assert skipped.startswith("Cannot run: Answers") and "beyond this sample" in limits


def test_findings_on_several_samples_are_one_sentence() -> None:
    changed = {("keys", A): "failed", ("keys", B): "failed"}
    said = of(report_view.of_certificate(certificate(verdicts(changed=changed))))  # type: ignore[arg-type]
    (about,) = [line for line in said.not_proved if "Cache keys" in line]
    assert about == "Failed: Cache keys, on 2 of 2 samples. First: keys says so."


def test_while_it_goes_on_nothing_is_claimed() -> None:
    said = of(report_view.of_view(view(verdicts()[:5])))
    assert said.state == "checking" and said.proved == () and said.not_proved == ()
    assert said.headline == "5 checks done, none failed so far."
    failed = of(report_view.of_view(view(verdicts(changed={("answer", A): "failed"})[:5])))
    assert failed.state == "refused" and "1 of 5 checks failed" in failed.headline
    waiting = of(report_view.of_view(view([], doing=("", "", ""))))
    assert waiting.state == "waiting"


def test_what_was_cancelled_says_what_was_not_done() -> None:
    said = of(report_view.of_view(view(verdicts()[:5], state="cancelled")))
    assert said.state == "unfinished" and "did not finish" in said.headline
    assert "were not done on every sample: see the table" in said.not_proved[0]
    late = of(report_view.of_view(view(verdicts()[:-3], state="cancelled")))
    assert late.not_proved[0] == "Not done on every sample: Damaged cache, Effect of the input."
    whole = of(report_view.of_view(view(verdicts(), state="cancelled")))
    assert "there is no certificate" in whole.headline
