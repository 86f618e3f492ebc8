"""One sample: each model's pictures and answer, explanations that are kept with the answers, the
difference of two answers, a timeline.  Questions, answers, references and errors are shown as plain
text."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

import streamlit as st

from engine.analysis import agreement
from engine.attribution import explained
from engine.attribution.explained import Explanation
from engine.errors import DatasetError, MediaError
from engine.media.thumbnails import stamp_of
from engine.models import registry
from engine.report import answer_part, bundle, charts
from engine.storage import annotations as feedback
from engine.storage.annotations import MAX_NOTE_CHARS, Feedback, Thumb
from engine.storage.explanations import StoredExplanation
from engine.storage.plan import Task
from engine.storage.result_rows import ResultRow
from engine.storage.run_header import Header
from engine.storage.run_store import Run
from engine.types import Sample
from ui.compare import agreement_view, explain_panel, trust_badges
from ui.results import sample_list
from ui.results.opened_runs import OpenedRuns
from ui.widgets import choices, contact_sheets, dataset_picker, notices
from ui.widgets.text import escape

PER_ROW = 3
MOST_CHARS = 80  # of explained words in the list
BUNDLED = "open index.html of the bundle, which has them."
THUMBS: tuple[Thumb, Thumb] = ("down", "up")  # in the order of st.feedback's values


@dataclass(frozen=True)
class Result:
    """One result of the sample: its line of the table, its run, and the whole row as stored, None
    where it cannot be read again.  tone: the colour of its label."""

    label: str
    line: Mapping[str, Any]
    run: Run
    whole: ResultRow | None
    tone: str

    @property
    def task(self) -> Task:
        line = self.line
        model, sample = str(line["model"]), str(line["sample"])
        return Task(model, sample, int(line["repeat"]), line["phase"])

    @property
    def sample(self) -> Sample:
        """DatasetError if its dataset does not have it now."""
        root = Path(self.run.header.dataset.root)
        for sample in dataset_picker.read_quietly(root).samples:
            if sample.id == self.task.sample:
                return sample
        raise DatasetError(
            f"{self.run.header.dataset.root} no longer has the sample {self.task.sample!r}."
        )


def show(opened: OpenedRuns, name: str) -> None:
    st.subheader(escape(name), anchor=False)
    # One result per label, of the chosen repeat if there are several.
    lines = opened.table[opened.table["sample"] == name]
    lines = lines[lines["phase"] == "measured"]
    repeats = sorted({int(repeat) for repeat in lines["repeat"]})
    repeat = repeats[0] if repeats else 0
    if len(repeats) > 1:
        names = {str(number): f"Repeat {number + 1} of {len(repeats)}" for number in repeats}
        repeat = int(choices.listed("Repeat", names, "results_repeat", hidden=True, width=220))
    shown = lines[lines["repeat"] == repeat].to_dict("records")
    shown.sort(key=lambda line: opened.labels.index(line["label"]))  # a run by turns rotates them
    results = [result_of(opened, line) for line in shown]
    if not results:
        return
    asked(results)
    answered = [result.line for result in results if not result.line["error"]]
    agree = agreement.sentence([line["text"] for line in answered])
    if agree and not any(line["off_script"] for line in answered):  # which means nothing
        notices.small(agree, "results_agree")
    marks = {source.info.folder: sample_list.marks(source) for source in opened.sources}
    for start in range(0, len(results), PER_ROW):
        few = results[start : start + PER_ROW]
        for result, column in zip(few, st.columns(max(2, len(few))), strict=False):
            with column:
                _card(result, marks[result.run.folder].get(result.task, Feedback()))
    _timeline(results)
    with contextlib.suppress(DatasetError):  # the cards say why there are no pictures
        _explanations(results, results[0].sample)
    answers = {one.label: str(one.line["text"]) for one in results if not one.line["error"]}
    if len(answers) > 1:
        st.subheader("Word by word", anchor=False)
        labels = list(answers)
        a, b = choices.two(labels, (labels[0], labels[1]), ("results_first", "results_second"))
        agreement_view.difference((a, answers[a]), (b, answers[b]), "results_words")


def result_of(opened: OpenedRuns, line: dict[Any, Any]) -> Result:
    run, label, whole = opened.runs[int(line["number"])], str(line["label"]), None
    with notices.telling(f"results_whole_{label}"):
        whole = run.row(int(line["offset"]))
    return Result(label, line, run, whole, opened.families.get(label, ""))


def asked(results: Sequence[Result], known: bool = True) -> None:
    """Questions (several if they differ); if `known`, reference answer and scene attributes."""
    for number, text in enumerate(dict.fromkeys(str(r.line["prompt"] or "") for r in results)):
        if text:
            notices.small(f"Question: {text}", f"results_question_{number}")
    first = results[0].line
    if known and (first["reference"] or first["truth"]):
        with st.expander("Reference answer and scene attributes", key="results_reference"):
            if first["reference"]:
                notices.small(f"Reference answer: {first['reference']}", "results_reference_text")
            if first["truth"]:
                truth = ", ".join(f"{name} {value}" for name, value in first["truth"].items())
                notices.small(f"Scene attributes: {truth}", "results_truth")


def _card(result: Result, mark: Feedback) -> None:
    key, line = f"result_{result.label}", result.line
    with notices.frame(result.tone, key):
        st.markdown(f"**{escape(result.label)}**")
        pictures(result, key)
        if line["error"]:
            notices.problem(str(line["error"]), key)
        else:
            notices.answer(line["text"], key)
            notes = result.whole.notes if result.whole is not None else ()
            notices.remarks(line["stop"], line["off_script"], key, notes)
            if result.whole is not None:
                _figures(result.label, result.whole)
        _mark(result, mark)


def _figures(label: str, row: ResultRow) -> None:
    """Badges that qualify the times, then the times; a sample of a batch has the batch's times."""
    with st.container(horizontal=True, gap="small"):
        for words, colour, help_text in trust_badges.badges(row):
            st.badge(words, color=colour, help=help_text)
    with st.container(horizontal=True, gap="small"):
        for name, words in answer_part.of_row(row):
            help_text = answer_part.FORMULAS.get(name, trust_badges.BATCH_HELP)
            st.metric(name, words, help=help_text, width="content")
    of_batch = "Whole batch: " if row.batch > 1 else ""
    spans = row.batch_spans if row.batch > 1 else row.spans
    stages = answer_part.stages(spans) or "no stage was recorded"
    notices.small(f"{of_batch}{stages}.", f"result_stages_{label}")
    if row.where is not None and row.where.node:  # a result of a cluster
        host = f"{row.where.host}, " if row.where.host else ""
        where = f"Ran on {host}node {row.where.node}, worker {row.where.actor}: {row.device}."
        notices.small(where, f"result_place_{label}")


