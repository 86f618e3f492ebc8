"""One file: would one model's answers do as drafts for the other's?

Boundary: engine.analysis.acceptance's figures and paintings on the page; the draft length is the
visitor's.
"""

from __future__ import annotations

import streamlit as st

from engine.analysis.acceptance import GAMMA, Acceptance, Range
from engine.analysis.acceptance_marks import Painting
from engine.analysis.number_text import number, percent, times
from engine.published.claims.denominators import both_denominators
from engine.published.claims.published_report import range_percent, range_times
from engine.published.read import AnswerRecord, ResultFile, answer_pairs
from engine.report.document_parts import ReportTable
from ui.published import file_figures, published_charts
from ui.published.opened_sets import OpenedSets
from ui.results import report_parts
from ui.widgets import accepted_text, notices

NONE = (
    "No file here keeps the token ids of two models: whether one's answers would do as drafts for "
    "the other's cannot be known."
)
LONGEST = 16  # draft length offered
MEANING = (
    "Position match: ids that agree in their places, of all that can be compared. Shuffled: the "
    "same over drafts and targets of different clips; what is not above it says nothing about "
    "the image. Prefix: ids that agree from the start. W: the share of the first g ids that would "
    "be accepted. A cycle yields 1 + g W tokens and costs c g + 1, with c the draft's time per "
    "token over the target's, each over all N tokens; the ceiling is the speed-up if every id were "
    "accepted. Under 1x is slower than the target alone."
)
SHIFTED = ", against the target from its second id"
_KINDS = {
    "main": "as it is",
    "raw": "with the prompt left in the ids",
    "without_sliced": "without answers that lack their beginning",
}


def show(found: OpenedSets, what: str = "File") -> None:
    usable = tuple(item for item in found.usable if answer_pairs.drafts(item.file))
    if not usable:
        notices.hint(NONE)
        return
    item = file_figures.choose(found, usable, "results_drafts_of", what)
    file = item.file
    left, right = st.columns(2)
    with right:
        gamma = _gamma()
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
    report_parts.draw([table(file, kinds)], "imported_acceptance")
    _stated(file, found.corrected)
    told = both_denominators(file, item.findings) if found.corrected else ""
    if told:
        notices.small(told, "imported_denominators")
    notices.small(MEANING, "imported_acceptance_meaning")
    _painting(file, one, found.corrected)


def _gamma() -> int:
    chosen: int = st.slider(
        "Draft length g (tokens)",
        1,
        LONGEST,
        GAMMA,
        key="results_gamma",
        bind="query-params",
    )
    return chosen


def variants(file: ResultFile, corrected: bool, gamma: int) -> dict[str, Acceptance]:
    """Every comparison by name; as recorded there is one per draft."""
    return (
        answer_pairs.variants(file, gamma) if corrected else answer_pairs.as_recorded(file, gamma)
    )


def option(kind: str) -> str:
    """A comparison in the list, the same for every file: the list keeps its words when another file
    is chosen."""
    if kind in _KINDS:
        return f"draft for target, {_KINDS[kind]}"
    name = kind.removesuffix("_shifted")
    return f"{name} for target" + (SHIFTED if name != kind else "")


def spoken(file: ResultFile, kind: str) -> str:
    """What a comparison is, in words."""
    if kind in _KINDS or kind == file.draft:
        how = f", {_KINDS[kind]}" if kind in _KINDS else ""
        return f"{file.draft} for {file.target}{how}"
    name = kind.removesuffix("_shifted")
    return f"{name} for {file.target}" + (SHIFTED if name != kind else "")


def _metrics(found: Acceptance) -> None:
    told = {
        "Position match": percent(found.rate.value if found.rate else None),
        "Shuffled pairs": percent(found.shuffled.value if found.shuffled else None),
        "Mean prefix": f"{found.mean_prefix:.2f} ids",
        f"W at g = {found.gamma}": f"{found.first_window:.3f}",
        "Tokens per cycle": f"{found.expected_tokens:.2f}",
        "Cost ratio c": number(found.cost_ratio) if found.cost_ratio else "not known",
        "Ceiling": times(found.ceiling),
        "Predicted": times(found.speedup.value if found.speedup else None),
    }
    with st.container(horizontal=True, gap="medium", key="imported_metrics"):
        for name, value in told.items():
            st.metric(name, value, width="content")
    notices.small(verdict(found), "imported_verdict")


