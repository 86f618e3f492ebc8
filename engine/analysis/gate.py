"""A gate: whether a run is worse than an earlier one of the same samples, by more than a margin.

Each sample counts by its ratio NEW / BASE (medians of its repeats), and each sequence once, by the
median of its samples.  A metric of one model is
    no worse    the test excludes that NEW is worse by the margin or more
    worse       the test excludes that NEW is worse by less than the margin
    undecided   neither; then about how many more samples would decide is computed
More or fewer tokens are not worse in themselves: tokens are "no worse" if they changed by less than
the margin in both directions, and "changed" if by more in one.  Accuracy compares the difference of
shares with the margin in percentage points; it holds as no worse if every answer is the same.

All tested pairs of model and metric form one family.  Each direction is tested at half of 5 %,
adjusted by Holm, so at most 5 % of comparisons contain any wrong verdict.

Boundary: two RunValues in, a frozen report out; no wording beyond reasons and notes.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from engine.analysis import gate_checks, one_sided_tests, share_tests, statistics
from engine.analysis.clustered_shares import clustered_difference
from engine.analysis.gate_values import DIGITS, GATED, TOKENS
from engine.analysis.metrics import BY_NAME
from engine.analysis.number_text import count
from engine.analysis.one_sided_tests import Floats, above, below, holm
from engine.analysis.token_pairs import Pair
from engine.errors import BadInput
from engine.quoting import quoted
from engine.storage.run_values import ModelValues, RunValues, SampleValues

Verdict = Literal["no worse", "worse", "changed", "undecided"]
ACCURACY, ANSWERS = "accuracy", "answers"
MARGIN = 0.05
ERRORS = 0.05  # of comparisons may contain a wrong verdict
TAIL = ERRORS / 2  # each direction
LEAST = 10.0**-DIGITS  # a smaller value was not measured
ALIASES = {"tokens": TOKENS, "tok/s": "tokens_per_s"}
DEFAULT = ("total", "ttft", "tpot", TOKENS, ACCURACY)
KNOWN = (*(metric.name for metric in GATED), ACCURACY, ANSWERS)


@dataclass(frozen=True)
class GateResult:
    """One label and metric.

    unit "ratio": `change`, `low` and `high` are NEW / BASE; "points": NEW - BASE, a difference of
    shares from -1 to 1.  They are the estimate and its 95 % interval for this metric alone (None
    with too few sequences, or if every answer is the same).  base, new: medians over the samples,
    of accuracy means.  p_no_worse, p_worse: adjusted by Holm; a verdict needs at most TAIL.
    more_samples: of new sequences, that would decide, None if it is decided or if none would.
    """

    label: str
    metric: str
    unit: Literal["ratio", "points"]
    verdict: Verdict
    n: int
    sequences: int
    base: float
    new: float
    change: float
    low: float | None
    high: float | None
    p_no_worse: float
    p_worse: float
    more_samples: int | None
    reason: str = ""

    @property
    def bad(self) -> bool:
        return self.verdict in ("worse", "changed")


@dataclass(frozen=True)
class AnswerChange:
    """A sample whose token ids differ: from `position` on (0 is the first token), where BASE has
    `base_id` and NEW has `new_id`, None after its end."""

    sample: str
    position: int
    base_id: int | None
    new_id: int | None
    base_tokens: int
    new_tokens: int


@dataclass(frozen=True)
class AnswersCompared:
    """One label's token ids.  unknown: samples without ids on a side.  lost: samples that BASE
    answered and NEW did not; gained: the reverse."""

    label: str
    same: int
    changed: tuple[AnswerChange, ...]
    unknown: int
    lost: tuple[str, ...]
    gained: tuple[str, ...]

    @property
    def equal(self) -> bool:
        return not self.changed and not self.unknown and not self.lost


@dataclass(frozen=True)
class NotCompared:
    """A metric of one label that has no values to compare."""

    label: str
    metric: str
    reason: str


@dataclass(frozen=True)
class GateReport:
    """verdict: "worse" if any metric is worse or changed, or NEW lost an answer; "undecided" if any
    other is undecided.  answers: of every label; they decide only if ANSWERS is among `metrics`."""

    base: RunValues
    new: RunValues
    metrics: tuple[str, ...]
    margin: float
    labels: tuple[str, ...]
    results: tuple[GateResult, ...]
    answers: tuple[AnswersCompared, ...]
    not_compared: tuple[NotCompared, ...]
    notes: tuple[str, ...]
    verdict: Verdict

    @property
    def tests(self) -> int:
        """The pairs of model and metric that Holm's adjustment counts."""
        return len(self.results)


@dataclass(frozen=True)
class _Tested:
    """A result before the adjustment.  `more` finds the number of further samples."""

    result: GateResult
    more: Callable[[float], int | None]


