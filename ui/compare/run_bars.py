"""Stage times of single runs: bars in HTML, while the runs go on and after them, and a table.  HTML
is drawn ten times a second without a chart library, and a finished bar keeps its place.  All text
is escaped."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from engine.analysis import compared as bars
from engine.analysis.compared import ComparedModel, RunRange
from engine.analysis.model_summary import BY_NAME
from engine.jobs.run_job import GENERATE
from engine.palette import DECODE_COLOURS, SERVER_COLOURS, STAGE_COLOURS, UNACCOUNTED, family_colour
from engine.quoting import NONE
from engine.report.answer_part import PART_NAMES, figure, figures
from engine.report.blocks import Table
from engine.types import SERVER, SERVER_PARTS, STAGES, Span
from ui.widgets.text import marked, ms

NAMES = PART_NAMES | {
    bars.PREFILL: "prefill",
    bars.STEPS: "token steps",
    bars.REST: "rest of decode",
    GENERATE: "generate()",
}
COLOURS = {
    **STAGE_COLOURS,
    **DECODE_COLOURS,
    **SERVER_COLOURS,
    GENERATE: STAGE_COLOURS[UNACCOUNTED],
}
ORDER = (*bars.RUN_PARTS, *SERVER_PARTS, SERVER, GENERATE)
STEPS = (1, 2, 2.5, 5, 10)  # times a power of ten: the distance of two ticks
MOST_TICKS = 6
LEAST_SHARE = 0.002  # of the axis: a shorter part is not visible and has no entry in the legend
SOURCE_WORDS = {
    "measured": "measured",
    "cached": "read from the cache",
    "hook": "measured by a hook",
    "derived": "derived: total minus the hook's time",
}
DECODE_ROWS = {f"decode.{name}": BY_NAME[name].label for name in ("prefill", "steps")}
MISSING, NOT_VISIBLE = "not measured", "not visible at a server"
THIS_RUN, ORIGINAL = BY_NAME["total"].label, BY_NAME["uncached_total"].label


@dataclass(frozen=True)
class RunBar:
    """One model's row: its parts in ms, which of them were cached, and the words beside them.
    `uncached`: the parts without cache, in a thin bar.  `ends`: the range of several totals."""

    label: str
    family: str
    parts: tuple[Span, ...]
    total: str
    detail: str = ""
    cached: frozenset[str] = frozenset()
    uncached: tuple[Span, ...] = ()
    ends: tuple[float, float] | None = None

    @property
    def end_ms(self) -> float:
        ends = [part.start_ms + part.ms for part in (*self.parts, *self.uncached)]
        return max((*ends, *(self.ends or ())), default=0.0)


def finished(model: ComparedModel) -> RunBar:
    """The row of a model's runs: the parts of the middle one if there are several."""
    times, uncached = bars.run_times(model), bars.uncached_times(model)
    order = bars.run_parts(model)
    total, label = model.total, model.label
    several = total.runs > 1
    details = ["cancelled"] if model.last.generation.stop == "cancelled" else []
    details += [f"median run of {total.runs:,}"] if several else []
    return RunBar(
        label,
        model.family,
        bars.segments(times, order),
        ms(total.middle),
        ", ".join(details),
        frozenset(span.name for span in bars.cached_spans(model)),
        bars.segments(uncached, order) if uncached else (),
        (total.low, total.high) if several else None,
    )


def growing(label: str, family: str, progress: Sequence[Span], state: str) -> RunBar:
    """The row of a run that goes on, from its spans so far; `state` says where it is."""
    total = ms(progress[-1].start_ms + progress[-1].ms) if progress else ""
    return RunBar(label, family, tuple(progress), total, state)


def html(rows: Sequence[RunBar]) -> str:
    longest = max((row.end_ms for row in rows), default=0.0)
    places = ticks(longest)
    end = places[-1]
    parts = [part for row in rows for part in (*row.parts, *row.uncached)]
    drawn = {part.name for part in parts if part.ms / end > LEAST_SHARE}
    keys = "".join(
        f'<span class="run-key"><i style="background: {COLOURS[part]}"></i>{name(part)}</span>'
        for part in ORDER
        if part in drawn
    )
    if any(row.cached for row in rows):
        keys += '<span class="run-key">striped: cached; thin: without cache</span>'
    marks = "".join(
        f'<span class="run-tick" style="left: {100 * place / end:.3f}%">{place:,.6g}'
        f"{' ms' if place == end else ''}</span>"
        for place in (places if longest else ())
    )
    axis = (
        '<div class="run-row"><div class="run-name" style="border: 0"></div>'
        f'<div class="run-axis">{marks}</div><div class="run-total"></div></div>'
    )
    inside = "".join(_row(row, end) for row in rows) + axis
    return (
        f'<div class="run-bars" role="img" aria-label="{escape(words(rows), quote=True)}">'
        f'<div class="run-keys">{keys}</div>{inside}</div>'
    )


