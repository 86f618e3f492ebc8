"""The figures of an answer, worded once for the terminal, cards and pages; and what a browser
draws of a sample's answers and plays at their recorded times: bundle.js.  A bundle has it of every
sample; Compare has it of the shown runs, as a page of its own."""

import gzip
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from engine.analysis import agreement
from engine.analysis.compared import ComparedModel, RunRange
from engine.analysis.model_summary import BY_NAME
from engine.palette import DECODE_COLOURS, SERVER_COLOURS, STAGE_COLOURS, family_colour, tones
from engine.quoting import NONE, count, ms, rate
from engine.storage.result_rows import ResultRow
from engine.types import SERVER, SERVER_PARTS, STAGES, Span

_METRICS = {"Total": "total", "TTFT": "ttft", "TPOT": "tpot", "tok/s": "tokens_per_s",
            "New tokens": "new_tokens", "Prompt tokens": "context_tokens"}  # fmt: skip
FORMULAS = {name: BY_NAME[metric].meaning for name, metric in _METRICS.items()}
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
# Of the replay.
PARTS = (*(name for name in STAGES if name != "decode"), "prefill", "steps")  # decode in two
_OF_DECODE = {name: DECODE_COLOURS[f"decode.{name}"] for name in PARTS[-2:]}
COLOURS = {**STAGE_COLOURS, **SERVER_COLOURS, **_OF_DECODE}
WORDS = {"steps": "token steps", **PART_NAMES}
NO_TEXT_TIMES = "The times of its words were not recorded: the text appears with the last token."


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


def page(sample: str, question: str, rows: Sequence[tuple[str, ResultRow]], scheme: str) -> str:
    """One sample as an HTML file without media; `scheme`: light or dark."""
    from engine.report import drawers  # its templates wait for a document

    told = {"id": sample, "question": question, "reference": "", "media": []}
    index = {"chunk": 1, "samples": [[sample, "", question, None, 0]]}
    whole = drawers.html(f"Replay: {sample}", [], 1, script(), scheme)
    return one_file(whole, [(0, [told | {"answers": answers(rows)}]), (-1, index)])


def script() -> str:
    """What lists, searches, shows and replays samples in a browser."""
    return Path(__file__).with_name("bundle.js").read_text(encoding="utf-8")


def packed(value: object) -> str:
    """JSON as the script of samples reads it: gzip in base64, in which nothing can end a script."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def one_file(page: str, parts: Iterable[tuple[int, object]]) -> str:
    """A page with the numbered data of its script inside, as blocks that do not run."""
    blocks = (
        f'<script type="application/gzip" data-number="{number}">{packed(part)}</script>\n'
        for number, part in parts
    )
    return page.replace("</head>", f"{''.join(blocks)}</head>", 1)


def answers(rows: Sequence[tuple[str, ResultRow]]) -> list[dict[str, Any]]:
    """Each label's answer, with its differences from the first one that did not fail."""
    colours = tones([row.family or "" for _, row in rows])
    first = next((row.text or "" for _, row in rows if not row.error), "")
    found = []
    for (label, row), colour in zip(rows, map(family_colour, colours), strict=True):
        text, pieces, spans = row.text or "", _pieces(row), _spans(row)
        whole = row.batch_spans if row.batch > 1 else {**row.spans, **spans}
        notes = [row.standing.words, *(["cold run"] if row.cold else []), *row.notes]
        untimed = 0 < len(pieces[0]) < len(_times(row))
        found.append({
            "label": label,
            "colour": colour,
            "text": text,
            "error": row.error or "",
            "figures": of_row(row),
            "stages": stages(whole),
            "bars": [
                [WORDS.get(name, name), round(span.start_ms, 2), round(span.ms, 2), COLOURS[name]]
                for name, span in spans.items()
            ],
            "pieces": pieces,
            "total": round((row.total_ms if row.batch == 1 else row.batch_ms) or 0.0, 2),
            "notes": [*notes, *([NO_TEXT_TIMES] if untimed else [])],
            "changes": [] if row.error or text == first else agreement.difference(first, text),
        })  # fmt: skip
    return found


def _spans(row: ResultRow) -> Mapping[str, Span]:
    """The stages, with decode in its two parts if they are known, and the parts at a server."""
    spans = row.batch_spans if row.batch > 1 else row.spans
    names = PARTS if spans.get("prefill") and spans.get("steps") else STAGES
    found = {name: span for name in names if (span := spans.get(name)) is not None}
    return found | ({span.name: span for span in row.served.spans[1:]} if row.served else {})


def _times(row: ResultRow) -> Sequence[float]:
    """When its pieces of text came, since the start of the run, in ms."""
    return row.served.arrivals_ms if row.served else row.token_ms or ()


def _pieces(row: ResultRow) -> tuple[list[int], list[int]]:
    """When text came, in tenths of a millisecond, and how many letters, each since the one before;
    nothing of a failure or a sample of a batch."""
    times, length = _times(row), len(row.text or "")
    ends = (row.served or row).text_ends or ()
    if row.error or row.total_ms is None or not times:
        return [], []
    if len(ends) != len(times):
        times, ends = times[-1:], (length,)
    known = accumulate((*ends[:-1], length), max)  # of a damaged row they may go back
    moments, letters = [round(at * 10) for at in times], [min(end, length) for end in known]
    return [b - a for a, b in pairwise((0, *moments))], [b - a for a, b in pairwise((0, *letters))]