def verdict(found: Acceptance) -> str:
    """What the baseline and the prediction leave to say."""
    told = []
    if found.says_something is False:
        told.append(
            "Pairs of different samples match as often: the match says nothing about the images."
        )
    elif found.says_something:
        told.append("True pairs match more often than shuffled ones.")
    told.append(_outlook(found.speedup))
    if found.clips < found.pairs:
        told.append(f"These are {found.amount}: intervals are over clips.")
    return " ".join(told)


def _outlook(speedup: Range | None) -> str:
    if speedup is None:
        return "Without times of both models no speed-up can be predicted."
    if speedup.interval is None:
        return (
            "Too few clips for an interval (six are needed): whether drafting helps is not known."
        )
    low, high = (round(end, 2) for end in speedup.interval)  # as the table prints them
    if high < 1:
        return "Drafting would make the target slower."
    if low > 1:
        return "Drafting would make the target faster."
    return "The interval holds 1x: whether drafting helps is undecided."


def _charts(file: ResultFile, kind: str, corrected: bool, found: Acceptance) -> None:
    left, right = st.columns(2)
    if len(published_charts.matches(found)):
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
               f"W at g = {gamma}", "tokens per cycle", "cost ratio c", "ceiling",
               "predicted speed-up (95 %)")  # fmt: skip
    rows = tuple((spoken(file, kind), *_row(one)) for kind, one in kinds.items())
    return ReportTable("Acceptance by token ids", columns, rows)


def _row(found: Acceptance) -> tuple[str, ...]:
    return (
        found.amount,
        range_percent(found.rate),
        range_percent(found.shuffled),
        f"{found.mean_prefix:.2f}",
        f"{found.first_window:.3f}",
        f"{found.expected_tokens:.2f}",
        number(found.cost_ratio),
        times(found.ceiling),
        range_times(found.speedup),
    )


def _stated(file: ResultFile, corrected: bool) -> None:
    """The file's own figures beside ours; nothing where it states none."""
    rows = tuple(
        (one.path, percent(one.stated), "no ids" if one.ours is None else percent(one.ours))
        for one in answer_pairs.stated(file, corrected)
    )
    if rows:
        caption = "The file's own figure beside the position match of its ids"
        report_parts.draw(
            [ReportTable(caption, ("in the file at", "stated", "by its ids"), rows)], "stated"
        )


def _painting(file: ResultFile, found: Acceptance, corrected: bool) -> None:
    """One sample's draft with its accepted and rejected tokens."""
    st.subheader("Accepted and rejected tokens", anchor=False)
    texts = [r for r in file.of(found.draft, corrected) if r.ids and r.text]
    if not texts:
        st.caption("The file keeps no text of the draft: its tokens cannot be painted.")
        return
    place = st.selectbox(
        "Sample",
        range(len(texts)),
        format_func=lambda at: _sample(texts[at]),
        key=f"results_painted_{found.draft}",
        width=420,
    )
    draft = texts[place or 0]
    picture = answer_pairs.painting(file, draft, found.target, corrected)
    if picture is None:
        st.caption("The target has no ids for this sample.")
        return
    _paint(picture)
    others = [
        r
        for r in file.of(found.target, corrected)
        if (r.sample, r.question) == (draft.sample, draft.question)
    ]
    if others and others[0].text:
        notices.small(f"{found.target} answered: {others[0].text}", "imported_target")


def _paint(picture: Painting) -> None:
    st.html(accepted_text.page(picture))
    told = f"Tokens {accepted_text.words(picture)}."
    if picture.doubt:
        told += (
            " The file has no tokenizer: which letters belong to which id is inferred from its "
            f"texts, and here {picture.doubt}."
        )
    notices.small(told, "imported_painted")


def _sample(record: AnswerRecord) -> str:
    return f"{record.sample} · {record.question}" if record.question else record.sample
