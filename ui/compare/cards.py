"""One model's card: its name, what it sees, its answer as it grows, its numbers, or why it failed.

Boundary: draws a RunView, changes nothing.  Model output, error sentences and names of files go
through st.text, which shows every character as it is; st.markdown gets constants and escaped words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.jobs.run_job import RunView
from engine.machine.load import MachineLoad
from engine.machine.load import busy as is_busy
from engine.machine.load import words as load_words
from engine.models.checkpoint import ModelEntry
from engine.prompts import OFF_SCRIPT
from engine.storage.coverage import Standing
from engine.types import PrefixUse, RunResult
from engine.verify import certificates
from ui.widgets import notices
from ui.widgets.contact_sheets import Seen
from ui.widgets.text import count, escape, ms, rate
from ui.widgets.theme import FAMILY_COLOURS

ANSWER_HEIGHT = 250
Colour = Literal["green", "orange", "violet", "gray", "blue"]
CACHE_HELP = (
    "Stage 3 was not computed in this run: its features were read from the disk. The table gives "
    "the total of this run and the total with stage 3 at the time it took when it was computed."
)
PREFIX_HELP = (
    "The model had read this sample's prompt up to its last visual token: preprocessing, stage 3 "
    "and most of the prefill were not done in this run. The table gives what the first two took "
    "then. What the whole prefill of this question would take was not measured, and so the cold "
    "total is not known."
)
VERIFIED_HELP = (
    "A certificate of this hash proves, for this checkpoint, code, device and dtype, that "
    "decoupled inference is the model's own. The Verify page shows what was and was not proved."
)
NOT_COVERED_HELP = (
    "The model is verified, but this result goes beyond what its certificate covers: what is "
    "missing was not compared with the model's own generate()."
)
UNVERIFIED_HELP = (
    "No certificate covers this checkpoint, code, device, dtype, backend and pixels: nobody has "
    "proved that these are the times of the model's own inference. The Verify page does that, with "
    "the device's usual backend."
)
DEMO_HELP = "A small checkpoint that comes with StageScope, trained on drawn scenes."
COLD_HELP = "The first run after loading pays for start-up work: compare times from the next one."
HOOKED_HELP = "The model's own generate() ran; stage 3 was timed by hooks, stage 4 is the rest."
COMPILED_HELP = (
    "Tokens after the first came from a compiled step: equal to the eager one up to rounding."
)
FORMULAS = {
    "New tokens": "Ids the model produced; the end-of-answer token counts. The prompt does not.",
    "Context": "Ids of the prompt with the visual tokens in place.",
    "TTFT": "Time to first token: from the start of the run to the first new token. "
    "Waiting in the queue is not part of it.",
    "TPOT": "Time per output token: (end of the run − TTFT) / (N − 1), for N new tokens.",
    "tok/s": "(N − 1) / seconds after the first token, for N new tokens.",
}
FAST_HELP = "Pictures were resized by the fast setting: some pixels are a grey level or two off."
BUSY_HELP = (
    "Other work had the machine's cores during this, so that its times are longer than on a quiet "
    "machine. Measured: {}."
)
STOPS = {
    "eos": "",
    "length": "Stopped at the limit of new tokens.",
    "cancelled": "Cancelled before the end.",
}
# What a cancelled run is still at work on and cannot be interrupted in; a new run queues behind it.
STOPPING = {
    "compile": "Cancelling: compiling cannot be interrupted. A new run waits for its end.",
    "loading": "Cancelling: loading cannot be interrupted. A new run waits for its end.",
}


@dataclass(frozen=True)
class Slot:
    """The places on a card that are filled after it stands."""

    pictures: DeltaGenerator
    status: DeltaGenerator
    answer: DeltaGenerator
    numbers: DeltaGenerator


def card(entry: ModelEntry, live: bool) -> Slot:
    """A card with its name and empty places."""
    with frame(entry):
        heading(entry)
        with st.container(key=f"seen_{entry.name}"):
            pictures = place(live)
        status = place(live)
        with st.container(
            height=ANSWER_HEIGHT, border=False, key=f"answer_{entry.name}", autoscroll=True
        ):
            answer = place(live)
        numbers = place(live)
    return Slot(pictures, status, answer, numbers)


def place(live: bool) -> DeltaGenerator:
    """Where something is drawn later: over and over again if live, else once.

    st.empty takes away what the last rerun has drawn, so that the browser makes pictures and
    charts anew; a container keeps it until the same is drawn there.
    """
    return st.empty() if live else st.container()


def frame(entry: ModelEntry) -> DeltaGenerator:
    """A bordered box whose upper edge has the family's colour."""
    family = entry.family if entry.family in FAMILY_COLOURS else "other"
    return st.container(border=True, key=f"card_{family}_{entry.name}")


