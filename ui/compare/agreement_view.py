"""Whether the models' answers agree, in one line and in a tab: contradictions, attributes, words,
and the known answer of the sample, which nothing tells before somebody asks for it."""

from collections.abc import Sequence
from html import escape as escape_html

import streamlit as st
from markupsafe import Markup

from engine.analysis import agreement
from engine.analysis.agreement import AttributeRow, Statement
from engine.analysis.answer_reading import is_scene
from engine.analysis.compared import ComparedModel
from engine.demo.wordings import attributes_asked
from engine.prompts import DEFAULT_QUESTION
from engine.quoting import joined
from engine.report.blocks import Table
from engine.types import Sample
from ui.compare import run_bars
from ui.widgets import blocks, choices, notices
from ui.widgets.text import count, escape

WORDS = "compare_words"  # in the URL
# verdict -> (symbol, style, word); the word is for readers who do not see the symbol; others: none
MARKS = {
    "right": ("✓", "passed", "correct"),
    "wrong": ("✕", "failed", "incorrect"),
    "unclear": ("?", "unresolved", "the answer contradicts itself"),
}
CUT = {"length": "cut at the limit", "cancelled": "cancelled"}
READ = "Attributes are read from the answers by key words of the demo scenes."
NOT_LISTED = (
    "It is not known which attributes this question asks for, so no statement is marked as right "
    "or wrong."
)
REPEATS = "Repeats of a model gave different answers: the newest complete one is compared."
UNKNOWN = "The content of this sample is not known, so no statement is marked as right or wrong."


def _known(sample: Sample) -> None:
    if not sample.truth and not sample.reference:
        st.caption("This sample has no reference answer.")
    if sample.reference:
        st.caption("Reference answer to the dataset's question:")
        notices.small(sample.question or DEFAULT_QUESTION, "reference_question")
        st.text(sample.reference)
    if sample.truth:
        st.caption("Scene attributes")
        with st.container(horizontal=True, gap="medium"):
            for name, value in sample.truth.items():
                st.metric(escape(name), escape(value), width="content")


def line(compared: Sequence[ComparedModel]) -> str:
    """Whether the answers agree; "" for fewer than two, and where one means nothing."""
    compared = [model for model in compared if model.complete]
    if meaningless(compared):
        return ""
    return agreement.sentence([model.last.generation.text for model in compared])


def meaningless(compared: Sequence[ComparedModel]) -> str:
    """Whose answers mean nothing, in a sentence; "" for none."""
    found = [model.label for model in compared if model.last.off_script]
    if not found:
        return ""
    was, answer = ("was", "its answer means") if len(found) == 1 else ("were", "their answers mean")
    return f"{joined(found)} {was} not trained on this: {answer} nothing."


@st.fragment  # a switch draws the tab, not the page
def section(compared: Sequence[ComparedModel], sample: Sample) -> None:
    help_ = "The dataset's reference answer and, for demo scenes, the scene's attributes."
    known = st.toggle("Show the known answer", key="compare_truth", bind="query-params", help=help_)
    if known:
        with st.container(border=True, key="known_answer"):
            _known(sample)
    _attributes([model for model in compared if not model.last.off_script], known)
    complete = (  # a cancelled answer is only shorter, so it is no other answer
        {one.generation.text for one in model.results if one.generation.stop != "cancelled"}
        for model in compared
    )
    if any(len(answers) > 1 for answers in complete):
        notices.small(REPEATS, "agreement_repeats")
    answers = {model.label: model.last.generation.text for model in compared}
    if len(answers) > 1 and st.toggle("Show word differences", key=WORDS, bind="query-params"):
        first, second = list(answers)[:2]
        if len(answers) > 2:  # the visitor chooses the pair
            keys, titles = ("compare_words_a", "compare_words_b"), ("First answer", "Second answer")
            first, second = choices.two(list(answers), (first, second), keys, titles)
        difference((first, answers[first]), (second, answers[second]), "agreement_words")


def _attributes(compared: Sequence[ComparedModel], known: bool) -> None:
    """What the answers state; right and wrong only if the answer may be `known`."""
    if len(compared) < 2:
        return
    request = compared[0].last.request
    truth = dict(request.sample.truth) if known and is_scene(dict(request.sample.truth)) else {}
    asked = attributes_asked(request.prompt)
    answers = [model.last.generation.text for model in compared]
    rows = agreement.compare(answers, truth, asked or ())
    labels = [model.label for model in compared]
    if contradicted := [row for row in rows if row.contradicted]:
        lines = "\n".join(f"• {contradiction(row, labels)}" for row in contradicted)
        notices.notice(f"{count(len(contradicted), 'contradiction')}:\n{lines}", "agreement")
    if rows:
        blocks.draw((table(rows, compared),), "agreement")
        why = "" if not known else UNKNOWN if not truth else NOT_LISTED if asked is None else ""
        notices.small(f"{READ} {why}".strip(), "agreement_read")


def contradiction(row: AttributeRow, labels: Sequence[str]) -> str:
    """For example "lead vehicle: car / none (EventGPT / LLaVA-1.5)"."""
    said = [
        (one.values[0], label)
        for one, label in zip(row.statements, labels, strict=True)
        if len(one.values) == 1
    ]
    values, who = zip(*said, strict=True)
    return f"{row.attribute}: {' / '.join(values)} ({' / '.join(who)})"


def table(rows: Sequence[AttributeRow], compared: Sequence[ComparedModel]) -> Table:
    """A row per attribute, a column per model; what is known only where it may be told."""
    known = any(row.truth is not None for row in rows)
    columns = ["attribute", *["known content"] * known]
    for model in compared:
        cut = CUT.get(model.last.generation.stop, "")
        columns.append(run_bars.head(model, f"{model.label} ({cut})" if cut else model.label))
    lines = tuple(
        (row.attribute, *[row.truth or "–"] * known, *map(statement, row.statements))
        for row in rows
    )
    return Table("What each answer states", tuple(columns), lines, len(columns))


def statement(one: Statement) -> str:
    """A value with a tick or a cross, or why there is none."""
    value = " and ".join(one.values) or one.verdict
    if one.verdict not in MARKS:
        return value
    symbol, style, word = MARKS[one.verdict]
    mark = Markup(
        '<span class="proof-mark proof-{style}" role="img" aria-label="{value}: {word}" '
        'title="{word}"><span class="proof-symbol">{symbol}</span>{value}</span>'
    )
    return mark.format(symbol=symbol, style=style, word=word, value=value)


def difference(first: tuple[str, str], second: tuple[str, str], key: str) -> None:
    """The difference of two (label, answer) pairs, what the marks mean, and the overlap."""
    texts = first[1], second[1]
    st.html(merged(*texts))
    shared = agreement.word_f1(*texts)
    alike = "neither answer has a word" if shared is None else f"{agreement.NAME} {shared:.3f}"
    notices.small(
        f"Struck through: only in {first[0]}. Underlined: only in {second[0]}. "
        f"Overlap: {alike}. This does not say which answer is right.",
        key,
    )


@st.cache_data(max_entries=64, show_spinner=False)
def merged(first: str, second: str) -> str:
    """HTML of both texts merged, escaped; what only one of them has is marked."""
    tags = {"both": "span", "first": "del", "second": "ins"}
    pieces = ""
    for holder, text in agreement.difference(first, second):
        # The start of one text may follow words of the other.
        gap = " " if pieces and not text[:1].isspace() else ""
        pieces += f"{gap}<{tags[holder]}>{escape_html(text)}</{tags[holder]}>"
    return f'<div class="words-between">{pieces or "Both answers are empty."}</div>'
