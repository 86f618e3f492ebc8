"""One model's card: its name, its total, and its growing answer or its error.

Model output, errors and file names go through st.text and st.code, which show every character
literally; st.markdown gets constants and escaped text.
"""

from collections.abc import Sequence
from html import escape as escape_html

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.analysis.compared import ComparedModel
from engine.jobs.run_job import RunView
from engine.models.checkpoint import ModelEntry
from engine.types import COLD_VISION, RunRequest, RunResult
from engine.verify import certificates
from ui.compare import shown_inputs, trust_badges
from ui.widgets import notices
from ui.widgets.text import count, escape, marked, ms, queued, rate

# The containers of a card that are filled later: "stream" has the growing answer and keeps its end
# in view, "answer" the whole one.
CardSlot = dict[str, DeltaGenerator]
PARTS = ("head", "figures", "trust", "stream", "answer", "notes")
STOPPING = {"compile": "compiling", "loading": "loading"}  # steps that cannot be interrupted


def row(
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


def heading(entry: ModelEntry) -> None:
    """A model's name, and whether it is a demo; for pages whose models have no columns."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.subheader(escape(entry.label), anchor=False, width="content")
        if entry.demo:
            help_ = "A small checkpoint that ships with StageScope, trained on drawn scenes."
            st.badge("demo", color="gray", help=help_)


def idle(slot: CardSlot, entry: ModelEntry, reason: str | None) -> None:
    """A card before any run; `reason` says why the model cannot run."""
    with slot["answer"].container():
        if reason:
            notices.notice(reason, f"idle_{entry.name}")
        else:
            st.caption("Press Run (Ctrl+Enter): the answer appears here.")


def draw(slot: CardSlot, view: RunView, model: ComparedModel | None) -> None:
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
    if model is not None:
        _trust(slot, model)


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


def _trust(slot: CardSlot, model: ComparedModel) -> None:
    """One badge, which explains how far the figures can be trusted, and notes on the answer."""
    result = model.middle  # whose times the card shows
    loads = [one.machine_load for one in model.counted]
    badges = trust_badges.badges(certificates.row_of(result), loads)
    words, colour, _ = next((one for one in badges if one[1] == "orange"), badges[0])
    help_text = "\n\n".join(f"{words}: {why}" for words, _, why in badges)
    slot["trust"].badge(words, color=colour, help=help_text)
    result = model.last  # whose answer it shows
    with slot["notes"].container():
        # The badge explains what was computed in a cold run.
        more = (window_note(result), *(note for note in result.notes if note != COLD_VISION))
        notices.remarks(result.generation.stop, result.off_script, result.model.name, more)


def window_note(result: RunResult) -> str:
    window = result.request.how.window
    if window is None:
        return ""
    did = "was drawn" if result.extent else "cuts raw events only"
    return f"The window {window} {did}. Shown: {result.shown}."


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
