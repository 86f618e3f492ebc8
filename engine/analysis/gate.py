"""A gate: whether a run is worse than an earlier one of the same samples, by more than a margin.

What is compared, and how it is tested, is in docs/gate.md.  A sample counts by its ratio NEW /
BASE: of the medians of its repeats, or the median of the ratios of its turns.  The medians beside
it are of all results, as in every summary.  Runs that did not take turns
(engine/benchmark/by_turns.py) have no tested times.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from operator import eq
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from engine.analysis import agreement, machine_loads, statistics
from engine.analysis.answer_reading import asked_content, is_scene, read_attributes
from engine.analysis.model_summary import BY_NAME, PAIRED, Metric, fair
from engine.analysis.results_table import answered, frame, labels, measured
from engine.analysis.statistics import above, below, chance, clustered_difference, holm
from engine.errors import BadInput
from engine.machine.load import MachineLoad
from engine.quoting import count, cut, joined, listed, quoted, shown
from engine.storage.run_header import Header
from engine.storage.run_store import Run

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["no worse", "worse", "changed", "undecided"]
ACCURACY, ANSWERS, TOKENS = "accuracy", "answers", "new_tokens"
GATED: tuple[Metric, ...] = tuple(one for one in PAIRED if one.name != "unaccounted")
MARGIN = 0.05
ERRORS = 0.05  # of comparisons may contain a wrong verdict
TAIL = ERRORS / 2  # each direction
DIGITS = 6  # of a value
LEAST = 10.0**-DIGITS  # a smaller value was not measured
ALIASES = {"tokens": TOKENS, "tok/s": "tokens_per_s"}
APART = (
    "The runs were measured apart, and whole runs of the same code differ. So their times are "
    "undecided: measure both by turns (bench --against)."
)
UNTIMED = "compare without times (--metric tokens,accuracy,answers)"
EQUAL = "every answer is the same"
DEFAULT = ("total", "ttft", "tpot", TOKENS, ACCURACY)
KNOWN = (*(metric.name for metric in GATED), ACCURACY, ANSWERS)


@dataclass(frozen=True, kw_only=True)
class SampleValues:
    """One model's answers to one sample, over its repeats.

    values: metric -> repeat -> measured value; new_tokens counts the answers of batches too.
    by_turns: the run took turns with another.  right: the share of right answers or attributes,
    None if it is not known.  token_ids: of the first answer, None without ids.
    """

    sequence: str
    values: Mapping[str, Mapping[int, float]]
    by_turns: bool = False
    right: float | None = None
    token_ids: tuple[int, ...] | None = None


Pairs = Sequence[tuple[SampleValues, SampleValues]]  # of BASE and NEW


@dataclass(frozen=True, kw_only=True)
class ModelValues:
    """One label's answers.  `cached`: results with a stage that was read from the cache.
    `device`, `shared`: as in results_table.frame."""

    label: str
    model: str
    device: str
    shared: str
    cached: int
    load: MachineLoad | None
    samples: Mapping[str, SampleValues]


Sides = tuple[ModelValues, ModelValues]  # of BASE and NEW


@dataclass(frozen=True)
class RunValues:
    header: Header
    finished: bool
    models: tuple[ModelValues, ...]

    @property
    def id(self) -> str:
        return self.header.id

    def model(self, label: str) -> ModelValues | None:
        return next((one for one in self.models if one.label == label), None)


@dataclass(frozen=True)
class GateResult:
    """unit "ratio": `change`, `low` and `high` are NEW / BASE; "points": NEW - BASE, a difference
    of shares from -1 to 1.  They are the estimate and its 95 % interval for this metric alone (None
    with too few sequences, or if every answer is the same).  base, new: medians of all results of
    the samples, of accuracy means.  p_no_worse, p_worse: adjusted by Holm; a verdict needs at most
    TAIL.
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
    ANSWERS is among `metrics`.  tests: pairs of model and metric that Holm's adjustment counts."""

    base: RunValues
    new: RunValues
    metrics: tuple[str, ...]
    margin: float
    results: tuple[GateResult, ...]
    answers: tuple[AnswersCompared, ...]
    not_compared: tuple[NotCompared, ...]
    notes: tuple[str, ...]
    tests: int

    @property
    def verdict(self) -> Verdict:
        ids_count = ANSWERS in self.metrics
        verdicts = {one.verdict for one in self.results}
        lost = any(one.lost or (ids_count and one.changed) for one in self.answers)
        if lost or verdicts & {"worse", "changed"}:
            return "worse"
        unknown = ids_count and any(one.unknown for one in self.answers)
        missing = any(one.undecided for one in self.not_compared)
        if unknown or missing or "undecided" in verdicts or not (verdicts or ids_count):
            return "undecided"
        return "no worse"


