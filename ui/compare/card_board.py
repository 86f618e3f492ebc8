"""The main part of the Compare page: who was first, whether the answers agree, the cards with the
answers, and the stage bars, which grow while models run; and what a screen reader says.

Results stay until the next Run, with the settings they belong to, even if the sidebar changes.  A
live region speaks only if it was on the page before its words.  Streamlit keeps a container with a
key in the document, and a constant script makes it the live region; sentences go through st.text.

Model output, errors and file names go through st.text, which shows every character literally.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape as escape_html

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.analysis.compared import ComparedModel, RunVerdict, verdict
from engine.jobs.run_job import RunView
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.types import COLD_VISION, RunRequest, Sample
from engine.verify import certificates
from ui.compare import agreement_view, blind_vote, run_bars, shown_inputs, trust_badges
from ui.compare.run_bars import RunBar
from ui.widgets import followed_runs, notices
from ui.widgets.followed_runs import MAX_MODELS
from ui.widgets.text import count, escape, marked, ms, name_of, queued, rate

# The containers of a card that are filled later: "stream" has the growing answer and keeps its end
# in view, "answer" the whole one.
CardSlot = dict[str, DeltaGenerator]
PARTS = ("head", "figures", "trust", "stream", "answer", "notes")
STOPPING = {"compile": "compiling", "loading": "loading"}  # steps that cannot be interrupted
_POLITE = """<span></span><script>
for (const region of document.querySelectorAll('[class*="st-key-spoken"]')) {
  region.setAttribute("role", "status");
  region.setAttribute("aria-live", "polite");
}
</script>"""


def found_verdict(views: Sequence[RunView], by_name: Mapping[str, ModelEntry]) -> RunVerdict:
    compared = followed_runs.compared(by_name)
    labels = {by_name[view.model].label: view.state for view in views}
    for model in compared:
        labels.pop(model.label, None)
    return verdict(compared, labels)


def markup(found: RunVerdict, compared: Sequence[ComparedModel] = ()) -> str:
    """The verdict, what the answers mean, what was mixed.  It is no live region."""
    above = agreement_view.meaningless(compared)
    head = escape_html(found.headline)
    below = filter(None, (found.reason, agreement_view.line(compared)))
    lines = [f"<p>{escape_html(above)}</p>"] * bool(above) + [f"<h2>{head}</h2>"]
    lines += [f"<p>{escape_html(line)}</p>" for line in below] + [
        f'<p class="verdict-note">{escape_html(line)}</p>' for line in found.mixed
    ]
    return f'<div class="verdict">{"".join(lines)}</div>'


def _row(view: RunView, entry: ModelEntry, compared: Sequence[ComparedModel]) -> RunBar:
    """The bar of the run that goes on, otherwise of the model's runs so far."""
    found = next((model for model in compared if model.label == entry.label), None)
    if found is not None and (view.ended or view.state == "queued"):
        return run_bars.finished(found)
    state = f"run {view.repeat:,} of {view.repeats:,}" if view.state == "running" else view.state
    return run_bars.growing(entry.label, entry.colour, () if view.ended else view.progress, state)


def live_region() -> list[DeltaGenerator]:
    """A place per model for its end: a reader says only the place that changes."""
    with st.container(key="spoken_runs"):
        st.html(_POLITE, unsafe_allow_javascript=True)
        return [st.container() for _ in range(MAX_MODELS)]


def sentence(view: RunView, label: str) -> str:
    """How the run ended, with its total; of several, its number, because cards show medians."""
    if view.result is not None and view.state == "done":
        one = f" (run {view.repeat:,} of {view.repeats:,})" if view.repeats > 1 else ""
        return f"{label} answered in {ms(view.result.total_ms)}{one}"
    return f"{label}: {view.state}"


def show(
    by_name: Mapping[str, ModelEntry],
    sample: Sample | None,
    chosen: Sequence[ModelEntry],
    spoken: Sequence[DeltaGenerator],
    below: Callable[[bool], None],
) -> None:
    """Everything between the question and the tabs, in fixed places: Streamlit removes old elements
    only when the script ends, and a streaming run delays that.  `below` draws what stands below,
    before runs are followed; it is told whether there are any."""
    views = [view for view in followed_runs.views() if view.model in by_name]
    if followed_runs.RUNS.lost():
        notices.notice(
            "The runs in this link are no longer in memory: press Run to repeat them.", "lost"
        )
    requests = [view.request for view in views]
    if views:
        chosen, sample = [by_name[view.model] for view in views], requests[0].sample
    elif sample is None or not chosen:  # the page says what is missing
        return below(False)
    if views and blind_vote.hiding():
        return blind_vote.show(views)
    live = any(not view.ended for view in views)
    with st.container(key="compare_verdict", horizontal=True, vertical_alignment="top"):
        head = st.html("<div></div>")
        decide = place(live)
    if vote := blind_vote.words({name: entry.label for name, entry in by_name.items()}):
        notices.small(vote, "vote")
    slots = card_row(chosen, live, requests)
    bars = st.container(key="compare_stages").html("<div></div>")
    if not views:
        for slot, entry in zip(slots, chosen, strict=True):
            with slot["answer"].container():
                if reason := registry.cannot_run(entry, sample):
                    notices.notice(reason, f"idle_{entry.name}")
                else:
                    st.caption("Press Run (Ctrl+Enter): the answer appears here.")
        return below(False)
    by_model = dict(zip((view.model for view in views), slots, strict=True))
    draw = _drawing(by_model, head, bars, by_name, spoken)
    draw(views)  # a press of Run shows on the cards before the rest is drawn
    if live:
        below(True)
        followed_runs.follow(draw)
        st.rerun()
    if repeats := found_verdict(views, by_name).repeats:
        decide.button(
            f"Repeat {repeats} times",
            key="compare_decide",
            help="Runs all models by turns, so that a test can tell which one is faster.",
            width=140,
            on_click=followed_runs.start,
            args=(requests, repeats),
        )
    shown_inputs.row(f"{name_of(sample)}: {requests[0].prompt}", requests)
    below(False)


