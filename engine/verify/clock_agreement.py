"""Checks that two clocks agree on the length of a run and on the time of each token.

Boundary: judges recorded times; reads no clock.  The run's zero point is read on both clocks at the
same moment, so a pause between two readings does not shift the times.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.types import RunResult
from engine.verify.answer_paths import RecordedAnswer

DRIFT = 0.001  # of a run: the system may adjust clocks
ROUNDING_MS = 0.05
TOKEN_MS, TOKEN_SHARE = 1.0, 0.25  # the share is of the median time between two tokens


@dataclass(frozen=True)
class Fault:
    """What is wrong with a time; `sure` if a busy machine cannot explain it."""

    text: str
    sure: bool = True


def uncertainty_ms(result: RunResult) -> float:
    """The uncertainty of times in a run on the second clock, in ms."""
    widths = sum(moment.width_s for moment in result.clocks or ())
    resolution = time.get_clock_info("monotonic").resolution
    return 1000 * (widths + resolution) + ROUNDING_MS + DRIFT * result.total_ms


def clocks_differ(result: RunResult) -> Iterator[Fault]:
    """A fault if the run's length on the second clock differs from its total time."""
    if result.clocks is None:
        return
    began, ended = result.clocks
    second = (ended.second_s - began.second_s) * 1000
    if abs(second - result.total_ms) > uncertainty_ms(result):
        yield Fault(
            f"a run of {result.total_ms:.1f} ms took {second:.1f} ms by another clock, read at "
            "the same moments"
        )


def token_faults(answer: RecordedAnswer) -> Iterator[Fault]:
    """Faults if a token is not reported soon after the head computed it and before the next one.

    Each token is compared with its own computation.  A single late token may be due to a pause.  It
    is a sure fault if most tokens are reported after the next one was computed, or if one is
    reported before it was computed.
    """
    result = answer.result
    if result is None or not answer.ids or len(answer.head_ms) != len(answer.ids):
        return
    reported, seen = np.array(result.generation.token_ms), np.array(answer.head_ms)
    if len(reported) != len(seen):
        yield Fault(
            f"{answer.way}: {len(reported)} token times are reported for {len(seen)} tokens"
        )
        return
    lag, gaps = reported - seen, np.diff(seen)
    slack = uncertainty_ms(result)
    if (lag < -slack).any():
        yield Fault(f"{answer.way}: a token is reported before it was computed")
    bound = max(TOKEN_MS, TOKEN_SHARE * float(np.median(gaps)) if len(gaps) else 0.0)
    if float(np.median(lag)) > bound + slack:
        passed = float(np.mean(lag[:-1] > gaps + slack)) if len(gaps) else 0.0
        text = (
            f"{answer.way}: tokens are reported {np.median(lag):.1f} ms (median) after they were "
            "computed"
        )
        yield Fault(text, sure=passed > 0.5 and "mps" not in result.environment.get("device", ""))