def metric_names(text: str) -> tuple[str, ...]:
    """The metrics of a comma-separated list; BadInput for an unknown one, or for none."""
    given = [ALIASES.get(name, name) for part in text.split(",") if (name := part.strip())]
    unknown = [name for name in given if name not in KNOWN]
    if unknown or not given:
        wrong = f"{quoted(unknown[0])} is not a metric" if unknown else "No metric is named"
        raise BadInput(f"{wrong}: choose among {', '.join((*KNOWN, *ALIASES))}.")
    return tuple(dict.fromkeys(given))


# The values of a run that are compared.
def values_of(run: Run, titled: bool = False) -> RunValues:
    """All values of all models of a run; `titled` as in results_table.join()."""
    table = frame([run], titled=titled)
    ids = {offset: row.token_ids for offset, row in run.results()}
    models = []
    for label in labels(table):
        lines = table[table["label"] == label]
        answers, timed = answered(lines), measured(lines)
        values: defaultdict[str, dict[str, dict[int, float]]] = defaultdict(dict)
        for metric in GATED:
            some = answers if metric.name == TOKENS else fair(timed, metric)
            known = some[["sample", "repeat", metric.column]].dropna().round(DIGITS)
            for sample, repeat, value in known.itertuples(index=False):
                values[str(sample)].setdefault(metric.name, {})[int(repeat)] = float(value)
        right = accuracy(answers)
        first = answers.drop_duplicates("sample")[["sample", "cluster", "offset"]]
        samples = {
            name: SampleValues(
                sequence=cluster,
                values=values[name],
                by_turns=bool(run.header.together),
                right=right.get(name),
                token_ids=ids.get(offset),
            )
            for name, cluster, offset in first.itertuples(index=False)
        }
        devices = {
            name: ", ".join(sorted({str(one) for one in answers[name] if one}))
            for name in ("device", "shared")
        }
        models.append(
            ModelValues(
                label=label,
                model=str(lines["model"].iloc[0]),
                **devices,
                cached=int(timed["cached"].sum()),
                load=machine_loads.of(timed),
                samples=samples,
            )
        )
    return RunValues(run.header, run.state == "finished", tuple(models))


def accuracy(answers: pd.DataFrame) -> dict[str, float]:
    """Per sample the share that is right: of its answers to a multiple-choice question, otherwise
    of the attributes of a demo scene that the first answer was asked for.  Samples whose content is
    not known, and questions that a demo model was not trained on, have none."""
    lines = answers[~answers["off_script"].astype(bool)]
    shares = agreement.per_question(agreement.judged(lines))["value"]
    found = {str(sample): float(share) for sample, share in shares.items()}
    open_ended = lines[(lines["choices"] == 0) & lines["truth"].map(is_scene).astype(bool)]
    first = open_ended.drop_duplicates("sample")[["sample", "truth", "question_task", "text"]]
    for sample, truth, task, text in first.itertuples(index=False, name=None):
        if asked := asked_content(truth, task):
            said = read_attributes(text)
            right = sum(said.get(name) == value for name, value in asked.items())
            found[str(sample)] = right / len(asked)
    return found


