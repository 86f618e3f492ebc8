"""The figures of an answer, worded once for the terminal, cards and pages."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.analysis.compared import ComparedModel, RunRange
from engine.quoting import NONE, count, ms, rate
from engine.storage.result_rows import ResultRow
from engine.types import SERVER, SERVER_PARTS, STAGES, Span

FORMULAS = {
    "Total": "From the start of the run to its end. Queue time is not included.",
    "TTFT": "Time to first token: from the start of the run to the first new token. "
    "Queue time is not included.",
    "TPOT": "Time per output token: (end of the run − TTFT) / (N − 1), for N new tokens.",
    "tok/s": "(N − 1) / seconds after the first token, for N new tokens.",
    "New tokens": "Tokens the model produced, with the end-of-answer token, without the prompt.",
    "Prompt tokens": "Tokens of the prompt, including the visual tokens.",
}
_OF_SERVER = ("at the server", "upload and queue", "first text", "rest of the answer")
PART_NAMES = dict(zip((SERVER, *SERVER_PARTS), _OF_SERVER, strict=True))
PLAIN = ("tok/s", "New tokens", "Prompt tokens")  # not milliseconds
STOPS = {
    "eos": "",
    "length": "Stopped at the limit of new tokens.",
    "cancelled": "Cancelled before the end.",
}
SOURCES = {
    "cached": "read from the cache",
    "hook": "timed by a hook",
    "derived": "derived from the total",
}


@dataclass(frozen=True)
class AnswerFigure:
    """A name of FORMULAS or of a part of a run, a number, and the range of several runs."""

    name: str
    value: str = NONE
    ends: tuple[str, str] | None = None

    @property
    def words(self) -> str:
        unit = "" if self.name in PLAIN or self.value == NONE else " ms"
        return f"{self.value}{unit}" + (f" ({' to '.join(self.ends)})" if self.ends else "")


def figure(name: str, spread: RunRange | None) -> AnswerFigure:
    if spread is None:
        return AnswerFigure(name)
    low, middle, high = (_text(name, value) for value in (spread.low, spread.middle, spread.high))
    return AnswerFigure(name, middle, (low, high) if spread.runs > 1 else None)


def of_row(row: ResultRow) -> list[tuple[str, str]]:
    """(name, words) of one stored result; a sample of a batch has the batch's time."""
    numbers: dict[str, float | None] = {"New tokens": row.new_tokens}
    if row.batch == 1:
        numbers |= {"TTFT": row.ttft_ms, "TPOT": row.tpot_ms, "Total": row.total_ms}
    spreads = {n: None if v is None else RunRange(v, v, v, 1) for n, v in numbers.items()}
    found = [(name, figure(name, spread).words) for name, spread in spreads.items()]
    return [*found, (f"Batch of {row.batch:,}", ms(row.batch_ms))] if row.batch > 1 else found


def _text(name: str, value: float) -> str:
    if name not in PLAIN:
        return ms(value).removesuffix(" ms")
    return rate(value).removesuffix(" tok/s") if name == "tok/s" else f"{value:,g}"


def figures(model: ComparedModel) -> tuple[AnswerFigure, ...]:
    """The figures of the model's runs, in the order of FORMULAS."""
    steps, speed = model.time("tpot"), None
    if steps is not None and steps.low:
        speed = RunRange(1000 / steps.middle, 1000 / steps.high, 1000 / steps.low, steps.runs)
    spreads = {"Total": model.total, "TTFT": model.time("ttft"), "TPOT": steps, "tok/s": speed}
    numbers = {
        "New tokens": [result.new_tokens for result in model.counted],
        "Prompt tokens": [result.generation.prompt_tokens for result in model.counted],
    }
    place = model.counted.index(model.middle)
    for name, every in numbers.items():  # a single value if all runs have the same
        values = [value for value in every if value is not None]
        if len(values) < len(every):  # a server does not tell
            spreads[name] = None
            continue
        runs = len(values) if min(values) < max(values) else 1
        spreads[name] = RunRange(values[place], min(values), max(values), runs)
    return tuple(figure(name, spreads[name]) for name in FORMULAS)


def notes(model: ComparedModel) -> list[str]:
    """The number of runs, those that do not count, and the total without cache."""
    runs = len(model.counted)
    sentences = [f"The median run of {runs:,}, with the range of all."] if runs > 1 else []
    sentences += [f"{count(n, 'run')} left out: {why}." for why, n in model.left_out.items()]
    if model.last.cached:
        whole = model.time("uncached_total")
        sentences.append(f"Without cache: {ms(whole.middle if whole else None)}.")
    return sentences


def stage_words(name: str, span: Span) -> str:
    how = SOURCES.get(span.source, "")
    if span.source == "cached":
        how = f"{how}; when computed: {ms(span.original_ms)}"
    return f"{name} {ms(span.ms)}" + (f" ({how})" if how else "")


def stages(spans: Mapping[str, Span | None]) -> str:
    """The times of the stages, and of the parts at a server, that were recorded."""
    known = [(PART_NAMES.get(name, name), spans.get(name)) for name in (*STAGES, *SERVER_PARTS)]
    return ", ".join(stage_words(name, span) for name, span in known if span)
