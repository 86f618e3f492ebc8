"""Published files: result files of others, checked, corrected and compared with their claims."""

import shlex
from collections.abc import Callable
from functools import partial
from typing import Any

import altair as alt
import streamlit as st

from engine import settings
from engine.palette import STAGE_COLOURS
from engine.published.claims import published_report
from engine.published.claims.headlines import Headline, named, waterfall
from engine.published.read import ResultFile, file_summary, imported_sets
from engine.quoting import listed, times
from engine.report import charts
from engine.report.blocks import Block, ChartBlock, Heading, Paragraph
from ui.published import audit_view, draft_view, opened_sets
from ui.published.opened_sets import OpenedSets
from ui.widgets import blocks, choices, links, notices, preparation
from ui.widgets.text import escape

CHOOSE = "Choose a kept set, or import files. That needs no GPU."
NONE_YET = "Import result files of the original benchmark. That needs no GPU."
DECODING = {"fewer tokens": "decode: number of tokens", "time per token": "decode: time per token",
             "prefill": "decode: prefill"}  # fmt: skip
TICKS = (0.5, 1, 2, 3, 5, 10, 30, 100, 300, 1000)
VALUES = {"corrected": "Corrected", "recorded": "As recorded"}
VALUES_HELP = (
    "As recorded: ratios, charts and names as in the files. Corrected: missing tokens are added, "
    "prompts are removed from answers, contexts are counted once, warm-ups are removed from stages "
    "and totals, placeholders are shown as not measured, and models are named by the evidence. "
    "Tables of stages show both."
)
REPORTS = {
    "html": ("Report, one HTML file", "text/html", "Readable offline, printable."),
    "md": ("Report, Markdown", "text/markdown", "The same text and tables."),
}


def claims(opened: OpenedSets) -> None:
    """The three claims of the benchmark's design documents beside the files' evidence."""
    shown = "corrected values" if opened.corrected else "values as recorded"
    notices.small(
        "Claims about EventGPT in the benchmark's design documents, and the ratios in these files: "
        f"the other model's time divided by EventGPT's. Charts, medians and notes: {shown}. A "
        f"ratio within 10 % of a claim supports it. {published_report.PER_TOKEN}",
        "imported_claims",
    )
    for headline in opened.claims:
        st.subheader(escape(headline.claim), anchor=False)
        parts = [*claim_chart(headline, opened.corrected), *published_report.claim_blocks(headline)]
        blocks.draw(parts, f"imported_claim_{headline.name}")