def _drawing(
    slots: dict[str, CardSlot],
    head: DeltaGenerator,
    bars: DeltaGenerator,
    by_name: Mapping[str, ModelEntry],
    spoken: Sequence[DeltaGenerator],
) -> Callable[[list[RunView]], None]:
    """Draws what has changed since its last call."""
    drawn: dict[str, RunView] = {}
    places = dict(zip(slots, spoken, strict=False))
    html: dict[DeltaGenerator, str] = {}

    def put(place: DeltaGenerator, text: str) -> None:
        if html.get(place) != text:
            place.html(text)
            html[place] = text

    def draw(now: list[RunView]) -> None:
        now = [view for view in now if view.model in slots]
        compared = followed_runs.compared(by_name)
        by_label = {model.label: model for model in compared}
        for view in now:
            before, label = drawn.get(view.model), by_name[view.model].label
            if before != view and not (before and before.ended):
                draw_card(slots[view.model], view, by_label.get(label))
                drawn[view.model] = view
                if view.ended and view.model in places:
                    places[view.model].text(sentence(view, label))
        if all(view.ended for view in now):
            words = markup(found_verdict(now, by_name), compared)
        else:
            words = markup(RunVerdict((), followed_runs.progress()))
        put(head, words)
        put(bars, run_bars.html([_row(view, by_name[view.model], compared) for view in now]))

    return draw


def card_row(
    entries: Sequence[ModelEntry], live: bool, requests: Sequence[RunRequest]
) -> list[CardSlot]:
    """Empty cards side by side, in rows of up to three, with the settings that only one has."""
    columns = st.container(key="compare_cards").columns(max(2, len(entries)))
    found = []
    for entry, column in zip(entries, columns, strict=False):
        slot: CardSlot = {}
        with column, notices.frame(entry.colour, entry.name):
            for part in PARTS:  # which style.css aligns between the cards
                with st.container(key=f"{part}_{entry.name}", horizontal=part == "trust"):
                    if part == "head":
                        st.subheader(escape(entry.label), anchor=False)
                    if part == "trust":
                        shown_inputs.chips(shown_inputs.own(requests, entry.name))
                    slot[part] = place(live)
        found.append(slot)
    return found


def place(live: bool) -> DeltaGenerator:
    """For later drawing.  st.empty removes what the last rerun has drawn, so the browser rebuilds
    pictures and charts; a container keeps them until the same is drawn there."""
    return st.empty() if live else st.container()


def draw_card(slot: CardSlot, view: RunView, model: ComparedModel | None) -> None:
    """The current state of the job; `model` has the results so far, None if there is none.  At most
    once per script run for an ended run: its elements have keys, which must be unique."""
    if view.state == "done":
        slot["head"].empty()
    else:
        slot["head"].caption(status(view))
    if model is not None:
        slot["figures"].html(figures(model))
    if not view.ended:
        slot["stream"].text(view.text or " ")
        return
    slot["stream"].empty()
    with slot["answer"].container():
        if view.error:
            notices.ended(view.state, view.error, f"job_{view.id}")
        else:
            st.text(view.text or " ")
    if model is None:
        return
    # One badge, which explains how far the figures can be trusted, and notes on the answer.
    result = model.middle  # whose times the card shows
    loads = [one.machine_load for one in model.counted]
    badges = trust_badges.badges(certificates.row_of(result), loads)
    words, colour, _ = next((one for one in badges if one[1] == "orange"), badges[0])
    help_text = "\n\n".join(f"{words}: {why}" for words, _, why in badges)
    slot["trust"].badge(words, color=colour, help=help_text)
    result = model.last  # whose answer it shows
    notes = [note for note in result.notes if note != COLD_VISION]  # which the badge explains
    if window := result.request.how.window:
        did = "was drawn" if result.extent else "cuts raw events only"
        notes.insert(0, f"The window {window} {did}. Shown: {result.shown}.")
    with slot["notes"].container():
        notices.remarks(result.generation.stop, result.off_script, result.model.name, notes)


def figures(model: ComparedModel) -> str:
    """The total and the number of tokens, and what has to be known to read them, in HTML."""
    total, served = model.total, model.middle.served
    notes = [f"at {escape_html(served.host)}"] if served else []
    notes += [total.words] if total.words else []
    if model.middle.cached:
        notes.append(f"{ms(model.middle.uncached_total_ms)} without cache")
    return (
        f'<p class="card-total"><b>{marked("total", model.label, ms(total.middle))}</b> '
        f"{marked('New tokens', model.label, model.tokens)}<small>{'; '.join(notes)}</small></p>"
    )


def status(view: RunView) -> str:
    if view.stopping:
        state = "Cancelling …"
        if step := STOPPING.get(view.stage or view.state):
            state = f"Cancelling: {step} cannot be interrupted. A new run waits until it ends."
    elif view.state == "queued":
        state = queued(view.position)
    elif view.state == "loading":
        state = "Loading the model …"
    elif view.state != "running":
        return view.state.capitalize()  # of all repeats: no number
    elif not view.new_tokens:
        state = f"Running: {view.stage or 'starting'} …"
    else:
        speed = "" if view.tokens_per_s is None else f" · {rate(view.tokens_per_s)}"
        state = f"{count(view.new_tokens, 'token')} · first after {ms(view.ttft_ms)}{speed}"
    return (f"Run {view.repeat} of {view.repeats} · " if view.repeats > 1 else "") + state
