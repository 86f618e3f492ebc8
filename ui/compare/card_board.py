"""The main part of the Compare page: the verdict and the stage bars of all models, which grow while
models run, what a screen reader says, and the cards.

Results stay until the next Run, with the settings they belong to, even if the sidebar changes.  A
live region speaks only if it was on the page before its words.  Streamlit keeps a container with a
key in the document, and a constant script makes it the live region; sentences go through st.text.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from html import escape

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.analysis.compared import ComparedModel, RunVerdict, verdict
from engine.analysis.metrics import STAGE_MEANING
from engine.errors import MediaError
from engine.jobs.run_job import RunView
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.palette import family_colour
from engine.storage.result_rows import ResultRow
from engine.types import MediaOptions, Sample
from ui.charts import run_bars
from ui.charts.run_bars import RunBar
from ui.compare import (
    agreement_view,
    cards,
    recording_view,
    shown_inputs,
)
from ui.widgets import contact_sheets, followed_runs, notices
from ui.widgets.followed_runs import MAX_MODELS
from ui.widgets.text import count, ms, name_of

TABLE_PLACE = ".st-key-compare_times"
_POLITE = """<span></span><script>
for (const region of document.querySelectorAll('[class*="st-key-spoken"]')) {
  region.setAttribute("role", "status");
  region.setAttribute("aria-live", "polite");
}
</script>"""
DEMO_NOTICE = (
    "Demo checkpoints know only drawn driving scenes and the common questions. "
    "Their answers to anything else are meaningless."
)
REPLAY_HELP = (
    "Plays each model's run, of several the median one, at its recorded times: stages, tokens and "
    "totals appear when they did, at full speed or slower."
)
WHY = "compare_why"  # in the URL
REPEATS = 5  # the fewest whose test can also decide if one run was disturbed
PICTURES_S = 0.05  # time for pictures between two updates of the runs


@dataclass
class Overview:
    """The verdict and the bars of the shown runs, redrawn in their places when they change.

    Their places hold HTML from the first moment: an empty place would make the page flicker.
    """

    entries: Sequence[ModelEntry]
    places: dict[str, DeltaGenerator] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)

    def draw(self, views: Sequence[RunView]) -> RunVerdict:
        compared = followed_runs.compared(self.entries)
        by_name = {entry.name: entry for entry in self.entries}
        ended = all(view.ended for view in views)
        if ended:
            labels = {by_name[view.model].label: view.state for view in views}
            for model in compared:
                labels.pop(model.label, None)
            found = verdict(compared, labels)
        else:
            done, every = followed_runs.done()
            words = f"Running: {done:,} of {count(every, 'run')} done."
            found = RunVerdict(tuple(compared), words)
        rows = [_row(view, by_name[view.model], compared) for view in views]
        self._put("verdict", markup(found))
        self._put("stages", run_bars.html(rows))
        return found

    def _put(self, name: str, html: str) -> None:
        if self.shown.get(name) == html:
            return
        self.shown[name] = html
        if name in self.places:
            self.places[name].html(html)
        else:
            with st.container(key=f"compare_{name}"):
                self.places[name] = st.html(html)


def begin(views: Sequence[RunView], entries: Sequence[ModelEntry]) -> Overview:
    """Draws verdict, bars and, when all runs have ended, their table; the same containers in the
    same order, also without runs."""
    above = Overview(entries)
    if views:
        found = above.draw(views)
    else:
        st.empty()
        st.empty()
    compared = followed_runs.compared(entries)
    if compared and all(view.ended for view in views):
        with st.container(key="compare_times"):
            _why(found)
            _table(compared)
    else:
        st.empty()
    return above


def _row(view: RunView, entry: ModelEntry, compared: Sequence[ComparedModel]) -> RunBar:
    """The bar of the run that goes on, otherwise of the model's runs so far."""
    found = next((model for model in compared if model.label == entry.label), None)
    if found is not None and (view.ended or view.state == "queued"):
        return run_bars.finished(found)
    state = f"run {view.repeat:,} of {view.repeats:,}" if view.state == "running" else view.state
    spans = () if view.ended else view.progress
    return run_bars.growing(entry.label, entry.colour, spans, state)


