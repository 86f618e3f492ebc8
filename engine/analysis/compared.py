"""What Compare shows: each model's finished runs of one request with their spread, which model was
fastest and why, or why this cannot be said.

With one run, the median and both ends of the range are that run's value.  Only runs in one state
are summarised together: a cold run, a cancelled run, and a run that computed what the others read
from the cache are left out, and the reason is given.

A winner is named only among complete runs under equal conditions; of repeated runs, only if their
ranges do not overlap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import fmean, median

from engine.analysis import speedup
from engine.analysis.speedup import SpeedupFactor
from engine.palette import UNACCOUNTED
from engine.quoting import count, joined, ms
from engine.types import STAGES, TITLES, RunResult, Span, StageName

TIMES = ("total", "uncached_total", "ttft", "tpot", UNACCOUNTED)
CANCELLED = "cancelled before the end"
PARTS: tuple[str, ...] = (*STAGES, UNACCOUNTED)
DECODE: StageName = "decode"
PREFILL, STEPS, REST = "decode.prefill", "decode.steps", "decode.rest"
_WHOLE: tuple[str, ...] = tuple(stage for stage in STAGES if stage != DECODE)
RUN_PARTS: tuple[str, ...] = (*_WHOLE, PREFILL, STEPS, REST, UNACCOUNTED)
StageTimes = Mapping[str, Mapping[str, float]]  # label -> part of PARTS -> ms
MATERIAL = 0.25  # of the difference: a loss of this size is part of the reason
MAIN = 0.5  # of all that was saved: below it, the second saving is named too


@dataclass(frozen=True)
class RunRange:
    """The median and the range of `runs` values in milliseconds."""

    median: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True)
class ComparedModel:
    """A model's label, its family (for its colour) and its results, oldest first; at least one.

    `failures` are the errors of its runs that have no result; `unfinished` counts those that were
    cancelled before they had one.
    """

    label: str
    family: str
    results: tuple[RunResult, ...]
    failures: tuple[str, ...] = ()
    unfinished: int = 0

    @property
    def last(self) -> RunResult:
        """The newest run that counts."""
        return self.counted[-1]

    @cached_property
    def counted(self) -> tuple[RunResult, ...]:
        """The runs in the state of the newest complete and warm run, if there is one."""
        newest = max(reversed(self.results), key=lambda one: (not cancelled(one), not one.cold))
        return tuple(one for one in self.results if _state(one) == _state(newest))

    @property
    def complete(self) -> bool:
        """Whether a run was not cancelled; if so, only such runs count."""
        return not cancelled(self.last)

    @property
    def total(self) -> RunRange:
        spread = self.time("total")
        assert spread is not None  # every result has a total
        return spread

    @property
    def per_token(self) -> RunRange | None:
        return self.time("tpot")

    @property
    def tokens(self) -> tuple[int, int]:
        """The fewest and the most new tokens of its runs."""
        numbers = [result.new_tokens for result in self.counted]
        return min(numbers), max(numbers)

    @property
    def left_out(self) -> dict[str, int]:
        """The number of runs that do not count, by reason."""
        counted, reasons = {id(one) for one in self.counted}, Counter[str]()
        usual = {(span.name, span.source) for span in self.last.spans}
        for result in (one for one in self.results if id(one) not in counted):
            others = [span for span in result.spans if (span.name, span.source) not in usual]
            reason = ", ".join(f"{span.name} {span.source}" for span in others) or "other stages"
            if result.cold and not self.last.cold:
                reason = "cold, the first run after loading"
            reasons[CANCELLED if cancelled(result) else reason] += 1
        reasons += Counter({CANCELLED: self.unfinished, "failed": len(self.failures)})
        return dict(reasons)

    def time(self, name: str) -> RunRange | None:
        """The spread of a time of TIMES or of a span ("vision", "decode.prefill", ...).

        None if no run that counts has it; runs without it do not count.
        """
        if name in TIMES:
            values = [getattr(result, f"{name}_ms") for result in self.counted]
        else:
            values = [span and span.ms for span in (one.span(name) for one in self.counted)]
        known = [value for value in values if value is not None]
        return RunRange(median(known), min(known), max(known), len(known)) if known else None

    def times(self) -> dict[str, RunRange]:
        """The spread of each time that a run has: TIMES, the stages and the parts of decode."""
        names = (*TIMES, *STAGES, PREFILL, STEPS)
        return {name: spread for name in names if (spread := self.time(name)) is not None}


def cancelled(result: RunResult) -> bool:
    return result.generation.stop == "cancelled"


def _state(result: RunResult) -> tuple[object, ...]:
    """What makes two runs of one request comparable: warmth, backend, and every span's source."""
    sources = frozenset((span.name, span.source) for span in result.spans)
    return cancelled(result), result.cold, result.backend, sources


