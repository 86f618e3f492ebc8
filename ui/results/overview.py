"""Views of chosen runs: the first one with counts, stage bars, distributions, figures; and those
that show the engine's blocks: accuracy, robustness, references, what ran, reports."""

import shlex
from collections.abc import Sequence
from functools import partial

import streamlit as st

from engine import settings
from engine.analysis import machine_loads, model_summary, pairs
from engine.analysis.model_summary import BY_NAME, METRICS, Figure, Metric
from engine.analysis.results_table import LensName
from engine.quoting import number
from engine.report import accuracy_part, bundle, charts, document
from engine.report import export as documents
from engine.report.blocks import Table
from engine.report.comparison_part import headline
from engine.report.origin_part import flow, origin
from engine.report.report_figures import Findings
from engine.types import STAGES
from ui.compare import run_bars, trust_badges
from ui.results import opened_runs
from ui.results.opened_runs import OpenedRuns
from ui.widgets import blocks, choices, notices
from ui.widgets.text import count, escape

LENS_WORDS: dict[LensName, str] = {
    "natural": "Natural",
    "first": "First min(N) tokens",
    "forced": "Forced",
}
LENS_HELP = (
    "Natural: each answer ends when its model ends it, or at the limit. First min(N): all answers "
    "to a sample are cut, in time, to the length of the shortest one. Forced: runs whose answers "
    "have equal lengths. A faster model often just gives shorter answers."
)
NOTHING = {
    "natural": "All answers have a forced length: choose Forced.",
    "first": "No sample was answered by all models: there is nothing to cut.",
    "forced": (
        "No answer has a forced length: start a run with the length Forced on the Benchmark page, "
        "or with --length forced:64."
    ),
}
WARM_ONLY = (
    "All answers so far are cold or warm-up runs or follow a pause. They are left out of the "
    "figures and shown below. Resume the run, start a longer one, or repeat the comparison on "
    "Compare and save it again."
)
BATCHES_ONLY = (
    "All answers were given in batches: no sample was timed alone, so there are no figures "
    "besides the throughput above. Start a run with 1 sample at once for those."
)
NOT_EQUAL = (
    "The chosen runs have different length rules: choose First min(N) tokens to compare answers of "
    "equal length."
)
LEGEND = "Dots have 95 % intervals where there are at least 6 sequences. Upright marks: chance."
KINDS = {  # format, which also ends the file's name: title, MIME type, content
    "html": ("Report, one HTML file", "text/html", "With charts, readable offline, printable."),
    "zip": (
        "Bundle, ZIP",
        "application/zip",
        "Answers, pictures and clips: unpacked, its index.html opens anywhere.",
    ),
    "md": ("Report, Markdown", "text/markdown", "The same words and tables as text."),
    "csv": ("Results, CSV", "text/csv", "One line per result."),
    "parquet": ("Results, Parquet", "application/vnd.apache.parquet", "The same lines, typed."),
    "json": ("Findings, JSON", "application/json", "Counts, figures, comparisons, splits."),
}
LENS, DEFAULT_LENS = "results_lens", "results_lens_default"
SPREAD_OF = tuple(m.name for m in METRICS if m.name not in ("itl", "uncached_total"))


def lens_of(found: OpenedRuns) -> tuple[LensName, bool]:
    """The switch for answer lengths, with what has to be known of the choice; returns whether it
    has results.  Its default follows the chosen runs; a visitor's choice and a link's stay."""
    default, reason = opened_runs.default_lens(found)
    before = st.session_state.get(DEFAULT_LENS)
    if before not in (None, default) and st.session_state.get(LENS) == before:
        st.session_state[LENS] = default
    st.session_state[DEFAULT_LENS] = default
    chosen = choices.buttons("Lengths of answers", LENS_WORDS, LENS, default, help_=LENS_HELP)
    if reason:
        notices.notice(reason if chosen == "first" else NOT_EQUAL, "results_lens_default")
    seen = opened_runs.look(found, chosen)
    if not seen.table.empty:
        if chosen != "natural":  # which the help explains
            notices.small(seen.note, "results_lens_note")
        return chosen, True
    whole = opened_runs.findings(found)
    if any(figure.group == "measured" for figure in whole.figures):
        notices.notice(NOTHING[chosen], "results_lens")
    else:
        notices.notice(BATCHES_ONLY if whole.throughputs else WARM_ONLY, "results_lens")
    return chosen, False