def pictures(result: Result, key: str) -> None:
    try:
        entry = registry.find(result.task.model)
        if entry is None:
            raise DatasetError("models.toml has no entry for this model now.")
        seen = contact_sheets.seen(result.sample, entry.kind, result.run.header.plan.media)
    except (MediaError, DatasetError) as error:
        why = BUNDLED if result.run.folder.name.startswith(bundle.OPENED) else error
        notices.small(f"No pictures to show: {why}", f"seen_{key}")
        return
    st.image(seen.picture, width="stretch", alt=seen.alt)
    notices.small(seen.caption, f"seen_{key}")


def _mark(result: Result, mark: Feedback) -> None:
    key = f"{result.run.folder.name}_{result.task.model}_{result.task.sample}_{result.task.repeat}"
    thumb, note = f"results_thumb_{key}", f"results_note_{key}"
    args = (key, _keep, result, thumb, note)
    keep: dict[str, Any] = {"on_change": notices.attempt, "args": args}
    st.session_state[thumb] = THUMBS.index(mark.thumb) if mark.thumb else None
    st.session_state.setdefault(note, mark.note)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.feedback("thumbs", key=thumb, **keep)
        hint = "A note about this answer"
        keep |= {"max_chars": MAX_NOTE_CHARS, "label_visibility": "collapsed"}
        st.text_input("Note", key=note, placeholder=hint, **keep)
    notices.said(key)


def _keep(result: Result, thumb: str, note: str) -> None:
    given = st.session_state[thumb]
    word: Thumb = "" if given is None else THUMBS[given]
    feedback.put(result.run.folder, result.task, Feedback(word, st.session_state[note].strip()))


def _explanations(results: Sequence[Result], sample: Sample) -> None:
    """The chosen explanation; nothing if none is kept with these answers."""
    found = [
        (one, stored)
        for one in results
        for stored in explained.of_run(one.run.folder)  # not those of another answer
        if (stored.model, stored.sample, stored.repeat, stored.answer)
        == (one.task.model, sample.id, one.task.repeat, str(one.line["text"]))
    ]
    if not found:
        return
    st.subheader("What the answers rest on", anchor=False)
    names = [
        f"{one.label}: {shorten(stored.words, MOST_CHARS, placeholder=' …')}"
        for one, stored in found
    ]
    key, places = "results_explained", range(len(found))
    chosen = st.selectbox(
        "Words", places, format_func=names.__getitem__, key=key, label_visibility="collapsed"
    )
    one, stored = found[chosen or 0]
    what = repr((one.run.folder, stored))
    with notices.telling(key):
        shown, picture = _map(stored, one.run.header, sample, what, stamp_of(sample))
        explain_panel.draw(shown, picture, sample.id, "results")


@st.cache_resource(max_entries=32, show_spinner="Drawing the map …")
def _map(
    _stored: StoredExplanation, _header: Header, _sample: Sample, what: str, stamp: str
) -> tuple[Explanation, bytes]:
    from engine.attribution import occlusion

    return occlusion.mapped(_stored, _header, _sample)


def _timeline(results: Sequence[Result]) -> None:
    answered = [result for result in results if not result.line["error"]]
    alone = [result for result in answered if result.line["batch"] == 1]
    if not alone:
        return
    answers = []
    for one in alone:
        stages = (one.whole and one.whole.stages) or {}
        starts = {name: span.start_ms for name, span in stages.items() if span is not None}
        answers.append({**one.line, "starts": starts})
    st.subheader("Timeline", anchor=False)
    st.altair_chart(charts.timeline(answers), alt=charts.timeline_words(answers))
    st.caption("Bars: stages. Thin lines: new tokens.")
    if len(alone) < len(answered):
        left = ", ".join(result.label for result in answered if result not in alone)
        st.caption(f"Not in the timeline, because answered in a batch: {escape(left)}.")