@dataclass(frozen=True)
class BarSegment:
    """One part of one model's bar.  A part without a time has no length."""

    label: str
    part: str
    start_ms: float
    ms: float

    @property
    def end_ms(self) -> float:
        return self.start_ms + self.ms


def segments(times: StageTimes, order: tuple[str, ...] = PARTS) -> list[BarSegment]:
    """Every part of `order` of every label."""
    found = []
    for label, parts in times.items():
        start = 0.0
        for part in order:
            found.append(BarSegment(label, part, start, max(0.0, parts.get(part, 0.0))))
            start = found[-1].end_ms
    return found


def run_times(model: ComparedModel) -> dict[str, float]:
    """The median of each part of RUN_PARTS that was measured, in milliseconds.

    REST is what decode took apart from its prefill and its token steps.
    """
    names = (*_WHOLE, PREFILL, STEPS, UNACCOUNTED)
    known = {name: found.median for name in names if (found := model.time(name))}
    rests = []
    for result in model.counted:
        decode, *parts = (result.span(name) for name in (DECODE, PREFILL, STEPS))
        if decode:
            rests.append(max(0.0, decode.ms - sum(part.ms for part in parts if part)))
    return known | ({REST: median(rests)} if rests else {})


def uncached_times(model: ComparedModel) -> dict[str, float] | None:
    """run_times() with each cached stage at the time of its computation; None if no stage was
    cached."""
    if not model.last.cached:
        return None
    cached = {span.name: span.original_ms or 0.0 for span in cached_spans(model)}
    return run_times(model) | {name: ms for name, ms in cached.items() if name in RUN_PARTS}


def cached_spans(model: ComparedModel) -> list[Span]:
    """The spans that the newest run read from a cache; with repeats all that count read them."""
    return [span for span in model.last.spans if span.source == "cached"]


