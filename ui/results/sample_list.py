"""The samples of the chosen runs as a list: filters, order, pages."""

from typing import Any

import pandas as pd
import streamlit as st

from engine.errors import StoreError
from engine.storage import annotations as feedback
from engine.storage.annotations import Feedback
from engine.storage.plan import Task
from ui.results import comparison_view, opened_runs
from ui.results.opened_runs import OpenedRuns, Source
from ui.widgets import choices
from ui.widgets.text import count

SAMPLE, PAGE = "results_sample", "results_page"  # in the URL
LISTED = "results_listed"  # in the session: the sample that was open before
ROW_PX = 35
ROWS, FEW = 25, 5  # on a page, without and with an open sample
OUTCOMES = {
    "all": "All",
    "answered": "Answered by all",
    "failed": "Failed",
    "length": "Cut at the limit",
    "differ": "Answers differ",
    "up": "Thumb up",
    "down": "Thumb down",
    "note": "With a note",
}
ORDERS = {
    "run": "As they ran",
    "disagreement": "Least agreement first",
    "ratio": "Greatest time ratio first",
    "time": "Longest first",
}
HELP = (
    "Least agreement: by the mean word F1 over all pairs of answers. Time ratio: total time of "
    "Model A / Model B."
)


def filtered(opened: OpenedRuns) -> pd.DataFrame:
    """Draw the filters in a row; a line per matching sample, in order, as of wide()."""
    columns = st.columns([2.2, 1.4, 1.3, 1.7])
    hint = "Words of an answer, a sample, a sequence"
    text = columns[0].text_input(
        "Find", key="results_text", bind="query-params", placeholder=hint, live="100ms"
    )
    key, hint = "results_label", "Any model"
    label = columns[1].selectbox(
        "Model", opened.labels, None, key=key, bind="query-params", placeholder=hint
    )
    outcome = choices.listed("Which", OUTCOMES, "results_outcome", columns[2])
    orders = ORDERS if len(opened.labels) > 1 else {name: ORDERS[name] for name in ("run", "time")}
    order = choices.listed("Order", orders, "results_order", columns[3], help=HELP)
    lines = first_results(opened)
    if label is not None:
        lines = lines[lines["label"] == label]
    lines = _with_outcome(opened, lines, outcome)
    for word in (text or "").lower().split():
        lines = lines[lines["hay"].str.contains(word, regex=False)]
    found = _ordered(opened, order)
    return found[found.index.isin(lines["sample"])]


def _with_outcome(opened: OpenedRuns, lines: pd.DataFrame, outcome: str) -> pd.DataFrame:
    answered = lines[lines["error"] == ""]
    if outcome == "failed":
        return lines[lines["error"] != ""]
    if outcome == "length":
        return lines[(lines["stop"] == "length") & ~lines["forced"].astype(bool)]
    if outcome == "answered":
        keys = ["model", "number"]  # a model with several labels has each sample under one of them
        models = answered[["sample", *keys]].drop_duplicates().groupby("sample").size()
        return answered[answered["sample"].map(models) == len(lines[keys].drop_duplicates())]
    if outcome == "differ":
        texts = answered.groupby("sample")["text"].nunique()
        return answered[answered["sample"].map(texts) > 1]
    if outcome in ("up", "down", "note"):
        marked = [
            task.sample
            for source in opened.sources
            for task, mark in marks(source).items()
            if outcome == mark.thumb or (outcome == "note" and mark.note)
        ]
        return lines[lines["sample"].isin(marked)]
    return lines


def marks(source: Source) -> dict[Task, Feedback]:
    """Notes and thumbs; none if they cannot be read, which the run's problems report."""
    try:
        return feedback.read(source.info.folder)
    except StoreError:
        return {}


def _ordered(opened: OpenedRuns, order: str) -> pd.DataFrame:
    """The lines ordered by score, without samples that have none; otherwise as they ran."""
    lines = wide(opened)
    if order == "time":
        totals = lines[[name for name in lines.columns if name.endswith(": total (ms)")]]
        return lines.loc[totals.max(axis=1).sort_values(ascending=False, kind="stable").index]
    if order == "disagreement":
        name, rank = "word F1", opened_runs.disagreement(opened).set_index("sample")["overlap"]
    elif order == "ratio" and len(set(pair := comparison_view.pair(opened))) == 2:
        name = " / ".join(pair)
        rank = opened_runs.ratios(opened, *pair).set_index("sample")["ratio"]
    else:
        return lines
    rows = lines.loc[[sample for sample in rank.index if sample in lines.index]].copy()
    rows.insert(1, name, rank)
    return rows


