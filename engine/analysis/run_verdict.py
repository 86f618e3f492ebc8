"""Which of the compared models was fastest, and why; or why this cannot be said.

A winner is named only among complete runs under equal conditions; of repeated runs, only if their
ranges do not overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from engine.analysis import speedup
from engine.analysis.compared import ComparedModel, RunRange
from engine.quoting import count, joined, ms
from engine.types import STAGES, TITLES, RunResult, pixels_of

MATERIAL = 0.25  # of the difference: a loss of this size is part of the reason
MAIN = 0.5  # of all that was saved: below it, the second saving is named too


@dataclass(frozen=True)
class ModelFigures:
    """A model's total (ms), its new tokens (fewest, most) and its time per token (ms)."""

    label: str
    family: str
    total: RunRange
    tokens: tuple[int, int]
    per_token: RunRange | None


@dataclass(frozen=True)
class RunVerdict:
    """The comparison in figures and sentences.

    `winner` is "" if none can be named; `mixed` says what prevents or limits it.  `models`: the
    fastest first if the runs can be ranked (also on a busy machine, where none is the winner),
    otherwise in the given order.
    """

    models: tuple[ModelFigures, ...]
    headline: str
    winner: str = ""
    reason: str = ""
    mixed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def verdict(compared: Sequence[ComparedModel], unfinished: Mapping[str, str]) -> RunVerdict:
    """The verdict on the models with complete runs; `unfinished` gives the state of the others
    ("failed", "cancelled") by label."""
    models = [model for model in compared if _complete(model)]
    figures = tuple(figures_of(model) for model in models)
    notes = _not_counted(compared, unfinished)
    if len(models) < 2:
        return RunVerdict(figures, _alone(figures), notes=notes)
    differences, disturbed = _differences(models), _disturbed(models)
    if differences:
        headline = f"No winner: the runs differ in {joined(differences)}."
        mixed = (*differences.values(), *disturbed)
        return RunVerdict(figures, headline, mixed=mixed, notes=(*notes, *_shared(models)))
    ranked = sorted(models, key=lambda model: _total(model).median)
    notes = (*notes, *_shared(models))
    if not _apart(_total(ranked[0]), [_total(model) for model in ranked[1:]]):
        reason = _per_token(models)
        return RunVerdict(figures, _overlap(ranked), reason=reason, mixed=disturbed, notes=notes)
    reason = f"{_reason(ranked[0], ranked[1])} {_per_token(models)}".strip()
    ordered = tuple(figures_of(model) for model in ranked)
    mixed = (*_by_the_cache(ranked), *disturbed)
    if disturbed:
        return RunVerdict(ordered, _first(ranked), reason=reason, mixed=mixed, notes=notes)
    return RunVerdict(ordered, _won(ranked), ranked[0].label, reason, mixed, notes)


def _complete(model: ComparedModel) -> bool:
    """Whether a run was not cancelled; if so, only such runs count."""
    return model.last.generation.stop != "cancelled"


def _total(model: ComparedModel) -> RunRange:
    found = model.time("total")
    assert found is not None  # every result has a total
    return found


def figures_of(model: ComparedModel) -> ModelFigures:
    """The figures of the model's runs that count."""
    tokens = [result.new_tokens for result in model.counted]
    ends = min(tokens), max(tokens)
    return ModelFigures(model.label, model.family, _total(model), ends, model.time("tpot"))


def _apart(first: RunRange, others: Iterable[RunRange]) -> bool:
    """Whether the whole range of `first` lies below those of the others, as they are shown."""
    return all(first.high < other.low and ms(first.high) != ms(other.low) for other in others)


# Conditions under which times can be compared.
def _cache(result: RunResult) -> str:
    if result.prefix is not None:
        return f"prompt prefix {result.prefix.state}"
    read = [str(stage) for stage in STAGES if _is_cached(result, stage)]
    return f"{' and '.join(read)} read from the cache" if read else "all stages computed"


def _is_cached(result: RunResult, stage: str) -> bool:
    span = result.span(stage)
    return span is not None and span.source == "cached"


def _setting(name: str, result: RunResult) -> str:
    return result.request.settings[name]


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
    chosen = any(pixels_of(one.request.model) for model in models for one in model.counted)
    for name, value_of in CONDITIONS.items():
        if name == "pixels" and chosen:
            continue
        who: dict[str, dict[str, None]] = {}
        for model in models:
            for result in model.counted:
                who.setdefault(value_of(result) or "unknown", {})[model.label] = None
        if len(who) > 1:
            parts = [f"{value} for {joined(labels)}" for value, labels in who.items()]
            found[name] = f"{name.capitalize()}: {'; '.join(parts)}."
    return found


def _disturbed(models: Sequence[ComparedModel]) -> tuple[str, ...]:
    """A sentence that names the models whose runs were disturbed by other work, if any."""
    labels = [
        model.label
        for model in models
        if any(load.busy for one in model.counted if (load := one.machine_load))
    ]
    if not labels:
        return ()
    return (
        f"Other work on this machine slowed {joined(labels)}, so no model is called faster. "
        "Repeat on an idle machine.",
    )


def _by_the_cache(ranked: Sequence[ComparedModel]) -> tuple[str, ...]:
    """A sentence if another model would be first with computed instead of cached features."""
    without = [(model.time("uncached_total"), model.label) for model in ranked]
    known = [(spread.median, label) for spread, label in without if spread is not None]
    if len(known) < len(ranked) or not all(one.cached for m in ranked for one in m.counted):
        return ()
    (least, label), first = min(known), known[0]
    if label == first[1]:
        return ()
    return (
        f"Only with cached features: computed, {label} takes {ms(least)} and {first[1]} "
        f"{ms(first[0])}.",
    )