def claim_chart(headline: Headline, corrected: bool) -> list[ChartBlock]:
    """Ratios on a log scale, with lines at the claimed ratio and at 1 (equally fast).  A row per
    file with both times has the interval of the median over clips."""
    rows: list[dict[str, Any]] = []
    for one in headline.evidence:
        ratio, span = one.ratio(corrected), one.paired
        if ratio is not None and ratio > 0 and not one.doubted:
            low, high = (span.low, span.high) if span else (ratio, ratio)
            row = {"name": one.file, "other": one.other, "value": ratio, "low": low, "high": high}
            rows.append(row | {"colour": STAGE_COLOURS["load"]})
    if not rows:
        return []
    low = 0.9 * min(0.5, *(min(row["value"], row["low"]) for row in rows))
    high = 1.3 * max(headline.stated, *(max(row["value"], row["high"]) for row in rows))
    ticks = [tick for tick in TICKS if low <= tick <= high]
    told = (f"{row['name']}: {times(row['value'])} against {row['other']}." for row in rows)
    return [
        ChartBlock(
            " ".join([f"{headline.claim}.", headline.verdict, *told]),
            lambda: charts.intervals(
                rows,
                ["other model's time / EventGPT's", "(log scale; grey line: equally fast)"],
                {"name:N": "File", "other:N": "Against", "value:Q": "Ratio of means"},
                equal=1.0,
                limits={headline.stated: f"claimed: {headline.stated:g}x"},
                scale=alt.Scale(type="log", domain=[low, high], nice=False),
                axis=alt.Axis(values=ticks[:: 1 + len(ticks) // 9]),  # at most 8
            ),
        )
    ]


def figures(opened: OpenedSets) -> None:
    if not opened.usable:
        notices.hint("No file of this set has results, so there are no figures.")
        return
    file, corrected = opened.choose(opened.usable, "published_file"), opened.corrected
    told = published_report.figure_blocks(file, corrected)
    difference = published_report.difference_blocks([file], corrected)
    fall = waterfall(file, corrected)
    chart = []
    if fall and not fall.nonsense:  # from the slow total to the fast one
        steps = [(DECODING.get(name, name), -ms) for name, ms in fall.parts.items()]
        steps = [(fall.slow, fall.slow_ms), *steps, (fall.fast, fall.fast_ms)]
        chart = [ChartBlock(charts.waterfall_words(steps), lambda: charts.waterfall(steps))]
    blocks.draw([*told, *_bars(file, corrected), *difference, *chart], "imported_figures")
    if st.toggle("Every record", key="published_records", bind="query-params"):
        mode = "corrected" if corrected else "as recorded"
        every = file_summary.frame(file, corrected)
        audit_view.grid(every, "imported_every", f"Every record of {file.name}, {mode}")


def _bars(file: ResultFile, corrected: bool) -> list[Block]:
    bars = file_summary.bars(file, corrected)
    if not bars:
        return [Paragraph("The file has no times of a model, so there are no bars.")]
    parts = {named(file, bar.model, corrected, key=True): bar.parts for bar in bars}
    notes: dict[str, list[str]] = {}
    for bar in bars:
        for note in bar.notes:
            notes.setdefault(note, []).append(bar.model)
    lines = [f"{listed(models)}: {note}." for note, models in notes.items()]
    chart = ChartBlock(charts.stage_words(parts, "mean"), lambda: charts.stage_bars(parts, "mean"))
    return [Heading(3, "Stages"), chart, *([Paragraph("\n".join(lines))] if lines else [])]


def report(opened: OpenedSets) -> None:
    notices.small(
        "What was claimed, what the files show, what cannot be known. The report has recorded and "
        "corrected values side by side.",
        "imported_reports",
    )
    write = partial(published_report.document, opened.files)
    blocks.downloads(REPORTS, write, "stagescope-published", "imported_report")
    st.caption("From a terminal:")
    # kept sets by name; the page does not know the paths of a visit's files
    kept = map(shlex.quote, st.session_state.get(opened_sets.SETS, ()))
    names = " ".join([*kept, *["FOLDER"] * bool(opened_sets.dropped())])
    command = f"{settings.COMMAND} report --imported {names} --format html --out report.html"
    st.code(command, language=None)


VIEWS: dict[str, tuple[str, Callable[[OpenedSets], None]]] = {
    "findings": ("Files and findings", audit_view.show),
    "figures": ("Figures", figures),
    "drafts": ("Acceptance", draft_view.show),
    "claims": ("Claims", claims),
    "report": ("Report", report),
}


def main() -> None:
    st.title("Published files", anchor=False)
    kept = imported_sets.listing()
    names = [one.name for one in kept]
    links.say_unknown(opened_sets.SETS, names, "set of published files")
    chosen = st.multiselect(
        "Kept sets",
        names,
        key=opened_sets.SETS,
        bind="query-params",
        max_selections=opened_sets.MOST,
        placeholder="Choose a set of files" if names else "None yet",
        disabled=not names,
    )
    anything = bool(chosen or opened_sets.dropped())
    opened_sets.panel(expanded=not anything)
    if not anything:
        notices.hint(CHOOSE if kept else NONE_YET)
        return
    opened_sets.say_added()
    for one in kept:
        if one.name in chosen:
            opened_sets.head(one)
    opened_sets.visit()
    values = choices.buttons("Values", VALUES, "published_values", help_=VALUES_HELP)
    with notices.telling("imported_open", notices.problem):
        opened = opened_sets.open_(chosen, corrected=values == "corrected")
        notices.small(published_report.summary(opened.files), "imported_summary")
        for claim in opened.claims:
            with st.container(key=f"claim_{claim.outcome.replace(' ', '_')}_{claim.name}"):
                st.text(claim.line)
        titles = {name: title for name, (title, _) in VIEWS.items()}
        name = choices.buttons("View", titles, "published_view", hidden=True)
        VIEWS[name][1](opened)


preparation.through_app(main)