# Which runs can be compared.
def _problems(
    base: RunValues, new: RunValues, both: Mapping[str, Sides], timed: bool
) -> Iterator[str]:
    if base.id == new.id:
        yield f"The run {cut(base.id)} is named twice: name two runs."
    for run in (base, new):
        if not run.finished:
            how = "start both again" if run.header.together else "continue it with `bench --resume`"
            yield f"The run {cut(run.id)} is not finished: {how}, then compare."
    if differing := [f"{name} ({words})" for name, words in _differing(base, new, timed)]:
        yield f"The runs differ in {joined(differing)}: run NEW like BASE."
    if not both:
        known = (listed(shown(one.label) for one in run.models) or "none" for run in (base, new))
        sides = ", ".join(map(" has ".join, zip(SIDES, known, strict=True)))
        yield f"The runs have no model in common ({sides}): compare runs of the same."
    for label, models in both.items() if timed else ():
        for why in _apart(*models, base.header.plan.batch):
            times = f"The times of {cut(label)} cannot be compared ({why})"
            yield f"{times}: repeat the run without this, or {UNTIMED}."


SIDES = ("BASE", "NEW")


def _differing(base: RunValues, new: RunValues, timed: bool) -> Iterator[tuple[str, str]]:
    """What must be the same in both runs, and how it differs."""
    ours, theirs = base.header.plan, new.header.plan
    here, there = set(ours.samples), set(theirs.samples)
    if here != there:
        yield "samples", f"NEW lacks {len(here - there):,} and has {len(there - here):,} others"
    elif base.header.dataset.digest != new.header.dataset.digest:
        yield "dataset", "same names, but other records, files or order"
    settings = ours.differing(theirs, timed)
    if timed and min(len(ours.models), len(theirs.models)) > 1 and ours.order != theirs.order:
        settings["order"] = f"models {ours.order}", f"models {theirs.order}"
    for name, words in settings.items():
        yield name, "; ".join(map(": ".join, zip(SIDES, words, strict=True)))


def _apart(base: ModelValues, new: ModelValues, batch: int) -> Iterator[str]:
    if batch > 1:
        yield f"samples of batches of {batch:,} are not timed separately"
    if base.device != new.device:
        types = f"BASE: {base.device or 'not known'}; NEW: {new.device or 'not known'}"
        yield f"different types of devices, {types}"
    for side, model in zip(SIDES, (base, new), strict=True):
        if model.shared:
            yield f"{side} ran with {model.shared}, so its times include other work"
        if model.cached:
            yield f"{count(model.cached, 'result')} of {side} read a stage from the cache"
    if why := machine_loads.incomparable_loads("BASE", base.load, "NEW", new.load):
        yield why


def _changes(base: RunValues, new: RunValues, names: Collection[str]) -> Iterator[str]:
    """Sentences about code, checkpoints, dtypes, the machine and models in one run only."""
    same = base.header.code == new.header.code
    yield "The engine's code " + ("and libraries are the same." if same else "or libraries differ.")
    theirs = {one.name: one for one in new.header.models}
    compared = {model.model for model in base.models if model.label in names}
    for one in base.header.models:
        other = theirs.get(one.name)
        if other is None or one.name not in compared:
            continue
        for what, ours, now in (("checkpoint", one.digest[:12], other.digest[:12]),
                                ("dtype", one.dtype, other.dtype)):  # fmt: skip
            if ours != now:
                yield f"{one.name} has another {what} (BASE: {ours}; NEW: {now})."
    machine, other_machine = base.header.environment, new.header.environment
    if parts := [
        f"{name} {cut(value)} in BASE and {cut(other_machine[name])} in NEW"
        for name, value in machine.items()
        if name in other_machine and value != other_machine[name]
    ]:
        yield f"The machine or its libraries differ: {', '.join(parts)}."
    for side, here, there in zip(SIDES, (base, new), (new, base), strict=True):
        if alone := [one.label for one in here.models if there.model(one.label) is None]:
            yield f"Only in {side}, so not compared: {listed(alone)}."
    for side, values in zip(SIDES, (base, new), strict=True):
        if unknown := [one.label for one in values.models if one.label in names and not one.load]:
            yield f"The machine's load is not known for {listed(unknown)} in {side}."


