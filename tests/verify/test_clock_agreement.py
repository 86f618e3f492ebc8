"""Token times against what the head computed, and a run's length on two clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from engine.machine.clocks import Moment
from engine.types import Generation
from engine.verify.answer_paths import RecordedAnswer
from engine.verify.clock_agreement import clocks_differ, token_faults
from tests.verify.test_stage_times import result

SEEN = (20.0, 30.0, 40.0, 50.0, 60.0)


def answer(said: Sequence[float], seen: Sequence[float] = SEEN) -> RecordedAnswer:
    ids = tuple(range(len(seen)))
    one = result()
    generation = Generation(ids, "", "eos", 9, tuple(said))
    one = replace(one, generation=generation, clocks=(Moment(5, 9, 0), Moment(5.1, 9.1, 0)))
    nothing = torch.empty(0)
    return RecordedAnswer("decoupled", ids, nothing, nothing, (), one, tuple(seen))


def test_tokens_that_are_reported_as_they_are_computed_have_no_fault() -> None:
    assert list(token_faults(answer([t + 0.1 for t in SEEN]))) == []


def test_a_pause_before_one_token_is_reported_shifts_no_other() -> None:
    said = [20.1, 30.1, 95.0, 100.2, 110.2]
    seen = [20.0, 30.0, 40.0, 100.1, 110.1]
    assert list(token_faults(answer(said, seen))) == []


def test_times_that_are_made_up_are_a_fault_whatever_the_load() -> None:
    (late,) = token_faults(answer([1000.0 + 10 * i for i in range(5)]))
    assert late.sure and "after they were computed" in late.text
    (early,) = token_faults(answer([1.0 * i for i in range(5)]))
    assert early.sure and "before it was computed" in early.text


def test_a_constant_shift_may_be_a_busy_machine() -> None:
    (fault,) = token_faults(answer([t + 5 for t in SEEN]))
    assert not fault.sure and "5.0 ms (median)" in fault.text


def test_a_token_without_a_time_is_a_fault() -> None:
    (fault,) = token_faults(answer(SEEN[:3]))
    assert fault.sure and "3 token times are reported for 5 tokens" in fault.text


def test_a_clock_that_runs_slow_is_a_fault_and_a_wide_bracket_is_none() -> None:
    total = result().total_ms / 1000
    began = Moment(5.0, 9.0, 1e-6)
    fine = replace(result(), clocks=(began, Moment(5 + total, 9 + total, 1e-6)))
    assert list(clocks_differ(fine)) == []
    slow = replace(result(), clocks=(began, Moment(5 + total, 9 + 10 * total, 1e-6)))
    (fault,) = clocks_differ(slow)
    assert fault.sure and "another clock" in fault.text
    wide = replace(slow, clocks=(began, Moment(5 + total, 9 + total + 0.01, 0.02)))
    assert list(clocks_differ(wide)) == []
    assert list(clocks_differ(result())) == []  # nothing was recorded