# Which model was fastest.
@dataclass(frozen=True)
class RunVerdict:
    """The comparison in figures and sentences.

    `winner` is "" if none can be named; `mixed` says what prevents or limits it.  `models`: the
    fastest first if the runs can be ranked (also on a busy machine, where none is the winner),
    otherwise in the given order.
    """

    models: tuple[ComparedModel, ...]
    headline: str
    winner: str = ""
    reason: str = ""
    mixed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def verdict(compared: Sequence[ComparedModel], unfinished: Mapping[str, str]) -> RunVerdict:
    """The verdict on the models with complete runs; `unfinished` gives the state of the others
    ("failed", "cancelled") by label."""
    models = tuple(model for model in compared if model.complete)
    notes = _not_counted(compared, unfinished)
    if not models:
        return RunVerdict((), "No model has finished.", notes=notes)
    if len(models) < 2:
        label, (low, high) = models[0].label, models[0].tokens
        tokens = count(high, "token") if low == high else "its answers"
        headline = f"{label} took {_time(models[0].total)} for {tokens}."
        return RunVerdict(models, headline, notes=notes)
    busy = [
        model.label
        for model in models
        if any(load.busy for one in model.counted if (load := one.machine_load))
    ]
    disturbed: tuple[str, ...] = ()
    if busy:
        slowed = f"Other work on this machine slowed {joined(busy)}"
        disturbed = (f"{slowed}, so no model is called faster. Repeat on an idle machine.",)
    differences = _differences(models)
    notes += _shared(models)
    if differences:
        headline = f"No winner: the runs differ in {joined(differences)}."
        return RunVerdict(models, headline, mixed=(*differences.values(), *disturbed), notes=notes)
    ranked = tuple(sorted(models, key=lambda model: model.total.median))
    first, second, per_token = ranked[0], ranked[1], _per_token(models)
    if close := [model for model in ranked[1:] if not _apart(first.total, [model.total])]:
        listed = joined([model.label for model in (first, *close)])
        headline = f"No winner: the times of {listed} overlap."
        return RunVerdict(models, headline, reason=per_token, mixed=disturbed, notes=notes)
    # Who was first is a fact; that the model is faster does not follow on a busy machine.
    word = "first" if disturbed else "faster" if len(ranked) == 2 else "fastest"
    less = ms(second.total.median - first.total.median)
    headline = f"{first.label} was {word}: {ms(first.total.median)}, {less} less than "
    headline += f"{second.label}{', but the machine was busy' if disturbed else ''}."
    return RunVerdict(
        models=ranked,
        headline=headline,
        winner="" if disturbed else first.label,
        reason=f"{_reason(first, second)} {per_token}".strip(),
        mixed=disturbed,
        notes=notes,
    )


def _apart(first: RunRange, others: Iterable[RunRange]) -> bool:
    """Whether the whole range of `first` lies below those of the others, as they are shown."""
    return all(first.high < other.low and ms(first.high) != ms(other.low) for other in others)


# Conditions under which times can be compared.
def _cache(result: RunResult) -> str:
    read = [span.name for span in result.spans if span.source == "cached"]
    return f"{' and '.join(read)} read from the cache" if read else "all stages computed"


def _setting(name: str, result: RunResult) -> str:
    return result.request.how.settings[name]


CONDITIONS: Mapping[str, Callable[[RunResult], str]] = {
    "sample": lambda result: result.request.sample.id,
    "question": lambda result: result.request.prompt,
    "cache": _cache,
    "warm-up": lambda result: "cold (first run after loading)" if result.cold else "warm",
    "token steps": lambda result: result.backend,
    **{
        title.lower(): partial(_setting, name)
        for name, title in TITLES.items()
        if name not in ("cache", "backend")
    },
    "device": lambda result: result.environment.get("device", ""),
}


def _differences(models: Sequence[ComparedModel]) -> dict[str, str]:
    """A sentence for each condition that is not the same in all runs."""
    found = {}
    for name, value_of in CONDITIONS.items():
        who: dict[str, dict[str, None]] = {}
        for model in models:
            for result in model.counted:
                who.setdefault(value_of(result) or "unknown", {})[model.label] = None
        if len(who) > 1:
            parts = [f"{value} for {joined(labels)}" for value, labels in who.items()]
            found[name] = f"{name.capitalize()}: {'; '.join(parts)}."
    return found


# Sentences.
def _time(spread: RunRange) -> str:
    """One run's time, or the median of several with their range."""
    if spread.runs == 1:
        return ms(spread.median)
    return f"{ms(spread.median)} ({ms(spread.low)} to {ms(spread.high)})"


def _per_token(models: Sequence[ComparedModel]) -> str:
    """The model with the shortest time per token, if its range is apart from the others'."""
    known = [(spread, model.label) for model in models if (spread := model.per_token)]
    known.sort(key=lambda pair: pair[0].median)
    if len(known) < 2 or not _apart(known[0][0], [spread for spread, _ in known[1:]]):
        return ""
    return f"Per token, {known[0][1]} took the least time: {ms(known[0][0].median)}."


