"""Timing checks on a busy machine: bounded tries, open with figures; real faults stay faults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from engine.machine.load import MachineLoad
from engine.verify import runner
from engine.verify.verdict import (
    BEYOND,
    TRIES,
    Attempt,
    CheckFinding,
    Outcome,
    final_finding,
    needs_retry,
)

QUIET = MachineLoad(0.0, 1000.0, 900.0, 2, 1, waited_ms=2.0, others=0.1, steal=0.0)
BUSY = MachineLoad(0.0, 1000.0, 450.0, 2, 1, waited_ms=500.0, others=1.5, steal=0.0)


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
    assert needs_retry([])


TIMINGS = ("clock", "accounted", "stage3")


def measured(monkeypatch: pytest.MonkeyPatch, rounds: Sequence[Attempt]) -> dict[str, CheckFinding]:
    """The runner's timing checks, if one measurement after the other gives these results."""
    left = iter(rounds)
    checks = object.__new__(runner.SampleChecks)
    monkeypatch.setattr(checks, "refused", lambda check: None, raising=False)
    monkeypatch.setattr(checks, "_late", lambda: [], raising=False)
    monkeypatch.setattr(checks, "_rounds", lambda: next(left), raising=False)
    monkeypatch.setattr(runner.stage_times, "load_of", lambda one: one.load)
    for name in ("accounted", "stage3"):
        monkeypatch.setattr(runner.stage_times, name, lambda one: one.finding)
    monkeypatch.setattr(runner.stage_times, "clock", lambda one, late: one.finding)
    return dict(checks._timings())


def test_a_busy_first_measurement_is_repeated_and_the_verdict_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = measured(monkeypatch, [tried("failed", BUSY), tried("passed", QUIET)])
    assert {found[name].outcome for name in TIMINGS} == {"passed"}
    assert all("Repeated: it had failed once" in found[name].sentence for name in TIMINGS)


def test_a_real_fault_still_fails_after_a_busy_first_measurement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = measured(monkeypatch, [tried("failed", BUSY), tried("failed", QUIET)])
    assert {found[name].outcome for name in TIMINGS} == {"failed"}
    found = measured(monkeypatch, [tried("failed", QUIET)])  # a quiet one is not repeated
    assert {found[name].outcome for name in TIMINGS} == {"failed"}
