"""A gate: whether a run is worse than an earlier one of the same samples, by more than a margin.

Each sample counts by its ratio NEW / BASE: of the medians of its repeats, or the median of the
ratios of its turns.  Each sequence counts once, by the median of its samples.  A metric of one
model is
    no worse    the test excludes that NEW is worse by the margin or more
    worse       the test excludes that NEW is worse by less than the margin
    undecided   neither
Whole runs of the same code differ, because the machine changes between them.  So times are tested
if both runs took turns (engine/benchmark/by_turns.py), or with MIN_RUNS runs on each side, which
then are the units of the test; otherwise they are undecided.
More or fewer tokens are not worse in themselves: tokens are "no worse" if they changed by less than
the margin in both directions, and "changed" if by more in one.  Accuracy compares the difference of
shares with the margin in percentage points.  Both hold as no worse if every answer is the same.

What was asked for by name and has no values is undecided, and what only BASE has values of.
All tested pairs of model and metric form one family.  Each direction is tested at half of 5 %,
adjusted by Holm, so at most 5 % of comparisons contain any wrong verdict.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from engine.analysis import clustered_shares, gate_values, statistics
from engine.analysis.acceptance import Pair
from engine.analysis.clustered_shares import clustered_difference
from engine.analysis.gate_values import DIGITS, GATED, TOKENS
from engine.analysis.metrics import BY_NAME
from engine.analysis.statistics import above, below, holm
from engine.errors import BadInput
from engine.quoting import count, quoted
from engine.storage.run_values import ModelValues, RunValues, SampleValues

Verdict = Literal["no worse", "worse", "changed", "undecided"]
ACCURACY, ANSWERS = "accuracy", "answers"
MARGIN = 0.05
ERRORS = 0.05  # of comparisons may contain a wrong verdict
TAIL = ERRORS / 2  # each direction
LEAST = 10.0**-DIGITS  # a smaller value was not measured
ALIASES = {"tokens": TOKENS, "tok/s": "tokens_per_s"}
MIN_RUNS = 5  # on each side, to test the times of runs that were measured apart
APART = (
    "The runs were measured apart, and whole runs of the same code differ. So their times are "
    "undecided: measure both by turns (bench --against), or name two folders of at least "
    f"{MIN_RUNS} runs each."
)
DEFAULT = ("total", "ttft", "tpot", TOKENS, ACCURACY)
KNOWN = (*(metric.name for metric in GATED), ACCURACY, ANSWERS)
Pairs = Sequence[tuple[SampleValues, SampleValues]]  # of BASE and NEW


@dataclass(frozen=True)
class GateResult:
    """One label and metric.

    unit "ratio": `change`, `low` and `high` are NEW / BASE; "points": NEW - BASE, a difference of
    shares from -1 to 1.  They are the estimate and its 95 % interval for this metric alone (None
    with too few sequences, or if every answer is the same).  base, new: medians over the samples,
    of accuracy means.  p_no_worse, p_worse: adjusted by Holm; a verdict needs at most TAIL.
    """

    label: str
    metric: str
    unit: Literal["ratio", "points"]
    n: int
    sequences: int
    base: float
    new: float
    change: float
    low: float | None = None
    high: float | None = None
    verdict: Verdict = "undecided"
    p_no_worse: float = 1.0
    p_worse: float = 1.0
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
    """A metric of one label that has no values to compare.  undecided: it was asked for by name, or
    BASE has values."""

    label: str
    metric: str
    reason: str
    undecided: bool


@dataclass(frozen=True)
class GateReport:
    """verdict: "worse" if any metric is worse or changed, or NEW lost an answer; "undecided" if any
    other is undecided, or nothing was compared.  answers: of every label; they decide only if
    ANSWERS is among `metrics`."""

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

    tests: int  # pairs of model and metric that Holm's adjustment counts


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
    metrics: Sequence[str] | None = None,
    margin: float = MARGIN,
) -> GateReport:
    """Compares two runs; BadInput if they cannot be compared.  metrics: None for DEFAULT."""
    if not 0 <= margin < 1:
        raise BadInput(f"The margin is {margin:.0%}: choose one from 0% to below 100%.")
    names, asked = tuple(metrics or DEFAULT), metrics is not None
    runs = (*base.runs, *new.runs)
    labels = tuple(one.label for one in base.models if all(run.model(one.label) for run in runs))
    timed = any(name in BY_NAME and BY_NAME[name].timed for name in names)
    together = bool(base.header.together) and base.header.together == new.header.together
    comparable = together or min(len(base.runs), len(new.runs)) >= MIN_RUNS
    gate_values.refuse(runs, labels, timed and comparable)
    tested: list[GateResult] = []
    apart: list[GateResult] = []
    missing: list[NotCompared] = []
    answers = []
    for label in labels:
        first, second = (
            [model for run in side.runs for model in run.models if model.label == label]
            for side in (base, new)
        )
        answers.append(_answers(label, first[0], second[0]))
        for metric in names:
            if metric == ANSWERS:
                continue
            found = _test(label, metric, first, second, margin, asked)
            if isinstance(found, NotCompared):
                missing.append(found)
            elif comparable or metric == ACCURACY or not BY_NAME[metric].timed:
                tested.append(found)
            else:
                apart.append(replace(found, low=None, high=None, p_no_worse=1.0, p_worse=1.0,
                                     reason="measured apart"))  # fmt: skip
    results = sorted(
        (*_decided(tested), *apart),
        key=lambda one: (labels.index(one.label), names.index(one.metric)),
    )
    notes = [*gate_values.changes(base, new, labels), *([APART] if apart else [])]
    return GateReport(
        base=base,
        new=new,
        metrics=names,
        margin=margin,
        labels=labels,
        results=tuple(results),
        answers=tuple(answers),
        not_compared=tuple(missing),
        notes=tuple(notes),
        verdict=_verdict(results, answers, missing, ANSWERS in names),
        tests=len(tested),
    )


def _verdict(
    results: Sequence[GateResult],
    answers: Sequence[AnswersCompared],
    missing: Sequence[NotCompared],
    ids_count: bool,
) -> Verdict:
    lost = any(one.lost for one in answers)
    changed = ids_count and any(one.changed for one in answers)
    if lost or changed or any(one.bad for one in results):
        return "worse"
    unknown = ids_count and any(one.unknown for one in answers)
    if unknown or any(one.undecided for one in missing) or not (results or ids_count):
        return "undecided"
    return "undecided" if any(one.verdict == "undecided" for one in results) else "no worse"


def _answers(label: str, base: ModelValues, new: ModelValues) -> AnswersCompared:
    same, unknown, changed = 0, 0, []
    for sample in (name for name in base.samples if name in new.samples):
        ours, theirs = base.samples[sample].token_ids, new.samples[sample].token_ids
        if ours is None or theirs is None:
            unknown += 1
        elif ours == theirs:
            same += 1
        else:
            at = Pair(sample, ours, theirs).prefix
            a, b = (side[at] if at < len(side) else None for side in (ours, theirs))
            changed.append(AnswerChange(sample, at, a, b, len(ours), len(theirs)))
    lost = tuple(sample for sample in base.samples if sample not in new.samples)
    gained = tuple(sample for sample in new.samples if sample not in base.samples)
    return AnswersCompared(label, same, tuple(changed), unknown, lost, gained)


def _test(
    label: str,
    metric: str,
    bases: Sequence[ModelValues],
    news: Sequence[ModelValues],
    margin: float,
    asked: bool,
) -> GateResult | NotCompared:
    """`bases`, `news`: of each run; times are tested over all, everything else in the first two."""
    base, new = bases[0], news[0]
    both = [(one, new.samples[name]) for name, one in base.samples.items() if name in new.samples]
    if metric == ACCURACY:
        return _accuracy(label, both, margin, asked)
    pairs = [
        (first.sequence, first.values[metric], second.values[metric], _ratio(first, second, metric))
        for first, second in both
        if metric in first.values and metric in second.values
    ]
    if not pairs:
        known = any(metric in one.values for one, _ in both)
        reason = "no sample has a measured value in both runs"
        return NotCompared(label, metric, reason, asked or known)
    sequences, ours, theirs, ratios = zip(*pairs, strict=True)
    first, second = np.array(ours), np.array(theirs)
    if min(*first, *second, *ratios) < LEAST:
        return NotCompared(label, metric, "a value of 0 has no ratio", True)
    medians = statistics.cluster_medians(ratios, sequences, ratios=True)
    logs = np.log(medians)
    low, high = None, None
    if len(logs) >= statistics.MIN_CLUSTERS:
        ends = statistics.interval(logs, (1 - statistics.LEVEL) / 2)
        low, high = map(math.exp, ends)
    result = GateResult(
        label=label,
        metric=metric,
        unit="ratio",
        n=len(pairs),
        sequences=len(logs),
        base=float(np.median(first)),
        new=float(np.median(second)),
        change=math.exp(statistics.centre(logs)),
        low=low,
        high=high,
    )
    if metric == TOKENS:
        if _same(both):
            why = "every answer is the same"
            return replace(result, low=None, high=None, p_no_worse=0.0, reason=why)
        # Within the margin in both directions, or beyond it in one.
        limit = math.log1p(margin)
        inside = below(logs - limit), above(logs + limit)
        beyond = above(logs - limit), below(logs + limit)
        return replace(result, p_no_worse=max(inside), p_worse=min(1.0, 2 * min(beyond)))
    sign = 1 if BY_NAME[metric].less_is_faster else -1
    if min(len(bases), len(news)) >= MIN_RUNS:
        return _of_runs(result, bases, news, sign, margin)
    rest = sign * logs - math.log1p(margin)  # above 0 where NEW is worse by more than the margin
    return replace(result, p_no_worse=below(rest), p_worse=above(rest))


def _of_runs(
    result: GateResult,
    bases: Sequence[ModelValues],
    news: Sequence[ModelValues],
    sign: int,
    margin: float,
) -> GateResult:
    """Welch's t-test of whole runs: each counts by the median of its sequences' log values."""
    from scipy.stats import ttest_ind  # slow to import

    runs, metric = [*bases, *news], result.metric
    names = [
        name
        for name in bases[0].samples
        if all(name in run.samples and metric in run.samples[name].values for run in runs)
    ]
    if not names:
        return replace(result, reason="no sample has a value in all runs")
    logs = np.log([[run.samples[name].values[metric] for name in names] for run in runs])
    logs -= logs.mean(axis=0)  # samples differ in length
    sequences = [bases[0].samples[name].sequence for name in names]
    values = sign * np.array(
        [np.median(statistics.cluster_medians(row.tolist(), sequences)) for row in logs]
    )
    ours, theirs = values[: len(bases)], values[len(bases) :]
    limit = ours + math.log1p(margin)
    tests = (
        ttest_ind(theirs, limit, equal_var=False, alternative=way) for way in ("less", "greater")
    )
    fine, bad = (float(np.nan_to_num(test.pvalue, nan=1.0)) for test in tests)
    ends = ttest_ind(theirs, ours, equal_var=False).confidence_interval(statistics.LEVEL)
    low, high = sorted(math.exp(sign * float(end)) for end in ends)
    change = math.exp(sign * float(theirs.mean() - ours.mean()))
    units = f"the units are {len(bases):,} runs of BASE and {len(news):,} of NEW"
    return replace(result, n=len(names), sequences=len(set(sequences)), change=change, low=low,
                   high=high, p_no_worse=fine, p_worse=bad, reason=units)  # fmt: skip


def _ratio(base: SampleValues, new: SampleValues, metric: str) -> float:
    """NEW / BASE of a sample; 0 without a ratio."""
    ours, theirs = base.turns.get(metric, {}), new.turns.get(metric, {})
    turns = [(ours[repeat], theirs[repeat]) for repeat in ours if repeat in theirs]
    pairs = turns or [(base.values[metric], new.values[metric])]
    if min(map(min, pairs)) < LEAST:
        return 0.0
    ratios = [second / first for first, second in pairs]
    return statistics.median_interval(ratios, ratios=True).median


def _same(both: Pairs) -> bool:
    """Whether every answer is the same."""
    return all(a.token_ids and a.token_ids == b.token_ids for a, b in both)


def _accuracy(label: str, both: Pairs, margin: float, asked: bool) -> GateResult | NotCompared:
    lacking = sum(a.right is not None and b.right is None for a, b in both)
    if lacking:
        reason = f"{count(lacking, 'sample')} with a known right answer in BASE, but not in NEW"
        return NotCompared(label, ACCURACY, reason, True)
    judged = [(a, b) for a, b in both if a.right is not None and b.right is not None]
    if not judged:
        return NotCompared(label, ACCURACY, "no sample has a known right answer", asked)
    ours, theirs = np.array([(a.right, b.right) for a, b in judged], dtype=float).T
    values, sequences = (theirs - ours).tolist(), [a.sequence for a, _ in judged]
    share = clustered_difference(values, sequences)
    result = GateResult(
        label=label,
        metric=ACCURACY,
        unit="points",
        n=share.n,
        sequences=share.clusters,
        base=float(ours.mean()),
        new=float(theirs.mean()),
        change=share.share,
        low=share.low,
        high=share.high,
    )
    if not any(values) and _same(judged):
        why = "every answer is the same"
        return replace(result, low=None, high=None, p_no_worse=0.0, reason=why)
    fine, bad = (clustered_shares.chance(values, sequences, -margin, up) for up in (True, False))
    return replace(result, p_no_worse=fine, p_worse=bad)


def _decided(tested: Sequence[GateResult]) -> Iterator[GateResult]:
    """The verdicts after Holm's adjustment of each direction."""
    fine, bad = holm([one.p_no_worse for one in tested]), holm([one.p_worse for one in tested])
    for one, p_no_worse, p_worse in zip(tested, fine, bad, strict=True):
        verdict: Verdict = "undecided"
        reason = one.reason
        if p_no_worse <= TAIL:
            verdict = "no worse"
        elif p_worse <= TAIL:
            verdict = "changed" if one.metric == TOKENS else "worse"
        elif not reason and one.sequences < statistics.MIN_CLUSTERS:
            reason = (
                f"a verdict needs at least {statistics.MIN_CLUSTERS} sequences, and the "
                f"{count(one.n, 'sample')} are of {count(one.sequences, 'sequence')}"
            )
        yield replace(one, verdict=verdict, p_no_worse=p_no_worse, p_worse=p_worse, reason=reason)


def limits(result: GateResult, margin: float) -> tuple[float, ...]:
    """The changes beyond which the metric is worse by more than the margin, ascending: one, or two
    for tokens, which must not change in either direction."""
    if result.metric == ACCURACY:
        return (-margin,)
    fewer, more = 1 / (1 + margin), 1 + margin
    if result.metric == TOKENS:
        return (fewer, more)
    return (more,) if BY_NAME[result.metric].less_is_faster else (fewer,)


def shown(result: GateResult, value: float) -> float:
    """A change as it is printed: in percent, of accuracy in percentage points."""
    return 100 * (value if result.unit == "points" else value - 1)
