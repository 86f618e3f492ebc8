"""Timing checks on a busy machine: bounded tries, open with figures; real faults stay faults."""

from __future__ import annotations

from typing import Any

import pytest

from engine.machine.load import MachineLoad
from engine.verify import busy_checks
from engine.verify.busy_checks import BEYOND, TRIES, Attempt, final_finding, needs_retry
from engine.verify.verdict import CheckFinding, Outcome

QUIET = MachineLoad(0.0, 1000.0, 900.0, 2, 1, waited_ms=2.0, others=0.1, steal=0.0, runnable=0.0)
BUSY = MachineLoad(0.0, 1000.0, 450.0, 2, 1, waited_ms=500.0, others=1.5, steal=0.0, runnable=4.0)


def tried(outcome: Outcome, load: MachineLoad | None, **evidence: Any) -> Attempt:
    return Attempt(CheckFinding(outcome, f"It {outcome}.", evidence=evidence), load)


def test_a_failure_on_a_busy_machine_is_looked_at_again_and_then_open() -> None:
    tries: list[Attempt] = []
    while needs_retry(tries):
        tries.append(tried("failed", BUSY))
    assert len(tries) == TRIES
    found = final_finding(tries)
    assert found.outcome == "unresolved" and found.evidence["tries"] == TRIES
    assert "machine busy" in found.sentence and "1.5 of 2 cores" in found.sentence
    assert "It failed." in found.sentence and found.evidence["machine_load"]["others"] == 1.5


@pytest.mark.parametrize("load", [QUIET, None])
def test_a_failure_on_a_quiet_machine_or_an_unmeasured_one_stands(load: MachineLoad | None) -> None:
    assert not needs_retry([tried("failed", load)])
    assert final_finding([tried("failed", load)]).outcome == "failed"


def test_a_failure_that_load_cannot_explain_stands() -> None:
    sure = tried("failed", BUSY, **{BEYOND: True})
    assert not needs_retry([sure]) and final_finding([sure]).outcome == "failed"


def test_one_quiet_failure_among_busy_ones_is_a_failure() -> None:
    tries = [tried("failed", BUSY), tried("failed", QUIET)]
    assert not needs_retry(tries) and final_finding(tries).outcome == "failed"


def test_a_later_pass_says_that_it_is_not_the_first_try() -> None:
    tries = [tried("failed", BUSY), tried("passed", BUSY)]
    assert not needs_retry(tries)
    found = final_finding(tries)
    assert found.outcome == "passed" and "had failed once on a busy machine" in found.sentence


def test_what_passes_at_once_is_left_as_it_is() -> None:
    assert final_finding([tried("passed", BUSY)]).sentence == "It passed."
    assert busy_checks.needs_retry([])