def metric_names(text: str) -> tuple[str, ...]:
    """The metrics of a comma-separated list; BadInput for an unknown one."""
    given = [ALIASES.get(name, name) for part in text.split(",") if (name := part.strip())]
    if unknown := [name for name in given if name not in KNOWN]:
        near = difflib.get_close_matches(unknown[0], [*KNOWN, *ALIASES], 1)
        hint = f"Did you mean {near[0]}?" if near else ""
        known = ", ".join(KNOWN)
        raise BadInput(
            f"{quoted(unknown[0])} is not a metric: choose among {known}. {hint}".strip()
        )
    if not given:
        raise BadInput(f"No metric is named: choose among {', '.join(KNOWN)}.")
    return tuple(dict.fromkeys(given))


def gate(
    base: RunValues,
    new: RunValues,
    metrics: Sequence[str] = DEFAULT,
    margin: float = MARGIN,
) -> GateReport:
    """Compares two runs; BadInput if they cannot be compared."""
    if not 0 <= margin < 1:
        raise BadInput(f"The margin is {margin:g}: choose one from 0% to below 100%.")
    labels = tuple(one.label for one in base.models if new.model(one.label) is not None)
    timed = any(name in BY_NAME and BY_NAME[name].timed for name in metrics)
    gate_checks.refuse(base, new, labels, timed)
    tested: list[_Tested] = []
    missing: list[NotCompared] = []
    answers = []
    for label in labels:
        sides = _side(base, label), _side(new, label)
        answers.append(_answers(label, *sides))
        for metric in metrics:
            if metric != ANSWERS:
                found = _test(label, metric, *sides, margin)
                if isinstance(found, _Tested):
                    tested.append(found)
                else:
                    missing.append(found)
    lost = any(one.lost for one in answers)  # a verdict without any test
    if not tested and not lost and ANSWERS not in metrics:
        why = f"{missing[0].metric} of {missing[0].label}: {missing[0].reason}"
        raise BadInput(f"No metric has values in both runs ({why}): choose others with --metric.")
    results = _decided(tested)
    return GateReport(
        base=base,
        new=new,
        metrics=tuple(metrics),
        margin=margin,
        labels=labels,
        results=results,
        answers=tuple(answers),
        not_compared=tuple(missing),
        notes=(*gate_checks.changes(base, new, labels), *((gate_checks.DRIFT,) if timed else ())),
        verdict=_verdict(results, answers, ANSWERS in metrics),
    )


def _side(values: RunValues, label: str) -> ModelValues:
    found = values.model(label)
    assert found is not None  # labels are of both runs
    return found


def _verdict(
    results: Sequence[GateResult], answers: Sequence[AnswersCompared], ids_count: bool
) -> Verdict:
    lost = any(one.lost for one in answers)
    changed = ids_count and any(one.changed for one in answers)
    if lost or changed or any(one.bad for one in results):
        return "worse"
    unknown = ids_count and any(one.unknown for one in answers)
    if unknown or any(one.verdict == "undecided" for one in results):
        return "undecided"
    return "no worse"


def _answers(label: str, base: ModelValues, new: ModelValues) -> AnswersCompared:
    same, unknown, changed = 0, 0, []
    for sample, first in base.samples.items():
        second = new.samples.get(sample)
        if second is None:
            continue
        if first.token_ids is None or second.token_ids is None:
            unknown += 1
        elif first.token_ids == second.token_ids:
            same += 1
        else:
            changed.append(_change(sample, first.token_ids, second.token_ids))
    lost = tuple(sample for sample in base.samples if sample not in new.samples)
    gained = tuple(sample for sample in new.samples if sample not in base.samples)
    return AnswersCompared(label, same, tuple(changed), unknown, lost, gained)


def _change(sample: str, base: tuple[int, ...], new: tuple[int, ...]) -> AnswerChange:
    at = Pair(sample, base, new).prefix
    first, second = (side[at] if at < len(side) else None for side in (base, new))
    return AnswerChange(sample, at, first, second, len(base), len(new))


def _test(
    label: str, metric: str, base: ModelValues, new: ModelValues, margin: float
) -> _Tested | NotCompared:
    both = [(one, new.samples[name]) for name, one in base.samples.items() if name in new.samples]
    if metric == ACCURACY:
        return _accuracy(label, both, margin)
    pairs = [
        (first.sequence, first.values[metric], second.values[metric])
        for first, second in both
        if metric in first.values and metric in second.values
    ]
    if not pairs:
        return NotCompared(label, metric, "no sample has a measured value in both runs")
    sequences, ours, theirs = zip(*pairs, strict=True)
    first, second = np.array(ours), np.array(theirs)
    if min(first.min(), second.min()) < LEAST:
        return NotCompared(label, metric, "a value of 0 has no ratio")
    medians = statistics.cluster_medians(list(second / first), sequences, ratios=True)
    logs = np.log(medians)
    low, high = _interval(logs)
    result = GateResult(
        label=label,
        metric=metric,
        unit="ratio",
        verdict="undecided",
        n=len(pairs),
        sequences=len(logs),
        base=float(np.median(first)),
        new=float(np.median(second)),
        change=math.exp(one_sided_tests.centre(logs)),
        low=low,
        high=high,
        p_no_worse=1.0,
        p_worse=1.0,
        more_samples=None,
    )
    return _two_sided(result, logs, margin) if metric == TOKENS else _one_sided(
        result, logs if BY_NAME[metric].less_is_faster else -logs, margin)  # fmt: skip


