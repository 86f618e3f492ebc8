"""One model's answers as drafts for another model, in one file or in own runs."""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from engine.analysis.acceptance import GAMMA, Acceptance, Range
from engine.published.claims.evidence import both_denominators
from engine.published.claims.published_report import acceptance_cells
from engine.published.read import ResultFile, answer_pairs, own_rows
from engine.quoting import number, percent, times
from engine.report.blocks import ReportTable
from ui.charts import published_charts
from ui.published import file_figures
from ui.published.opened_sets import Audited, OpenedSets, kept
from ui.results.opened_runs import OpenedRuns
from ui.widgets import blocks, marked_text, notices
from ui.widgets.text import when

NONE = "No file here has token ids of two models, so acceptance cannot be computed."
TWO = "Acceptance needs the answers of two models. Choose a run with two models, or start one."
LONGEST = 16  # greatest draft length
MEANING = (
    "Position match: the share of ids that are equal at the same position. Shuffled: the same "
    "share over drafts and targets of different clips; a match within or below its range says "
    "nothing about the image. Prefix: equal ids from the start. W: the share of the first g ids "
    "that would be accepted. A cycle gives 1 + g W tokens and costs c g + 1 target tokens, where c "
    "is the draft's time per token divided by the target's, each over all N tokens. The ceiling is "
    "the speed-up if every id were accepted. Below 1x, drafting is slower than the target alone."
)
SHIFTED = ", against the target from its second id"
_KINDS = {
    "main": "as it is",
    "raw": "ids including the prompt",
    "without_sliced": "without answers whose first ids are missing",
}


def show(found: OpenedSets, what: str = "File") -> None:
    usable = tuple(item for item in found.usable if answer_pairs.drafts(item.file))
    if not usable:
        notices.hint(NONE)
        return
    item = file_figures.choose(found, usable, "results_drafts_of", what)
    file = item.file
    left, right = st.columns(2)
    gamma: int = right.slider(
        "Draft length g (tokens)", 1, LONGEST, GAMMA, key="results_gamma", bind="query-params"
    )
    kinds = variants(file, found.corrected, gamma)
    kind = left.selectbox(
        "Comparison",
        list(kinds),
        format_func=option,
        key="results_variant",
        bind="query-params",
    )
    one = kinds[kind if kind in kinds else next(iter(kinds))]
    _metrics(one)
    _charts(file, kind or "", found.corrected, one)
    blocks.draw([table(file, kinds)], "imported_acceptance")
    _stated(file, found.corrected)
    note = both_denominators(file, item.findings) if found.corrected else ""
    if note:
        notices.small(note, "imported_denominators")
    notices.small(MEANING, "imported_acceptance_meaning")
    _painting(file, one, found.corrected)


def variants(file: ResultFile, corrected: bool, gamma: int) -> dict[str, Acceptance]:
    """All comparisons by name; recorded values have one per draft."""
    return (
        answer_pairs.variants(file, gamma) if corrected else answer_pairs.as_recorded(file, gamma)
    )


def option(kind: str) -> str:
    """The option for a comparison; it does not depend on the file."""
    if kind in _KINDS:
        return f"draft for target, {_KINDS[kind]}"
    name = kind.removesuffix("_shifted")
    return f"{name} for target" + (SHIFTED if name != kind else "")


def comparison_name(file: ResultFile, kind: str) -> str:
    """A comparison in words."""
    if kind in _KINDS or kind == file.draft:
        how = f", {_KINDS[kind]}" if kind in _KINDS else ""
        return f"{file.draft} for {file.target}{how}"
    name = kind.removesuffix("_shifted")
    return f"{name} for {file.target}" + (SHIFTED if name != kind else "")


def _metrics(found: Acceptance) -> None:
    metrics = {
        "Position match": percent(found.rate.value if found.rate else None),
        "Shuffled pairs": percent(found.shuffled.value if found.shuffled else None),
        "Mean prefix": f"{found.mean_prefix:.2f} ids",
        f"W at g = {found.gamma}": f"{found.first_window:.3f}",
        "Tokens per cycle": f"{found.expected_tokens:.2f}",
        "Cost ratio c": number(found.cost_ratio) if found.cost_ratio else "unknown",
        "Ceiling": times(found.ceiling),
        "Predicted": times(found.speedup.value if found.speedup else None),
    }
    with st.container(horizontal=True, gap="medium", key="imported_metrics"):
        for name, value in metrics.items():
            st.metric(name, value, width="content")
    notices.small(verdict(found), "imported_verdict")


def verdict(found: Acceptance) -> str:
    """Conclusions from the shuffled baseline and the predicted speed-up."""
    sentences = []
    if found.says_something is False:
        sentences.append(
            "Pairs of different samples match equally often, so the match says nothing about the "
            "images."
        )
    elif found.says_something:
        sentences.append("True pairs match more often than shuffled ones.")
    sentences.append(_outlook(found.speedup))
    if found.clips < found.pairs:
        sentences.append(f"These are {found.amount}; intervals are over clips.")
    return " ".join(sentences)