def _why(found: RunVerdict) -> None:
    """A button that repeats runs that are too few to decide, and the waterfall between the first
    two models."""
    if found.few:
        st.button(
            f"Repeat {REPEATS} times",
            key="compare_decide",
            help="Runs all models by turns, so that a test can tell which one is faster.",
            on_click=followed_runs.repeat,
            args=(REPEATS,),
        )
    split = found.split
    if split is None:
        return
    difference = ms(split.b_ms - split.a_ms)
    place = st.expander(f"Where the {difference} come from", key=WHY, bind="query-params")
    if place.open:
        from engine.report import charts  # slow to import

        steps = charts.split_steps(split)
        words = charts.waterfall_words(steps)
        place.altair_chart(charts.waterfall(steps), alt=words, width="stretch")


def _table(compared: Sequence[ComparedModel]) -> None:
    with st.expander("All times and their sources"):
        st.table(run_bars.table(compared), alt="Stage times and their sources.")
        meanings = "; ".join(f"{name}: {words}" for name, words in STAGE_MEANING.items())
        st.caption(f"{meanings}. Of several runs: the times of the one with the median total.")
        # A span before it keeps it here, out of the place of dialogs (theme.py).
        st.html(f"<span></span><style>{run_bars.head_style(compared, TABLE_PLACE)}</style>")


def markup(found: RunVerdict) -> str:
    """A heading, the models with their figures, the reason or what is mixed, and the notes.  It is
    no live region."""
    models = "".join(_model(one) for one in found.models)
    lines = [line for line in (found.reason, *found.mixed) if line]
    sentences = "".join(f"<p>{escape(line)}</p>" for line in lines)
    notes = f'<p class="verdict-note">{escape(" ".join(found.notes))}</p>' if found.notes else ""
    return (
        f'<div class="verdict"><h2>{escape(found.headline)}</h2>'
        f'<div class="verdict-models" role="list">{models}</div>{sentences}{notes}</div>'
    )


def _model(one: ComparedModel) -> str:
    low, high = one.tokens
    figures = [count(high, "token") if low == high else f"{low:,} to {high:,} tokens"]
    if one.per_token is not None:
        figures.append(f"{ms(one.per_token.middle)} per token")
    words, total = " · ".join(figures), one.total
    ends = f"median run of {total.runs:,}: {ms(total.low)} to {ms(total.high)}"
    ends = f"<span>{ends}</span>" if total.runs > 1 else ""
    return (
        f'<div class="verdict-model" role="listitem" '
        f'style="--model: {family_colour(one.family)}">{escape(one.label)}'
        f"<b>{ms(one.total.middle)}</b><span>{words}</span>{ends}</div>"
    )


class Spoken:
    """The live region, with a place per model: a reader says only the place that changes."""

    def __init__(self) -> None:
        with st.container(key="spoken_runs"):
            st.html(_POLITE, unsafe_allow_javascript=True)
            self._places = [st.container() for _ in range(MAX_MODELS)]
        self._said: set[str] = set()

    def say(self, views: Sequence[RunView], labels: Mapping[str, str]) -> None:
        """The end of each run, once."""
        for place, view in zip(self._places, views, strict=False):
            if view.ended and view.id not in self._said:
                self._said.add(view.id)
                place.text(sentence(view, labels.get(view.model, view.model)))


def sentence(view: RunView, label: str) -> str:
    """How the run ended, with its total; of several, its number, because cards show medians."""
    if view.result is not None and view.state == "done":
        one = f" (run {view.repeat:,} of {view.repeats:,})" if view.repeats > 1 else ""
        return f"{label} answered in {ms(view.result.total_ms)}{one}"
    return f"{label}: {view.state}"