# Sentences.
def _alone(figures: Sequence[ModelFigures]) -> str:
    if not figures:
        return "No model has finished."
    one = figures[0]
    tokens = count(one.tokens[1], "token") if one.tokens[0] == one.tokens[1] else "its answers"
    return f"{one.label} took {_time(one.total)} for {tokens}."


def _time(spread: RunRange) -> str:
    """One run's time, or the median of several with their range."""
    if spread.runs == 1:
        return ms(spread.median)
    return f"{ms(spread.median)} ({ms(spread.low)} to {ms(spread.high)})"


def _won(ranked: Sequence[ComparedModel]) -> str:
    first, second = _total(ranked[0]), _total(ranked[1])
    word = "faster" if len(ranked) == 2 else "fastest"
    less = ms(second.median - first.median)
    return f"{ranked[0].label} was {word}: {ms(first.median)}, {less} less than {ranked[1].label}."


def _first(ranked: Sequence[ComparedModel]) -> str:
    """Who was first is a fact; that the model is faster does not follow on a busy machine."""
    first, second = _total(ranked[0]), _total(ranked[1])
    less = ms(second.median - first.median)
    return (
        f"{ranked[0].label} was first: {ms(first.median)}, {less} less than {ranked[1].label}, "
        "but the machine was busy."
    )


def _overlap(ranked: Sequence[ComparedModel]) -> str:
    first = _total(ranked[0])
    close = [model for model in ranked[1:] if not _apart(first, [_total(model)])]
    listed = joined([model.label for model in (ranked[0], *close)])
    return f"No winner: the times of {listed} overlap."


def _per_token(models: Sequence[ComparedModel]) -> str:
    """The model with the shortest time per token, if its range is apart from the others'."""
    known = [(spread, model.label) for model in models if (spread := model.time("tpot"))]
    known.sort(key=lambda pair: pair[0].median)
    if len(known) < 2 or not _apart(known[0][0], [spread for spread, _ in known[1:]]):
        return ""
    return f"Per token, {known[0][1]} took the least time: {ms(known[0][0].median)}."


def _not_counted(
    compared: Sequence[ComparedModel], unfinished: Mapping[str, str]
) -> tuple[str, ...]:
    parts = [f"{label} {state}" for label, state in unfinished.items()]
    for model in compared:
        if not _complete(model):
            parts.append(f"{model.label} cancelled")
            continue
        for left in model.left_out:
            parts.append(f"{count(left.runs, 'run')} of {model.label} ({left.reason})")
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
    ours, theirs = _factors(first.counted), _factors(second.counted)
    if ours is None or theirs is None:
        return ""
    values = zip(speedup.FACTORS, ours, theirs, speedup.shares(ours, theirs), strict=True)
    parts = [_Share(*value) for value in values]
    saved = sorted((part for part in parts if part.ms > 0), key=lambda part: -part.ms)
    lost = sorted((part for part in parts if part.ms < 0), key=lambda part: part.ms)
    difference = sum(part.ms for part in parts)
    if difference <= 0 or not saved:  # the means contradict the medians
        return ""
    main = saved[:1] if saved[0].ms >= MAIN * sum(part.ms for part in saved) else saved[:2]
    cached = _is_cached(first.last, "vision")
    gains = joined([f"{ms(part.ms)} with {_part(part, cached)}" for part in main])
    losses = [part for part in lost[:1] if -part.ms >= MATERIAL * difference]
    costs = "".join(f", but lost {ms(-part.ms)} with {_part(part, cached)}" for part in losses)
    return f"Against {second.label} it saved {gains}{costs}."


@dataclass(frozen=True)
class _Share:
    """A factor of speedup.FACTORS: its value in both models, and its share of the difference."""

    name: str
    a: float
    b: float
    ms: float


def _factors(results: Sequence[RunResult]) -> tuple[float, ...] | None:
    """Mean values in the order of speedup.FACTORS; None if a run lacks a stage or its parts."""
    names = ("load", "preprocess", "vision", "decode", "decode.prefill", "decode.steps")
    spans = [{name: result.span(name) for name in names} for result in results]
    if not all(all(found.values()) for found in spans):
        return None
    load, preprocess, vision, decode, prefill, steps = (
        fmean(span.ms for found in spans if (span := found[name])) for name in names
    )
    gaps = fmean(result.new_tokens for result in results) - 1
    total = fmean(result.total_ms for result in results)
    around = decode - prefill - (steps if gaps > 0 else 0.0)
    unaccounted = total - load - preprocess - vision - decode
    per_token = steps / gaps if gaps > 0 else 0.0
    return load, preprocess, vision, prefill, gaps, per_token, around, unaccounted


def _part(part: _Share, cached: bool) -> str:
    """A factor in words, with its value in both models."""
    if part.name == speedup.TOKENS:
        counts = f"({part.a + 1:,.0f} against {part.b + 1:,.0f})"  # the first is the prefill's
        return f"{'fewer' if part.ms > 0 else 'more'} tokens {counts}"
    values = f"({ms(part.a)} against {ms(part.b)})"
    if part.name == speedup.PER_TOKEN:
        return f"{'faster' if part.ms > 0 else 'slower'} token steps {values}"
    name = "reading of cached features" if cached and part.name == speedup.VISION else part.name
    return f"{'shorter' if part.ms > 0 else 'longer'} {name} {values}"