def words(rows: Iterable[RunBar]) -> str:
    sentences = ["Bars of stage times."]
    for row in rows:
        parts = [f"{name(one.name)} {ms(one.ms)}" for one in row.parts if one.ms > 0]
        listed = ", ".join([*parts, f"total {row.total}" if row.total else "", row.detail])
        sentences.append(f"{row.label}: {listed.strip(', ')}.")
    return " ".join(sentences)


def name(part: str) -> str:
    return NAMES.get(part, part)


def ticks(longest: float) -> list[float]:
    """Round places from 0 to the end of the axis, which is at least 1 ms; MOST_TICKS at most."""
    longest = max(longest, 1.0)
    power = 10.0 ** math.floor(math.log10(longest / (MOST_TICKS - 1)))
    step = next(step * power for step in STEPS if longest / (step * power) <= MOST_TICKS - 1)
    return [step * place for place in range(math.ceil(longest / step - 1e-9) + 1)]


def _row(row: RunBar, end: float) -> str:
    bar = "".join(_part(part, end, part.name in row.cached, True) for part in row.parts)
    thin = "".join(_part(part, end, False, False) for part in row.uncached)
    second = f'<div class="run-thin">{thin}</div>' if thin else ""
    if row.ends is not None:
        low, high = row.ends
        place = f"left: {100 * low / end:.3f}%; width: {100 * (high - low) / end:.3f}%"
        title = f"total from {ms(low)} to {ms(high)}"
        bar += f'<div class="run-range" style="{place}" title="{title}"></div>'
    return (
        f'<div class="run-row" style="--model: {family_colour(row.family)}">'
        f'<div class="run-name">{escape(row.label)}</div>'
        f'<div class="run-track"><div class="run-bar">{bar}</div>{second}</div>'
        f'<div class="run-total">{marked("total", row.label, row.total)}'
        f"<small>{escape(row.detail).replace(', ', '<br>')}</small></div></div>"
    )


def _part(part: Span, end: float, cached: bool, labelled: bool) -> str:
    if not part.ms:
        return ""
    colour = COLOURS[part.name]
    fill = f"repeating-linear-gradient(135deg, {colour} 0 4px, {colour}55 4px 8px)"
    style = (
        f"left: {100 * part.start_ms / end:.3f}%; width: calc({100 * part.ms / end:.3f}% - 1px); "
        f"background: {fill if cached else colour}; color: {ink(colour)}"
    )
    words = f"{name(part.name)} {ms(part.ms)}"
    shown = labelled and not cached
    inside = f"<span><em>{name(part.name)} </em>{ms(part.ms)}</span>" * shown
    return f'<div class="run-part" style="{style}" title="{escape(words)}">{inside}</div>'


def ink(colour: str) -> str:
    """Black or white: the one that is easier to read on the colour (#RRGGBB)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if (light + 0.05) ** 2 > 0.05 * 1.05 else "#FFFFFF"


def table(models: Sequence[ComparedModel]) -> Table:
    served = any(model.middle.served for model in models)
    columns = [_column(model, served) for model in models]
    rows = tuple((name, *(cells[name] for cells in columns)) for name in columns[0])
    heads = ("", *(head(model, model.label) for model in models))
    return Table("", heads, rows, len(heads))


def head(model: ComparedModel, words: str) -> Markup:
    mark = Markup('<span class="model-head" style="border-color: {}">{}</span>')
    return mark.format(family_colour(model.family), words)


def _column(model: ComparedModel, served: bool) -> dict[str, str]:
    """The cells by row; `served`: a server answered some model of the table."""
    cells: dict[str, str] = {stage: _cell(model, stage) for stage in STAGES}
    for part in SERVER_PARTS if served else ():
        cells[NAMES[part]] = _cell(model, part)
    for name, shown in DECODE_ROWS.items():
        cells[shown] = _cell(model, name)
    cells[UNACCOUNTED] = _time(model.time("unaccounted"))
    cells[THIS_RUN] = marked("total", model.label, _time(model.total))
    cells[ORIGINAL] = "no cached stage"
    if model.last.cached:
        cells[ORIGINAL] = _time(model.time("uncached_total"))
    told = {one.name: marked(one.name, model.label, one.words) for one in figures(model)}
    return cells | {name: words for name, words in told.items() if name != "Total"}


def _time(spread: RunRange | None) -> str:
    return figure("", spread).words if spread else "unknown"


def _cell(model: ComparedModel, name: str) -> str:
    span, spread = model.middle.span(name), model.time(name)
    if span is None or spread is None:
        of_servers = name in (SERVER, *SERVER_PARTS)
        return NOT_VISIBLE if model.middle.served else NONE if of_servers else MISSING
    words = f"{_time(spread)}, {SOURCE_WORDS[span.source]}"
    if span.source != "cached":
        return words
    return f"{words} (computing time {ms(span.original_ms)})"