# The comparison.
def gate(
    base: RunValues, new: RunValues, metrics: Sequence[str] | None = None, margin: float = MARGIN
) -> GateReport:
    """Compares two runs; BadInput if they cannot be compared.  metrics: None for DEFAULT."""
    if not 0 <= margin < 1:
        raise BadInput(f"The margin is {margin:.0%}: choose one from 0% to below 100%.")
    asked, names = metrics is not None, tuple(metrics or DEFAULT)
    both = {one.label: (one, other) for one in base.models if (other := new.model(one.label))}
    times = {name for name in names if name in BY_NAME and BY_NAME[name].timed}
    together = bool(base.header.together) and base.header.together == new.header.together
    for problem in _problems(base, new, both, bool(times) and together):
        raise BadInput(problem)
    found = [
        _test(label, metric, *sides, margin, asked)
        for label, sides in both.items()
        for metric in names
        if metric != ANSWERS
    ]
    results = [one for one in found if isinstance(one, GateResult)]
    apart = [] if together else [one for one in results if one.metric in times]
    decided = _decided([one for one in results if one not in apart])
    untested: dict[str, Any] = {"low": None, "high": None, "p_no_worse": 1.0, "p_worse": 1.0}
    untested["reason"] = "measured apart"
    every = (replace(one, **untested) if one in apart else next(decided) for one in results)
    return GateReport(
        base=base,
        new=new,
        metrics=names,
        margin=margin,
        results=tuple(every),
        answers=tuple(_answers(label, *sides) for label, sides in both.items()),
        not_compared=tuple(one for one in found if isinstance(one, NotCompared)),
        notes=(*_changes(base, new, both), *([APART] if apart else [])),
        tests=len(results) - len(apart),
    )


def _answers(label: str, base: ModelValues, new: ModelValues) -> AnswersCompared:
    same, unknown, changed = 0, 0, []
    for sample in (name for name in base.samples if name in new.samples):
        ours, theirs = base.samples[sample].token_ids, new.samples[sample].token_ids
        if ours is None or theirs is None:
            unknown += 1
        elif ours == theirs:
            same += 1
        else:
            at = sum(1 for _ in takewhile(bool, map(eq, ours, theirs)))
            a, b = (side[at] if at < len(side) else None for side in (ours, theirs))
            changed.append(AnswerChange(sample, at, a, b, len(ours), len(theirs)))
    lost = tuple(sample for sample in base.samples if sample not in new.samples)
    gained = tuple(sample for sample in new.samples if sample not in base.samples)
    return AnswersCompared(label, same, tuple(changed), unknown, lost, gained)