def metric_of(names: Sequence[str], key: str) -> Metric:
    titles = {name: BY_NAME[name].title for name in names}
    return BY_NAME[choices.listed("Metric", titles, key, default="total", hidden=True, width=320)]


def show(found: OpenedRuns) -> None:
    whole = opened_runs.findings(found)
    _first_line(found, whole)
    with st.container(horizontal=True, gap="small", key="results_standing"):
        for label, standings in whole.verified.items():
            for standing in standings:
                words, colour, help_text = trust_badges.certificate_badge(standing)
                st.badge(f"{escape(label)}: {words}", color=colour, help=help_text)
        for label, load in whole.loads.items():
            if load is not None and load.busy:
                words = f"{escape(label)}: busy machine"
                st.badge(words, color="orange", help=trust_badges.busy(load))
    blocks.draw(list(document.results(whole))[1:], "results_counts")
    blocks.draw(document.together(whole), "results_together")
    if not any(count.answered for count in whole.counts):
        notices.notice("There are no answers, so there are no figures.", "results_nothing")
        return
    name, some = lens_of(found)
    if some:
        figures = opened_runs.figures(found, name)
        st.subheader("Stages", anchor=False)
        shown = model_summary.stage_medians(figures, found.labels)
        st.altair_chart(charts.stage_bars(shown), alt=charts.stage_words(shown))
        notices.each(model_summary.alone(found.table).values(), "results_alone", notices.small)
        missing = [
            f"{label}: {', '.join(absent)}"
            for label, parts in shown.items()
            if (absent := [stage for stage in STAGES if stage not in parts])
        ]
        if missing:
            st.caption("Not measured in these results, so not drawn: " + escape("; ".join(missing)))
        _distribution(found, name)
        st.subheader("Figures", anchor=False)
        labels = [label for label in found.labels if any(one.label == label for one in figures)]
        blocks.draw([side_by_side(labels, figures)], "results_medians")
        with st.expander("Spread, percentiles, extremes", key="results_figures"):
            tables = [document.figure_table(label, figures) for label in labels]
            blocks.draw(tables, "results_figures")
    blocks.draw(document.apart(whole), "results_apart")
    with st.expander("What the figures mean", key="results_meanings"):
        blocks.draw(list(document.meanings(whole))[1:], "results_meanings")


def _first_line(found: OpenedRuns, whole: Findings) -> None:
    """Who was faster and by how much, then the parts of the difference, where they are known."""
    if len(found.labels) < 2:
        return
    name = opened_runs.default_lens(found)[0]
    a, b = opened_runs.sides(found)
    lines = document.saved_verdict(found.runs)
    if not lines and len(found.labels) == 2:
        lines = [headline(opened_runs.comparison(found, name, a, b, "total"))]
    if name == "first":  # by default, for runs with different length rules
        whole = opened_runs.findings(found, name)
        notices.small(opened_runs.look(found, name).note, "results_verdict_lens")
    verdict(lines or document.verdict(whole, found.labels).split(". ", 1))
    if len(found.sources) == 2:
        notices.small("Is the newer run worse? Comparison answers first.", "results_gate")
    say_apart(found, a, b)
    if split := pairs.split(opened_runs.look(found, name).table, a, b):
        steps = charts.split_steps(split)
        shared = count(split.n, "sample")
        st.caption(f"From one mean total to the other, over {shared} that both answered:")
        st.altair_chart(charts.waterfall(steps), alt=charts.waterfall_words(steps))


def verdict(lines: Sequence[str]) -> None:
    for head in lines[:1]:
        st.subheader(escape(head), anchor=False)
    if rest := "\n".join(lines[1:]):
        notices.small(rest, "results_verdict")


def say_apart(found: OpenedRuns, a: str, b: str) -> None:
    """Notices of what makes the times of two labels differ beside the models: device and load."""
    keys = "results_devices", "results_loads"
    for key, note in zip(keys, machine_loads.couple(found.table, a, b), strict=True):
        if note:
            notices.notice(note, key)


