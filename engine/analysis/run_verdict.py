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
from engine.analysis.speedup import SpeedupFactor
from engine.quoting import count, joined, ms
from engine.types import TITLES, RunResult, pixels_of

MATERIAL = 0.25  # of the difference: a loss of this size is part of the reason
MAIN = 0.5  # of all that was saved: below it, the second saving is named too


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
    if result.prefix is not None:
        return f"prompt prefix {result.prefix.state}"
    read = [span.name for span in result.spans if span.source == "cached"]
    return f"{' and '.join(read)} read from the cache" if read else "all stages computed"


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