def show(
    entries: Sequence[ModelEntry],
    sample: Sample | None,
    chosen: Sequence[ModelEntry],
    how: MediaOptions,
    spoken: Spoken,
) -> None:
    """Everything below the buttons."""
    names = {entry.name for entry in entries}
    found = [view for view in followed_runs.views() if view.model in names]
    if followed_runs.RUNS.lost():
        notices.notice(
            "The runs in this link are no longer in memory: press Run to repeat them.", "lost"
        )
    requests = [view.request for view in found]
    if found:
        by_name = {entry.name: entry for entry in entries}
        chosen = [by_name[view.model] for view in found]
        sample, how = requests[0].sample, requests[0].how.media
        words = requests[0].prompt
    elif sample is None or not chosen:
        missing = "a sample, or drop your own files," if sample is None else "one to six models"
        notices.hint(f"Choose {missing} in the sidebar, then press Run.")
        return
    else:
        words = "not run yet"
    above = begin(found, entries)
    live = any(not view.ended for view in found)
    _replay(followed_runs.compared(entries), live)
    # Always the same containers in the same order: Streamlit removes old elements only when the
    # script ends, and a streaming run delays that.
    notices.small(f"{name_of(sample)}: {words}", "subject")
    if any(entry.demo for entry in chosen):
        st.caption(DEMO_NOTICE)
    else:
        st.empty()
    if requests:
        shown_inputs.row(requests)
    else:
        st.empty()
    slots = cards.row(chosen, live, lambda entry: shown_inputs.own(requests, entry.name))
    agreement = cards.place(live)
    failed = {view.model for view in found if view.error}
    pictures = _fill_pictures(sample, chosen, how, slots, bool(found), failed)
    if found:
        by_model = dict(zip((view.model for view in found), slots, strict=True))
        _follow(by_model, pictures, above, entries, spoken)
        if live:
            st.rerun()
        with agreement.container():
            agreement_view.section(followed_runs.compared(entries))
    else:
        for slot, entry in zip(slots, chosen, strict=True):
            cards.idle(slot, entry, registry.cannot_run(entry, sample))
        deque(pictures, maxlen=0)
    recording_view.seen(sample, chosen, how)


def _replay(compared: Sequence[ComparedModel], live: bool) -> None:
    """A switch that opens the replay of the runs, in HTML without scripts; nothing while models run
    or without a result."""
    if not compared:
        cards.place(live=True)
        return
    from engine.report import replay  # reports import much, which the first page does not need

    lanes = [replay.lane(one.label, ResultRow.from_result(one.middle)) for one in compared]
    found = [lane for lane in lanes if lane is not None]
    with cards.place(live or not found):
        if live or not found:
            return
        if st.toggle("Replay", key="compare_replay", bind="query-params", help=REPLAY_HELP):
            st.html(replay.section(found))


def _fill_pictures(
    sample: Sample,
    models: Sequence[ModelEntry],
    how: MediaOptions,
    slots: Sequence[cards.CardSlot],
    ran: bool,
    failed: Set[str],
) -> Iterator[None]:
    """Draws one card's pictures at each step, because decoding must not delay the answers."""
    for slot, entry in zip(slots, models, strict=True):
        seen: contact_sheets.ContactSheet | str
        try:
            seen = contact_sheets.seen(sample, entry.kind, how)
        except MediaError as error:
            seen = str(error)
        if ran:  # a result repeats the notes and an error the message; neither reports lost files
            repeated = entry.name in failed if isinstance(seen, str) else True
        else:
            repeated = registry.cannot_run(entry, sample) is not None
        cards.show_pictures(slot, entry, seen, repeated)
        yield


def _follow(
    slots: dict[str, cards.CardSlot],
    pictures: Iterator[None],
    above: Overview,
    entries: Sequence[ModelEntry],
    spoken: Spoken,
) -> None:
    """Draw what has changed since the last update, until all runs have ended."""
    labels = {entry.name: entry.label for entry in entries}
    drawn: dict[str, RunView] = {}

    def draw(now: list[RunView]) -> None:
        ended = {view.model for view in drawn.values() if view.ended}
        live = [view for view in now if view.model in slots and view.model not in ended]
        fresh = [view for view in live if drawn.get(view.model) != view]
        compared = {model.label: model for model in followed_runs.compared(entries) if fresh}
        for view in fresh:
            cards.draw(slots[view.model], view, compared.get(labels[view.model]))
            drawn[view.model] = view
        spoken.say(now, labels)
        above.draw([view for view in now if view.model in slots])
        end = time.monotonic() + PICTURES_S
        for _ in pictures:  # at least one
            if time.monotonic() > end:
                break

    followed_runs.follow(draw)
    deque(pictures, maxlen=0)