def _distribution(found: OpenedRuns, name: LensName) -> None:
    st.subheader("Distributions", anchor=False)
    kind = metric_of(SPREAD_OF, "results_metric")
    fair = model_summary.fair(opened_runs.look(found, name).table, kind)  # measured, not cached
    shown = fair[["label", "sample", kind.column]].rename(columns={kind.column: "value"})
    lines = shown.dropna(subset=["value"])
    if lines.empty:
        st.caption("No result has a measured value of this metric.")
        return
    chart = charts.distribution(lines, found.families, kind.title)
    st.altair_chart(chart, alt=charts.distribution_words(lines, kind.title))
    thin = lines.groupby("label").size().max() > charts.DOTS
    st.caption(
        "Dots: results. Box: first to third quartile. Line: median."
        + (f" At most {charts.DOTS:,} dots per model are drawn." if thin else "")
    )


def side_by_side(labels: list[str], figures: tuple[Figure, ...]) -> Table:
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for one in figures:
        spread = f"MAD {number(one.mad)}, " if one.n >= document.FEWEST else ""
        words = f"{number(one.median)} ({spread}n {one.n:,})"
        cells.setdefault((one.metric, one.source), {})[one.label] = words
    order = [metric.name for metric in METRICS]
    rows = tuple(
        (
            BY_NAME[metric].title,
            run_bars.SOURCE_WORDS.get(source, source),
            *(cells[metric, source].get(label, "–") for label in labels),
        )
        for metric, source in sorted(cells, key=lambda key: (order.index(key[0]), key[1]))
    )
    caption = "Medians of all results of a model; times from different sources are never mixed."
    return Table(caption, ("metric", "source", *labels), rows, 2)


def has_choices(opened: OpenedRuns) -> bool:
    return bool((opened.table["choices"] > 0).any())


def accuracy(opened: OpenedRuns) -> None:
    found = opened_runs.findings(opened)
    blocks.draw(list(accuracy_part.conclusions(found)), "results_accuracy")
    if any(one.accuracy for one in found.choices):
        words = charts.choice_words(found.choices)
        st.altair_chart(charts.choices(found.choices, opened.families), alt=words)
        st.caption(LEGEND)
    else:
        notices.hint(
            "No answer can be judged yet: all results failed, or the right options are not known. "
            "The counts are below."
        )
    blocks.draw([accuracy_part.choice_table(found.choices)], "results_accuracy_table")
    with st.expander("How answers are read and counted", key="results_accuracy_meaning"):
        notices.small(accuracy_part.MEANING, "results_accuracy_meaning")


def robustness(opened: OpenedRuns) -> None:
    found = opened_runs.findings(opened).robustness
    if found is None:  # no run is perturbed
        return
    if found.problem:
        notices.notice(found.problem, "results_robustness_problem")
        return
    for measure in found.measures:
        key = f"results_robustness_{measure}"
        st.subheader(f"{accuracy_part.NAMES[measure]} by strength of the change", anchor=False)
        words = accuracy_part.sweep_words(found, measure)
        st.altair_chart(accuracy_part.sweep_chart(found, measure), alt=words)
        with st.expander("Table", key=key):
            blocks.draw([accuracy_part.sweep_table(found, measure)], key)
    lines = [f"• {definition}" for definition in accuracy_part.definitions(found)]
    notices.small("\n".join(lines), "results_robustness")


def references(opened: OpenedRuns) -> None:
    found = opened_runs.findings(opened)
    blocks.draw(document.agreement(found), "results_agreement")
    if not (found.attributes or found.overlaps or has_choices(opened) or found.robustness):
        notices.hint(
            "These runs have no reference answers and no scene attributes to compare with. A "
            "reference answer is the gpt value of a record's conversations."
        )


def export(opened: OpenedRuns) -> None:
    """A button per format; then plans, journals, models, machine, and the tensors."""
    notices.small(
        "Every sentence in a report is computed from the chosen runs. With thousands of results "
        "this takes a few seconds.",
        "results_reports",
    )
    name = "-".join(run.id for run in opened.runs)
    blocks.downloads(KINDS, partial(_written, opened), f"stagescope-{name}", "results_report")
    if not any(source.private for source in opened.sources):
        st.caption("From a terminal:")
        runs = shlex.join(run.folder.name for run in opened.runs)
        st.code(f"{settings.COMMAND} report {runs} --format html --out report.html", language=None)
    found = opened_runs.findings(opened)
    blocks.draw(origin(found), "results_origin")
    blocks.draw(flow(found), "results_flow")


def _written(opened: OpenedRuns, form: str) -> bytes:
    return bundle.zipped(opened.runs) if form == "zip" else documents.data(opened.runs, form)