def _outlook(speedup: Range | None) -> str:
    if speedup is None:
        return "A speed-up cannot be predicted without times of both models."
    if speedup.interval is None:
        return "Too few clips for an interval (six are needed): the speed-up is uncertain."
    low, high = (round(end, 2) for end in speedup.interval)  # as the table prints them
    if high < 1:
        return "Drafting would make the target slower."
    if low > 1:
        return "Drafting would make the target faster."
    return "The interval includes 1x: it is undecided whether drafting helps."


def _charts(file: ResultFile, kind: str, corrected: bool, found: Acceptance) -> None:
    left, right = st.columns(2)
    if published_charts.matches(found):
        with left:
            st.altair_chart(
                published_charts.matching(found),
                alt=published_charts.matching_words(found),
                width="stretch",
            )
    if found.speedup is None:
        return
    every = [variants(file, corrected, gamma) for gamma in range(1, LONGEST + 1)]
    over = [one[kind] for one in every if kind in one]
    with right:
        st.altair_chart(
            published_charts.speedups(over, found.gamma),
            alt=published_charts.speedups_words(over),
            width="stretch",
        )


def table(file: ResultFile, kinds: dict[str, Acceptance]) -> ReportTable:
    """All comparisons of the file."""
    gamma = next(iter(kinds.values())).gamma
    columns = ("comparison", "pairs", "position match (95 %)", "shuffled (95 %)", "mean prefix",
               f"W at g = {gamma}", "cost ratio c", "ceiling",
               "predicted speed-up (95 %)", "tokens per cycle")  # fmt: skip
    rows = tuple(
        (comparison_name(file, kind), one.amount, *acceptance_cells(one),
         f"{one.expected_tokens:.2f}")
        for kind, one in kinds.items()
    )  # fmt: skip
    return ReportTable("Acceptance by token ids", columns, rows)


def _stated(file: ResultFile, corrected: bool) -> None:
    """The acceptance that the file states beside the computed one."""
    rows = tuple(
        (one.path, percent(one.stated), "no ids" if one.ours is None else percent(one.ours))
        for one in answer_pairs.stated(file, corrected)
    )
    if rows:
        caption = "Stated acceptance beside the position match of the ids"
        blocks.draw(
            [ReportTable(caption, ("place in the file", "stated", "position match"), rows)],
            "stated",
        )


def _painting(file: ResultFile, found: Acceptance, corrected: bool) -> None:
    """One sample's draft with its accepted and rejected tokens."""
    st.subheader("Accepted and rejected tokens", anchor=False)
    texts = [r for r in file.of(found.draft, corrected) if r.ids and r.text]
    if not texts:
        st.caption("The file has no text of the draft, so its tokens cannot be shown.")
        return
    place = st.selectbox(
        "Sample",
        range(len(texts)),
        format_func=lambda at: " · ".join(filter(None, (texts[at].sample, texts[at].question))),
        key=f"results_painted_{found.draft}",
        width=420,
    )
    draft = texts[place or 0]
    picture = answer_pairs.painting(file, draft, found.target, corrected)
    if picture is None:
        st.caption("The target has no ids for this sample.")
        return
    st.html(marked_text.compared_html(picture))
    caption = f"Tokens {marked_text.compared_words(picture)}."
    if picture.doubt:
        caption += (
            " The file has no tokenizer. The text of each id is inferred from its answers, and "
            f"here {picture.doubt}."
        )
    notices.small(caption, "imported_painted")
    others = [
        r
        for r in file.of(found.target, corrected)
        if (r.sample, r.question) == (draft.sample, draft.question)
    ]
    if others and others[0].text:
        notices.small(f"{found.target} answered: {others[0].text}", "imported_target")


def show_own(runs: OpenedRuns) -> None:
    """Any two models of one run."""
    every = runs.table.groupby("number")["model"].unique()
    models = list(dict.fromkeys(model for names in every if len(names) > 1 for model in names))
    if not models:
        notices.hint(TWO)
        return
    left, right = st.columns(2)
    draft = left.selectbox("Draft", models, 0, key="results_draft", bind="query-params")
    target = right.selectbox("Target", models, 1, key="results_target", bind="query-params")
    if draft == target:
        notices.notice("Draft and target are the same model: choose another one.", "imported_same")
        return
    key = ("own pair", runs.key, draft, target)  # acceptance is remembered by the file
    items = kept(key, lambda: tuple(_paired(runs, str(draft), str(target))))
    show(OpenedSets((), (), items), "Run")


def _paired(runs: OpenedRuns, draft: str, target: str) -> Iterator[Audited]:
    """The runs that have both models; only the first answer to each sample, no warm-up run."""
    for run in runs.runs:
        rows = [row for _, row in run.results() if row.phase == "measured" and not row.repeat]
        name = f"{when(run.header.created)} · {run.id}"
        file = own_rows.from_rows(rows, name, draft, target)
        if {draft, target} <= set(file.models):
            yield Audited(file, ())