def _not_counted(
    compared: Sequence[ComparedModel], unfinished: Mapping[str, str]
) -> tuple[str, ...]:
    parts = [f"{label} {state}" for label, state in unfinished.items()]
    for model in compared:
        if not model.complete:
            parts.append(f"{model.label} cancelled")
            continue
        for reason, runs in model.left_out.items():
            parts.append(f"{count(runs, 'run')} of {model.label} ({reason})")
    return (f"Not counted: {'; '.join(parts)}.",) if parts else ()


def _shared(models: Sequence[ComparedModel]) -> tuple[str, ...]:
    """What limits the times of all models in the same way."""
    results = [result for model in models for result in model.counted]
    notes = []
    if all(result.cached for result in results):
        totals = [(model.label, model.time("uncached_total")) for model in models]
        listed = ", ".join(
            f"{label} {_time(time) if time else 'unknown'}" for label, time in totals
        )
        notes.append(f"All models read from the cache. Total without cache: {listed}.")
    if all(result.cold for result in results):
        notes.append("All runs were cold: the first after loading, with start-up work.")
    runs = sorted({len(model.counted) for model in models})
    if runs == [1]:
        notes.append("One run of each model: other runs take other times.")
    else:
        ends = str(runs[0]) if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
        notes.append(f"Medians and ranges of {ends} runs of each model.")
    return tuple(notes)


# The reason.
def _reason(first: ComparedModel, second: ComparedModel) -> str:
    """What saved `first` the most time against `second`, and what it lost; "" if a part of a run's
    time is not known.  The shares are those of the speed-up split and add up to the difference of
    the mean totals."""
    sides = [_means(model.counted) for model in (first, second)]
    if not all(sides):
        return ""
    parts = speedup.split_of("", "", 1, *map(speedup.factors_of, sides)).parts
    saved = sorted((part for part in parts if part.ms > 0), key=lambda part: -part.ms)
    lost = sorted((part for part in parts if part.ms < 0), key=lambda part: part.ms)
    difference = sum(part.ms for part in parts)
    if difference <= 0 or not saved:  # the means contradict the medians
        return ""
    main = saved[:1] if saved[0].ms >= MAIN * sum(part.ms for part in saved) else saved[:2]
    vision = first.last.span("vision")
    cached = vision is not None and vision.source == "cached"
    gains = joined([f"{ms(part.ms)} with {_part(part, cached)}" for part in main])
    losses = [part for part in lost[:1] if -part.ms >= MATERIAL * difference]
    costs = "".join(f", but lost {ms(-part.ms)} with {_part(part, cached)}" for part in losses)
    return f"Against {second.label} it saved {gains}{costs}."


def _means(results: Sequence[RunResult]) -> list[float]:
    """What speedup.factors_of() takes; empty if a run lacks a stage or its parts."""
    names = ("load", "preprocess", "vision", "decode", "decode.prefill", "decode.steps")
    spans = [[span for name in names if (span := result.span(name))] for result in results]
    if any(len(known) < len(names) for known in spans):
        return []
    times = [fmean(span.ms for span in column) for column in zip(*spans, strict=True)]
    total = fmean(result.total_ms for result in results)
    return [*times, total, fmean(result.new_tokens for result in results)]


def _part(part: SpeedupFactor, cached: bool) -> str:
    """A factor in words, with its value in both models."""
    if part.name == speedup.TOKENS:
        counts = f"({part.a:,.0f} against {part.b:,.0f})"
        return f"{'fewer' if part.ms > 0 else 'more'} tokens {counts}"
    values = f"({ms(part.a)} against {ms(part.b)})"
    if part.name == speedup.PER_TOKEN:
        return f"{'faster' if part.ms > 0 else 'slower'} token steps {values}"
    name = "reading of cached features" if cached and part.name == speedup.VISION else part.name
    return f"{'shorter' if part.ms > 0 else 'longer'} {name} {values}"
