"""What proves a model, which samples are chosen, what is refused."""

import pytest

from engine.errors import BadInput
from engine.machine.load import MachineLoad
from engine.types import Sample
from engine.verify.verdict import (
    CHECKS,
    CheckFinding,
    Outcome,
    Verdict,
    VerifyRequest,
    choose,
    under_load,
    verified,
)

SAMPLES = tuple(Sample(str(number), "q") for number in range(10))


def verdicts(**outcomes: Outcome) -> list[Verdict]:
    return [
        Verdict.of(check, "m", "s", CheckFinding(outcomes.get(check, "passed"), ""))
        for check in CHECKS
    ]


@pytest.mark.parametrize("check", CHECKS)
def test_one_failure_or_one_missing_check_spoils(check: str) -> None:
    assert not verified(verdicts(**{check: "failed"}), "m")
    assert verified(verdicts(**{check: "unresolved"}), "m") == CHECKS[check].may_stay_open
    rest = [verdict for verdict in verdicts() if verdict.check != check]
    assert verified(rest, "m") == CHECKS[check].may_stay_open


def test_a_failed_or_open_check_of_another_sample_spoils() -> None:
    for outcome in ("failed", "unresolved"):
        bad = Verdict.of("answer", "m", "t", CheckFinding(outcome, "It raised."))
        assert not verified([*verdicts(), bad], "m")
    other = Verdict.of("answer", "m", "t", CheckFinding("skipped", "It has no MP4."))
    assert verified([*verdicts(), other], "m") and not verified([other], "m")


@pytest.mark.parametrize("number", [0, -1, 11])
def test_absurd_numbers_of_samples_are_refused(number: int) -> None:
    with pytest.raises(BadInput, match=f"samples is {number}, .*: choose a value from 1 to 10"):
        choose(SAMPLES, number)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"runs": 0}, "runs is 0"),
        ({"runs": 101}, "runs is 101"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0: choose a value from 8"),
        ({"models": ()}, "No model is named"),
        ({"samples": ()}, "No sample is chosen"),
        ({"prompt": " "}, "question is empty"),
    ],
)
def test_requests_that_cannot_be_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        VerifyRequest(**{"models": ("m",), "samples": SAMPLES, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("outcome", ["passed", "unresolved", "failed"])
def test_a_busy_machine_is_told_where_it_may_be_the_reason(outcome: Outcome) -> None:
    busy = MachineLoad(0.0, 1000.0, 450.0, 2, 1, waited_ms=500.0, others=1.5, steal=0.0)
    found = CheckFinding(outcome, "So it is.")
    told = under_load(found, busy)
    assert told.outcome == outcome and told.evidence["machine_load"]["others"] == 1.5
    assert ("The machine was busy: " in told.sentence) == (outcome != "passed")
    assert under_load(found, None) == found
