"""What Compare shows: each model's finished runs of one request with their spread, which model was
fastest and why, or why this cannot be said.

Of several runs, all figures are those of the middle run, whose total is the median: so parts add up
to totals.  Only runs in one state are summarised together: a cold run, a cancelled run, and a run
that computed what the others read from the cache are left out, and the reason is given.

A winner is named only among complete runs under equal conditions, if an exact rank-sum test shows
that it was faster than each of the others.  All of these tests have to succeed, so none needs a
correction for their number.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate

from engine.analysis import pairs
from engine.analysis.pairs import Split
from engine.analysis.statistics import FEWEST_REPEATS, shift_interval
from engine.palette import UNACCOUNTED
from engine.quoting import count, joined, ms, tokens_told
from engine.types import SERVER_PARTS, STAGES, TITLES, RunResult, Span, StageName

TIMES = ("total", "uncached_total", "ttft", "tpot", UNACCOUNTED)
CANCELLED = "cancelled before the end"
DECODE: StageName = "decode"
PREFILL, STEPS, REST = "decode.prefill", "decode.steps", "decode.rest"
_WHOLE: tuple[str, ...] = tuple(stage for stage in STAGES if stage != DECODE)
RUN_PARTS: tuple[str, ...] = (*_WHOLE, PREFILL, STEPS, REST, UNACCOUNTED)
SERVED_PARTS: tuple[str, ...] = ("load", "preprocess", *SERVER_PARTS, UNACCOUNTED)
REPEATS = 10  # of each model: beside a browser that draws, 5 often decide nothing
FROM_CACHE, REST_OF_RUN = "vision from cache", "the rest"  # parts of the difference


@dataclass(frozen=True)
class RunRange:
    """The middle run's value and the range of those of `runs` runs, in milliseconds."""

    middle: float
    low: float
    high: float
    runs: int

    @property
    def words(self) -> str:
        """Of which run the value is, with the range; "" for one run."""
        several = f"median run of {self.runs:,}: {ms(self.low)} to {ms(self.high)}"
        return several if self.runs > 1 else ""