def _test(
    label: str, metric: str, base: ModelValues, new: ModelValues, margin: float, asked: bool
) -> GateResult | NotCompared:
    both = [(one, new.samples[name]) for name, one in base.samples.items() if name in new.samples]
    if metric == ACCURACY:
        return _accuracy(label, both, margin, asked)
    pairs = [(a, b) for a, b in both if metric in a.values and metric in b.values]
    if not pairs:
        known = any(metric in one.values for one, _ in both)
        reason = "no sample has a measured value in both runs"
        return NotCompared(label, metric, reason, asked or known)
    first = [value for a, _ in pairs for value in a.values[metric].values()]
    second = [value for _, b in pairs for value in b.values[metric].values()]
    ratios = [_ratio(a, b, metric) for a, b in pairs]
    if min(*first, *second, *ratios) < LEAST:
        return NotCompared(label, metric, "a value of 0 has no ratio", True)
    logs = np.log(statistics.cluster_medians(ratios, [a.sequence for a, _ in pairs], ratios=True))
    enough = len(logs) >= statistics.MIN_CLUSTERS
    ends = np.exp(statistics.interval(logs, (1 - statistics.LEVEL) / 2)) if enough else (None, None)
    result = GateResult(
        label=label,
        metric=metric,
        unit="ratio",
        n=len(pairs),
        sequences=len(logs),
        base=float(np.median(first)),
        new=float(np.median(second)),
        change=math.exp(statistics.centre(logs)),
        low=ends[0] and float(ends[0]),
        high=ends[1] and float(ends[1]),
    )
    limit = math.log1p(margin)
    if metric == TOKENS:
        if _same(both):
            return replace(result, low=None, high=None, p_no_worse=0.0, reason=EQUAL)
        # Within the margin in both directions, or beyond it in one.
        inside = below(logs - limit), above(logs + limit)
        beyond = above(logs - limit), below(logs + limit)
        return replace(result, p_no_worse=max(inside), p_worse=min(1.0, 2 * min(beyond)))
    sign = 1 if BY_NAME[metric].less_is_faster else -1
    rest = sign * logs - limit  # above 0 where NEW is worse by more than the margin
    return replace(result, p_no_worse=below(rest), p_worse=above(rest))


def _ratio(base: SampleValues, new: SampleValues, metric: str) -> float:
    """NEW / BASE of a sample; 0 without a ratio."""
    ours, theirs = base.values[metric], new.values[metric]
    both = ours.keys() & theirs.keys() if base.by_turns and new.by_turns else ()
    turns = [(ours[repeat], theirs[repeat]) for repeat in both]
    pairs = turns or [(median(ours.values()), median(theirs.values()))]
    if min(map(min, pairs)) < LEAST:
        return 0.0
    ratios = [second / first for first, second in pairs]
    return statistics.median_interval(ratios, ratios=True).median


def _same(both: Pairs) -> bool:
    return all(a.token_ids and a.token_ids == b.token_ids for a, b in both)


def _accuracy(label: str, both: Pairs, margin: float, asked: bool) -> GateResult | NotCompared:
    if lacking := sum(a.right is not None and b.right is None for a, b in both):
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
        return replace(result, low=None, high=None, p_no_worse=0.0, reason=EQUAL)
    fine, bad = (chance(values, sequences, -margin, up) for up in (True, False))
    return replace(result, p_no_worse=fine, p_worse=bad)


def _decided(tested: Sequence[GateResult]) -> Iterator[GateResult]:
    fine, bad = holm([one.p_no_worse for one in tested]), holm([one.p_worse for one in tested])
    for one, p_no_worse, p_worse in zip(tested, fine, bad, strict=True):
        one = replace(one, verdict="undecided", p_no_worse=p_no_worse, p_worse=p_worse)
        if p_no_worse <= TAIL:
            one = replace(one, verdict="no worse")
        elif p_worse <= TAIL:
            one = replace(one, verdict="changed" if one.metric == TOKENS else "worse")
        elif one.sequences < statistics.MIN_CLUSTERS:
            few = (
                f"a verdict needs at least {statistics.MIN_CLUSTERS} sequences, and the "
                f"{count(one.n, 'sample')} are of {count(one.sequences, 'sequence')}"
            )
            one = replace(one, reason=few)
        yield one


def limits(result: GateResult, margin: float) -> tuple[float, ...]:
    """The changes beyond which the metric is worse by more than the margin, ascending: one, or two
    for tokens, which must not change in either direction."""
    if result.metric == ACCURACY:
        return (-margin,)
    fewer, more = 1 / (1 + margin), 1 + margin
    if result.metric == TOKENS:
        return (fewer, more)
    return (more,) if BY_NAME[result.metric].less_is_faster else (fewer,)


def in_percent(result: GateResult, value: float) -> float:
    """A change as it is printed: in percent, of accuracy in percentage points."""
    return 100 * (value if result.unit == "points" else value - 1)