def heading(entry: ModelEntry) -> None:
    """The entry's label, and whether it is a demo checkpoint."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{escape(entry.label)}**", width="content")
        if entry.demo:
            st.badge("demo", color="gray", help=DEMO_HELP)


def show_pictures(slot: Slot, entry: ModelEntry, seen: Seen | str, said: bool) -> None:
    """What the model sees; `seen` is a sentence when there are no pictures.

    What was noted or went wrong is left out when it is `said` elsewhere on the card.
    """
    with slot.pictures.container():
        if isinstance(seen, str):
            notices.small("No pictures to show.", f"seen_{entry.name}")
            notes: tuple[str, ...] = (seen,)
        else:
            st.image(seen.picture, width="stretch", alt=seen.alt)
            notices.small(seen.caption, f"seen_{entry.name}")
            notes = seen.notes
        for number, note in enumerate(() if said else notes):
            notices.notice(note, f"seen_{entry.name}_{number}")


def idle(slot: Slot, entry: ModelEntry, reason: str | None) -> None:
    """A card before any run; `reason` says why the model could not answer."""
    slot.status.caption("Cannot run" if reason else "Not run yet")
    with slot.answer.container():
        if reason:
            notices.notice(reason, f"idle_{entry.name}")
        else:
            st.caption("Press Run (Ctrl+Enter): the answer appears here.")


def draw(slot: Slot, view: RunView) -> None:
    """The card's changing part as the job stands now.

    For an ended run once per script run: its elements have keys, which may occur once.
    """
    slot.status.caption(status(view))
    if view.ended and view.error:
        with slot.answer.container():
            show = notices.problem if view.state == "failed" else notices.notice
            show(view.error, f"job_{view.id}")
    else:
        slot.answer.text(view.text or " ")
    if view.result is not None:
        with slot.numbers.container():
            _numbers(view.result)


def status(view: RunView) -> str:
    """Where the job is, in a few words."""
    if view.stopping:
        return STOPPING.get(view.stage or view.state, "Cancelling …")
    if view.state == "queued":
        return (
            f"Waiting: {count(view.position, 'run')} before this one" if view.position else "Next"
        )
    if view.state == "loading":
        return "Loading the model …"
    if view.state == "running":
        return _progress(view)
    words = {"done": "Answered", "failed": "Failed", "cancelled": "Cancelled"}[view.state]
    return f"{words} · waited {ms(view.queued_ms)} for the device" if view.result else words


def _progress(view: RunView) -> str:
    if not view.new_tokens:
        return f"Running: {view.stage or 'starting'} …"
    parts = [count(view.new_tokens, "token"), f"first after {ms(view.ttft_ms)}"]
    if view.tokens_per_s is not None:
        parts.append(rate(view.tokens_per_s))
    return " · ".join(parts)


def _numbers(result: RunResult) -> None:
    if result.off_script:
        notices.notice(OFF_SCRIPT, f"off_script_{result.model.name}")
    _badges(result)
    with st.container(horizontal=True, gap="small"):
        for name, value in figures(result).items():
            st.metric(name, value, help=FORMULAS[name], width="content")
    told = (STOPS[result.generation.stop], prefix_words(result.prefix), *result.notes)
    for number, note in enumerate(told):
        if note:
            notices.small(note, f"note_{result.model.name}_{number}")


def prefix_words(use: PrefixUse | None) -> str:
    """What became of the prompt's beginning, in a sentence."""
    if use is None:
        return ""
    if use.state == "kept":
        return f"The first {use.tokens:,} tokens of the prompt are kept for another question."
    return f"The first {use.tokens:,} tokens of the prompt were read before."


def figures(result: RunResult) -> dict[str, str]:
    """The headline numbers with their units, in a fixed order."""
    return {
        "New tokens": f"{result.new_tokens:,}",
        "Context": f"{result.generation.prompt_tokens:,}",
        "TTFT": ms(result.ttft_ms),
        "TPOT": ms(result.tpot_ms),
        "tok/s": rate(result.tokens_per_s).removesuffix(" tok/s"),
    }


def _badges(result: RunResult) -> None:
    with st.container(horizontal=True, gap="small"):
        for words, colour, help_text in badges(result):
            st.badge(words, color=colour, help=help_text)


def standing(found: Standing, command: str = "") -> tuple[str, Colour, str]:
    """The badge of a result as it ran: its certificate by the hash, what no certificate covers, or
    that there is none, and the command that would verify it as it ran."""
    if found.state == "verified":
        return found.words, "green", VERIFIED_HELP
    if found.state == "not covered":
        name = found.certificate[: certificates.SHOWN]
        closest = f" The closest certificate is {name}." if name else ""
        return found.words, "orange", NOT_COVERED_HELP + closest
    how = f" As this ran, in a terminal: `{command}`" if command else ""
    return found.words, "gray", UNVERIFIED_HELP + how


def busy(load: MachineLoad) -> str:
    """What the chip of a busy machine explains, with the figures."""
    return BUSY_HELP.format(load_words(load))


def _reused(result: RunResult) -> tuple[str, Colour, str] | None:
    """That the prompt's beginning came from memory, with the time that the rest's prefill took."""
    prefill, use = result.span("decode.prefill"), result.prefix
    if use is None or use.state != "reused" or prefill is None:
        return None
    return f"prefix reused: prefill {ms(prefill.ms)}", "green", PREFIX_HELP


def badges(result: RunResult) -> list[tuple[str, Colour, str]]:
    """(words, colour, explanation) of what a reader must know before trusting the times."""
    request = result.request
    command = certificates.command(request.model, result.backend, request.pixels)
    found = [standing(certificates.certificate_status(result), command)]
    if (reused := _reused(result)) is not None:
        found.append(reused)
    for span in result.spans:
        if span.source == "cached" and reused is None:
            words = f"{span.name} from cache: {ms(span.ms)}, took {ms(span.original_ms)}"
            found.append((words, "green", CACHE_HELP))
    if (load := result.machine_load) is not None and is_busy(load):
        found.append(("busy machine", "orange", busy(load)))
    if result.cold:
        found.append(("cold run", "orange", COLD_HELP))
    if result.backend == "compiled":
        found.append(("compiled", "blue", COMPILED_HELP))
    if result.request.mode == "hooked":
        found.append(("hooked", "violet", HOOKED_HELP))
    if result.request.pixels == "fast":
        found.append(("fast pixels", "violet", FAST_HELP))
    return found