@dataclass(frozen=True)
class ComparedModel:
    """A model's label, its family (for its colour) and its results, oldest first; at least one.
    `failures` are the errors of its runs that have no result; `unfinished` counts those that were
    cancelled before they had one."""

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

    @cached_property
    def middle(self) -> RunResult:
        """The run that counts and has the median total; of an even number the quicker of two."""
        ranked = sorted(self.counted, key=lambda result: result.total_ms)
        return ranked[(len(ranked) - 1) // 2]

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
    def tokens(self) -> str:
        numbers = [number for one in self.counted if (number := one.new_tokens) is not None]
        if len(numbers) < len(self.counted):
            return tokens_told(None)
        low, high = min(numbers), max(numbers)
        return count(high, "token") if low == high else f"{low:,} to {high:,} tokens"

    @property
    def left_out(self) -> dict[str, int]:
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
        """The spread of a time of TIMES or of a span ("vision", "decode.prefill", ...).  None if
        the middle run does not have it; other runs without it do not count."""
        known = [value for one in self.counted if (value := _time_of(one, name)) is not None]
        middle = _time_of(self.middle, name)
        return None if middle is None else RunRange(middle, min(known), max(known), len(known))

    def times(self) -> dict[str, RunRange]:
        """The spread of each time that a run has: TIMES, the stages and the parts of decode."""
        names = (*TIMES, *STAGES, PREFILL, STEPS)
        return {name: spread for name in names if (spread := self.time(name)) is not None}


def _time_of(result: RunResult, name: str) -> float | None:
    if name in TIMES:
        known: float | None = getattr(result, f"{name}_ms")
        return known
    span = result.span(name)
    return span.ms if span else None


def cancelled(result: RunResult) -> bool:
    return result.generation.stop == "cancelled"


def _state(result: RunResult) -> tuple[object, ...]:
    """What makes two runs of one request comparable: warmth, backend, and every span's source."""
    sources = frozenset((span.name, span.source) for span in result.spans)
    return cancelled(result), result.cold, result.backend, sources


def segments(times: Mapping[str, float], order: Sequence[str]) -> tuple[Span, ...]:
    """The parts of `order` end to end; one without a time has no length."""
    lengths = [max(0.0, times.get(part, 0.0)) for part in order]
    return tuple(map(Span, order, accumulate(lengths, initial=0.0), lengths))


def run_parts(model: ComparedModel) -> tuple[str, ...]:
    """The parts of its runs: RUN_PARTS, or SERVED_PARTS if a server answered."""
    return SERVED_PARTS if model.middle.served else RUN_PARTS


def run_times(model: ComparedModel) -> dict[str, float]:
    """The middle run's time of each part of run_parts() that was measured, in milliseconds.  REST
    is what decode took apart from its prefill and its token steps."""
    times = ((name, _time_of(model.middle, name)) for name in run_parts(model))
    known = {name: ms for name, ms in times if ms is not None}
    decode = model.middle.span(DECODE)
    if decode:
        known[REST] = max(0.0, decode.ms - known.get(PREFILL, 0.0) - known.get(STEPS, 0.0))
    return known


def uncached_times(model: ComparedModel) -> dict[str, float] | None:
    """run_times() with each cached stage at the time of its computation; None if no stage was
    cached."""
    cached = {span.name: span.original_ms or 0.0 for span in cached_spans(model)}
    return run_times(model) | cached if cached else None


def cached_spans(model: ComparedModel) -> list[Span]:
    """The stages that the middle run read from a cache; with repeats all that count read them."""
    return [span for span in model.middle.spans if span.source == "cached"]


# Which model was fastest.
@dataclass(frozen=True)
class RunVerdict:
    """`winner` is "" if none can be named; `mixed` says what prevents or limits it.  `split` is the
    difference between the totals of the first and the second model, in parts that add up to it.
    `repeats`: how many runs of each can decide; 0 if no number can, or if it is decided.  `models`
    keep the given order.
    """

    models: tuple[ComparedModel, ...]
    headline: str
    winner: str = ""
    reason: str = ""
    mixed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    split: Split | None = None
    repeats: int = 0


def verdict(compared: Sequence[ComparedModel], unfinished: Mapping[str, str]) -> RunVerdict:
    """The verdict on the models with complete runs; `unfinished` gives the state of the others
    ("failed", "cancelled") by label."""
    models = tuple(model for model in compared if model.complete)
    missing, notes = _not_counted(compared, unfinished)
    again = REPEATS if any("cancelled" in sentence for sentence in missing) else 0
    if not models:
        return RunVerdict((), "No model has finished.", notes=notes, mixed=missing)
    if len(models) < 2:
        (only,) = models
        headline = f"{only.label} took {_time(only.total)} for {only.tokens}."
        return RunVerdict(models, headline, mixed=missing, notes=notes, repeats=again)
    notes += (*_per_token(models), *_shared(models))
    if differences := _differences(models):
        headline = f"No winner: the runs differ in {joined(differences)}."
        mixed = (*differences.values(), *_slowed(models, ""), *missing)
        again = REPEATS if differences.keys() <= {"cache", "warm-up"} else 0  # they pass
        return RunVerdict(models, headline, mixed=mixed, notes=notes, repeats=again)
    found = _undecided(models) or _first(models)
    return replace(found, mixed=(*_cached(models), *found.mixed, *missing), notes=notes)


def _cached(models: Sequence[ComparedModel]) -> Iterator[str]:
    """Who is first with the time of what came from the cache, unless it is who is first without."""
    first = min(models, key=lambda model: model.total.middle)
    whole = min(models, key=lambda model: model.middle.uncached_total_ms)
    if whole is not first:
        least = f"{whole.label} took the least: {ms(whole.middle.uncached_total_ms)}"
        yield f"Vision came from the cache; with its own time, measured once, {least}."


def _again(models: Sequence[ComparedModel]) -> int:
    """How many runs of each can decide what these do not; 0 if they are as many as are offered."""
    runs = min(len(model.counted) for model in models)
    return REPEATS if runs < REPEATS else 0


def _undecided(models: tuple[ComparedModel, ...]) -> RunVerdict | None:
    """No difference between the model with the least median and others; None if there is one, or
    if there are too few runs for the test and the times differ."""
    first, second, *others = sorted(models, key=lambda model: model.total.middle)
    few = min(len(model.counted) for model in models) < FEWEST_REPEATS
    close = [] if few else [one for one in (second, *others) if _shift(first, one)[0] <= 0]
    if not close and ms(first.total.middle) != ms(second.total.middle):
        return None
    reason = ""
    if close:
        low, high = _shift(first, close[0])
        reason = (
            f"{first.label} took {ms(first.total.middle)} and {close[0].label} "
            f"{ms(close[0].total.middle)}, but these runs do not decide: the 95 % interval of the "
            f"difference, {ms(low)} to {ms(high)}, {'includes' if high >= 0 else 'lies below'} 0."
        )
        if slower := [one.label for one in (second, *others) if one not in close]:
            reason += f" {first.label} is faster than {joined(slower)}."
    return RunVerdict(
        models=models,
        headline=f"No difference shown between "
        f"{joined([one.label for one in (first, *(close or [second]))])}.",
        reason=reason,
        mixed=_slowed(models, ""),
        split=split(first, (close or [second])[0]),
        repeats=_again(models),
    )


def _first(models: tuple[ComparedModel, ...]) -> RunVerdict:
    """Who was first, which is a fact, and whether it is faster, which is a conclusion."""
    first, second, *others = sorted(models, key=lambda model: model.total.middle)
    counts = sorted({len(model.counted) for model in models})
    alike = not any(map(_disturbed, models)) or _took_turns(models)
    decided = counts[0] >= FEWEST_REPEATS and alike
    less = f"{ms(second.total.middle - first.total.middle)} less than {second.label}"
    if decided:
        did = f"is {'fastest' if others else 'faster'} on this sample"
        less += f" (95 % interval {' to '.join(map(ms, _shift(first, second)))})"
        effect = "; they took turns, so the order holds"
    else:
        runs = " to ".join(map(str, (counts[0], counts[-1])[: len(counts)]))
        did = f"was first {'in this run' if runs == '1' else f'by the medians of {runs} runs'}"
        effect = "; without it the order may differ"
    found = split(first, second)
    return RunVerdict(
        models=models,
        headline=f"{first.label} {did}: {ms(first.total.middle)}, {less}.",
        winner=first.label if decided else "",
        reason=_largest(found),
        mixed=_slowed(models, effect),
        split=found,
        repeats=0 if decided else _again(models),
    )


def _slowed(models: Sequence[ComparedModel], effect: str) -> tuple[str, ...]:
    """Which models other work slowed, with its effect; nothing if it slowed none."""
    busy = [model.label for model in models if _disturbed(model)]
    if not busy:
        return ()
    who = "all models" if len(busy) == len(models) else joined(busy)
    return (f"Other work slowed {who}{effect}.",)


def _disturbed(model: ComparedModel) -> bool:
    return any(load.busy for one in model.counted if (load := one.machine_load))


def _took_turns(models: Sequence[ComparedModel]) -> bool:
    """Whether each model's runs began while those of every other one went on: other work then slows
    all of them alike."""
    began = [[load.began_s for run in one.counted if (load := run.machine_load)] for one in models]
    return all(began) and max(map(min, began)) < min(map(max, began))


def _shift(first: ComparedModel, second: ComparedModel) -> tuple[float, float]:
    """The 95 % interval of what `second` takes longer, in ms; of enough runs."""
    totals = ([result.total_ms for result in model.counted] for model in (first, second))
    interval = shift_interval(*totals)
    assert interval is not None
    return interval


# Conditions under which times can be compared.
def _cache(result: RunResult) -> str:
    read = [span.name for span in result.spans if span.source == "cached"]
    return f"{' and '.join(read)} read from the cache" if read else "all stages computed"


CONDITIONS: Mapping[str, Callable[[RunResult], str]] = {
    "sample": lambda result: result.request.sample.id,
    "question": lambda result: result.request.prompt,
    "cache": _cache,
    "warm-up": lambda result: "cold (first run after loading)" if result.cold else "warm",
    "token steps": lambda result: result.backend,
    **{
        title.lower(): partial(lambda name, result: result.request.how.settings[name], name)
        for name, title in TITLES.items()
        if name not in ("cache", "backend")
    },
    "device": lambda result: result.environment.get("device", ""),
}


NOT_OF_SERVERS = ("cache", "warm-up", "token steps", "mode")


def _differences(models: Sequence[ComparedModel]) -> dict[str, str]:
    """A sentence for each condition that is not the same in all runs."""
    found = {}
    mixed = len({bool(model.middle.served) for model in models}) > 1
    for name, value_of in CONDITIONS.items():
        if mixed and name in NOT_OF_SERVERS:  # the device says it
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
        return ms(spread.middle)
    return f"{ms(spread.middle)} ({ms(spread.low)} to {ms(spread.high)})"


def _per_token(models: Sequence[ComparedModel]) -> Iterator[str]:
    """The model with the shortest time per token, if its range is apart from the others'."""
    known = [(spread, model.label) for model in models if (spread := model.time("tpot"))]
    known.sort(key=lambda pair: pair[0].middle)
    if len(known) < 2 or ms(known[0][0].high) == ms(known[1][0].low):
        return
    (least, label), *others = known
    if all(least.high < spread.low for spread, _ in others):
        yield f"Per token, {label} took the least time: {ms(least.middle)}."


def _not_counted(
    compared: Sequence[ComparedModel], unfinished: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A sentence on the models that have no complete run, and one on single runs."""
    whole = [f"{label} {state}" for label, state in unfinished.items()]
    whole += [f"{model.label} cancelled" for model in compared if not model.complete]
    runs = [
        f"{count(number, 'run')} of {model.label} ({reason})"
        for model in compared
        if model.complete
        for reason, number in model.left_out.items()
    ]
    missing, notes = (
        (f"Not counted: {'; '.join(parts)}.",) if parts else () for parts in (whole, runs)
    )
    return missing, notes


def _shared(models: Sequence[ComparedModel]) -> Iterator[str]:
    """What limits the times of all models in the same way."""
    results = [result for model in models for result in model.counted]
    if all(result.cached for result in results):
        totals = [(model.label, model.time("uncached_total")) for model in models]
        texts = [f"{label} {_time(time) if time else 'unknown'}" for label, time in totals]
        yield f"All models read from the cache. Total without cache: {', '.join(texts)}."
    if all(result.cold for result in results):
        yield "All runs were cold: the first after loading, with start-up work."
    runs = sorted({len(model.counted) for model in models})
    if runs == [1]:
        yield "One run of each model: other runs take other times."
    else:
        ends = str(runs[0]) if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
        yield f"Times of the median run of {ends}, with the ranges of all."


# The reason.
def split(first: ComparedModel, second: ComparedModel) -> Split | None:
    """The difference between the middle runs' totals in parts that add up to it: Shapley's shares,
    with the time after the first token as tokens times TPOT.  None if a part was not measured."""
    names = ("load", "preprocess", "vision", "decode", "decode.prefill", "ttft", "total")
    sides = []
    for model in (first, second):
        times = [ms for name in names if (ms := _time_of(model.middle, name)) is not None]
        tokens = model.middle.new_tokens
        if len(times) < len(names) or tokens is None:
            return None
        *stages, ttft, total = times
        sides.append(pairs.factors_of((*stages, total - ttft, total, tokens)))
    found = pairs.split_of(first.label, second.label, 1, *sides)
    *parts, around, unaccounted = found.parts
    rest = {key: getattr(around, key) + getattr(unaccounted, key) for key in ("a", "b", "ms")}
    if any(span.name == "vision" for model in (first, second) for span in cached_spans(model)):
        renamed = {pairs.VISION: FROM_CACHE}
        parts = [replace(part, name=renamed.get(part.name, part.name)) for part in parts]
    return replace(found, parts=(*parts, replace(around, name=REST_OF_RUN, **rest)))


def _largest(found: Split | None) -> str:
    """The part that saved the most, and what the others did together; "" without parts."""
    if found is None:
        return ""
    part = max(found.parts, key=lambda part: part.ms)
    named = {pairs.TOKENS: "Fewer tokens", pairs.PER_TOKEN: "Less time per token"}
    values = [
        f"{value:,.0f}" if part.name == pairs.TOKENS else ms(value) for value in (part.a, part.b)
    ]
    others = found.b_ms - found.a_ms - part.ms
    did = f"saved {ms(others)} more" if others >= 0 else f"cost {ms(-others)}"
    rest = f"; everything else together {did}" if ms(abs(others)) != ms(0.0) else ""
    what = named.get(part.name, f"Less time for {part.name}")
    return f"{what} ({' against '.join(values)}) saved {ms(part.ms)}{rest}."