@opened_runs.cached(most=opened_runs.TABLES)
def first_results(opened: OpenedRuns) -> pd.DataFrame:
    """The first measured result of each label and sample, with a text to search ("hay")."""
    table = opened.table
    lines = table[table["phase"] == "measured"].drop_duplicates(["label", "sample"])
    parts = lines[["sample", "sequence", "error", "text"]].fillna("").astype(str)
    hay = parts["sample"].str.cat(parts.drop(columns="sample"), sep="\n")
    return lines.assign(hay=hay.str.lower())


@opened_runs.cached(most=opened_runs.TABLES)
def wide(opened: OpenedRuns) -> pd.DataFrame:
    """Index sample, in run order; sequence, then answer and total of each label."""
    lines = first_results(opened)
    base = lines.drop_duplicates("sample").set_index("sample")[["sequence"]]
    columns: dict[str, Any] = {"sequence": base["sequence"].fillna("")}
    for label in opened.labels:
        rows = lines[lines["label"] == label].set_index("sample")
        answer = rows["text"].where(rows["error"] == "", "✕ " + rows["error"])
        columns[f"{label}: answer"] = answer.reindex(base.index)
        columns[f"{label}: total (ms)"] = rows["total_ms"].reindex(base.index)
    return base[[]].assign(**columns)


def choose(opened: OpenedRuns) -> str | None:
    """Draw the filters and a page of the list; returns the open sample, if any."""
    lines = filtered(opened)
    chosen = st.query_params.get(SAMPLE)
    if chosen not in wide(opened).index:  # a link of other runs
        chosen = None
    if lines.empty:
        st.caption("No sample matches these filters.")
        return chosen
    names = [str(name) for name in lines.index]
    rows = ROWS if chosen is None else FEW
    pages = -(-len(names) // rows)
    # To the page of a sample that was just opened or closed, or to the last one.
    before, st.session_state[LISTED] = st.session_state.get(LISTED), chosen
    turned = chosen or before
    kept = PAGE in st.session_state or PAGE in st.query_params  # not after another view
    if chosen != before or not kept:
        st.session_state[PAGE] = names.index(turned) // rows + 1 if turned in names else 1
    if st.session_state.get(PAGE, 1) > pages:
        st.session_state[PAGE] = pages
    table = st.container()
    with st.container(horizontal=True, vertical_alignment="center", key="results_pager"):
        st.caption(count(len(names), "sample"), width="content")
        page = st.pagination(pages, width=300, key=PAGE, bind="query-params") if pages > 1 else 1
        if chosen is not None:
            at = names.index(chosen) if chosen in names else None
            choices.neighbours(names, at, SAMPLE, st.query_params)
            st.button("Close the sample", on_click=_open, args=(None,))
    with table:
        _table(opened, lines.iloc[(page - 1) * rows : page * rows], chosen)
    return chosen


def _table(opened: OpenedRuns, shown: pd.DataFrame, chosen: str | None) -> None:
    ids = [str(name) for name in shown.index]
    # A different page, order or open sample needs a new table.
    key = f"results_rows_{hash((tuple(ids), chosen))}"

    def open_row() -> None:
        """A click in a cell or in the column of ticks opens the row; a second one closes it."""
        picked = st.session_state[key]["selection"]
        rows = [row for row, _ in picked["cells"]] or picked["rows"]
        _open(ids[rows[0]] if rows else None)

    # An answer has its label as its head; the total beside it is just "ms".
    text, figure = st.column_config.TextColumn, st.column_config.NumberColumn
    # Wide enough for a model and a minute; four answers fit into a window of 1400 px.
    columns: dict[str, Any] = {"sample": text(width=60), "sequence": text(width=75)}
    for name in shown.columns:
        if name != "sequence":
            columns[name] = figure(format="%.3f", width="small")  # what orders the rows
    for label in opened.labels:
        columns[f"{label}: answer"] = text(label, width=226, help=label)
        total = figure("ms", format="%.1f", width=62, help=f"Total time of {label}, first repeat.")
        columns[f"{label}: total (ms)"] = total
    st.dataframe(
        shown.reset_index(),
        key=key,
        on_select=open_row,
        selection_mode=["single-row", "single-cell"],  # a click anywhere in a row opens it
        selection_default={"selection": {"rows": [ids.index(chosen)] if chosen in ids else []}},
        hide_index=True,
        height=(len(ids) + 1) * ROW_PX + 3,
        column_config=columns,
        placeholder="",
        alt=f"{count(len(ids), 'sample')} with each model's answer and total time in ms.",
    )


def _open(sample: str | None) -> None:
    """For callbacks: open this sample, or close the open one."""
    if sample is None:
        st.query_params.pop(SAMPLE, None)
    else:
        st.query_params[SAMPLE] = sample