def _interval(logs: Floats) -> tuple[float | None, float | None]:
    if len(logs) < statistics.MIN_CLUSTERS:
        return None, None
    low, high = one_sided_tests.interval(logs, (1 - statistics.LEVEL) / 2)
    return math.exp(low), math.exp(high)


def _one_sided(result: GateResult, worse: Floats, margin: float) -> _Tested:
    """`worse` [sequences]: log ratios, above 0 where NEW is worse."""
    rest = worse - math.log1p(margin)

    def more(level: float) -> int | None:
        return _least(one_sided_tests.more_values(side, level) for side in (rest, -rest))

    return _Tested(replace(result, p_no_worse=below(rest), p_worse=above(rest)), more)


def _two_sided(result: GateResult, logs: Floats, margin: float) -> _Tested:
    """Within the margin in both directions, or beyond it in one."""
    limit = math.log1p(margin)
    inside = below(logs - limit), above(logs + limit)
    beyond = above(logs - limit), below(logs + limit)

    def more(level: float) -> int | None:
        needed = [
            one_sided_tests.more_values(side, level) for side in (logs - limit, -limit - logs)
        ]
        known = [one for one in needed if one is not None]
        within = max(known) if len(known) == len(needed) else None
        over = (
            one_sided_tests.more_values(side, level / 2) for side in (limit - logs, logs + limit)
        )
        return _least((within, *over))

    p_worse = min(1.0, 2 * min(beyond))
    return _Tested(replace(result, p_no_worse=max(inside), p_worse=p_worse), more)


def _least(found: Iterable[int | None]) -> int | None:
    known = [one for one in found if one is not None]
    return min(known) if known else None


def _accuracy(
    label: str, both: Sequence[tuple[SampleValues, SampleValues]], margin: float
) -> _Tested | NotCompared:
    judged = [(a, b) for a, b in both if a.right is not None and b.right is not None]
    if not judged:
        return NotCompared(label, ACCURACY, "no sample has a known right answer")
    ours = np.array([a.right for a, _ in judged], dtype=float)
    theirs = np.array([b.right for _, b in judged], dtype=float)
    values, sequences = (theirs - ours).tolist(), [a.sequence for a, _ in judged]
    found = clustered_difference(values, sequences)
    same = not any(values) and all(a.token_ids and a.token_ids == b.token_ids for a, b in judged)
    result = GateResult(
        label=label,
        metric=ACCURACY,
        unit="points",
        verdict="undecided",
        n=found.n,
        sequences=found.clusters,
        base=float(ours.mean()),
        new=float(theirs.mean()),
        change=found.share,
        low=None if same else found.low,
        high=None if same else found.high,
        p_no_worse=0.0 if same else share_tests.chance(values, sequences, -margin, upwards=True),
        p_worse=1.0 if same else share_tests.chance(values, sequences, -margin, upwards=False),
        more_samples=None,
        reason="every answer is the same" if same else "",
    )
    return _Tested(result, lambda level: share_tests.more(values, sequences, -margin, level))


def _decided(tested: Sequence[_Tested]) -> tuple[GateResult, ...]:
    """The verdicts after Holm's adjustment of each direction."""
    fine = holm([one.result.p_no_worse for one in tested])
    bad = holm([one.result.p_worse for one in tested])
    found = []
    for one, p_no_worse, p_worse in zip(tested, fine, bad, strict=True):
        verdict: Verdict = "undecided"
        if p_no_worse <= TAIL:
            verdict = "no worse"
        elif p_worse <= TAIL:
            verdict = "changed" if one.result.metric == TOKENS else "worse"
        result = replace(one.result, verdict=verdict, p_no_worse=p_no_worse, p_worse=p_worse)
        if verdict == "undecided":
            more = one.more(TAIL / len(tested))
            result = replace(result, more_samples=more, reason=_reason(result))
        found.append(result)
    return tuple(found)


def _reason(result: GateResult) -> str:
    if result.sequences < statistics.MIN_CLUSTERS:
        return (
            f"a verdict needs at least {statistics.MIN_CLUSTERS} sequences, and the "
            f"{count(result.n, 'sample')} are of {count(result.sequences, 'sequence')}"
        )
    return ""
