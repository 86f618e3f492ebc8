"""One model's card: its name, its pictures, its growing answer, its figures, or its error.

Boundary: draws a RunView.  Model output, errors and file names go through st.text, which shows
every character literally; st.markdown gets constants and escaped text.
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
from ui.widgets.contact_sheets import ContactSheet
from ui.widgets.text import count, escape, ms, queued, rate
from ui.widgets.theme import FAMILY_COLOURS

ANSWER_HEIGHT = 250
Colour = Literal["green", "orange", "violet", "gray", "blue"]
CACHE_HELP = (
    "Stage 3 was not computed in this run: its features were read from disk. The table shows the "
    "total of this run and the total without cache, with the time stage 3 took when computed."
)
PREFIX_HELP = (
    "Stages 2 and 3 and most of the prefill were skipped: the model had already read this sample's "
    "prompt up to its last visual token. The table shows how long stages 2 and 3 took then. The "
    "full prefill was not run for this question, so the total without cache is unknown."
)
VERIFIED_HELP = (
    "The certificate with this hash proves that decoupled inference equals the model's own, for "
    "this checkpoint, code, device and dtype. The Verify page shows what was and was not proved."
)
NOT_COVERED_HELP = (
    "The model is verified, but its certificate does not cover this result: what is missing was "
    "not compared with the model's own generate()."
)
UNVERIFIED_HELP = (
    "No certificate covers this checkpoint, code, device, dtype, backend and pixel setting, so it "
    "is not proved that these are times of the model's own inference. The Verify page can prove "
    "it for the device's default backend."
)
DEMO_HELP = "A small checkpoint that ships with StageScope, trained on drawn scenes."
COLD_HELP = "The first run after loading includes start-up work: compare later runs instead."
HOOKED_HELP = "The model's own generate() ran. Hooks timed stage 3; stage 4 is the remaining time."
COMPILED_HELP = (
    "Tokens after the first came from a compiled step, equal to the eager one up to rounding."
)
FORMULAS = {
    "New tokens": "Tokens the model produced, with the end-of-answer token, without the prompt.",
    "Context": "Prompt tokens, including the visual tokens.",
    "TTFT": "Time to first token: from the start of the run to the first new token. "
    "Queue time is not included.",
    "TPOT": "Time per output token: (end of the run − TTFT) / (N − 1), for N new tokens.",
    "tok/s": "(N − 1) / seconds after the first token, for N new tokens.",
}
FAST_HELP = (
    "Pictures were resized with the fast setting: some pixels differ by a grey level or two."
)
BUSY_HELP = (
    "Other work used the CPU cores during this run, so its times are longer than on an idle "
    "machine. Measured: {}."
)
STOPS = {
    "eos": "",
    "length": "Stopped at the limit of new tokens.",
    "cancelled": "Cancelled before the end.",
}
# Steps of a cancelled run that cannot be interrupted.
STOPPING = {
    "compile": "Cancelling: compiling cannot be interrupted. A new run waits until it ends.",
    "loading": "Cancelling: loading cannot be interrupted. A new run waits until it ends.",
}


@dataclass(frozen=True)
class CardSlot:
    """The containers of a card that are filled later."""

    pictures: DeltaGenerator
    status: DeltaGenerator
    answer: DeltaGenerator
    numbers: DeltaGenerator


def card(entry: ModelEntry, live: bool) -> CardSlot:
    """A card with its name and empty containers."""
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
    return CardSlot(pictures, status, answer, numbers)


def place(live: bool) -> DeltaGenerator:
    """A container for later drawing: redrawn again and again if live, otherwise drawn once.

    st.empty removes what the last rerun has drawn, so the browser rebuilds pictures and charts; a
    container keeps them until the same is drawn there.
    """
    return st.empty() if live else st.container()


def frame(entry: ModelEntry) -> DeltaGenerator:
    """A bordered box with the family's colour at its upper edge."""
    family = entry.family if entry.family in FAMILY_COLOURS else "other"
    return st.container(border=True, key=f"card_{family}_{entry.name}")


def heading(entry: ModelEntry) -> None:
    """The entry's label, with a badge for a demo checkpoint."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{escape(entry.label)}**", width="content")
        if entry.demo:
            st.badge("demo", color="gray", help=DEMO_HELP)


def show_pictures(
    slot: CardSlot, entry: ModelEntry, seen: ContactSheet | str, repeated: bool
) -> None:
    """The model's pictures; `seen` is an error message if there are none.

    Notes and errors are left out if they are `repeated` elsewhere on the card.
    """
    with slot.pictures.container():
        if isinstance(seen, str):
            notices.small("No pictures to show.", f"seen_{entry.name}")
            notes: tuple[str, ...] = (seen,)
        else:
            st.image(seen.picture, width="stretch", alt=seen.alt)
            notices.small(seen.caption, f"seen_{entry.name}")
            notes = seen.notes
        for number, note in enumerate(() if repeated else notes):
            notices.notice(note, f"seen_{entry.name}_{number}")


def idle(slot: CardSlot, entry: ModelEntry, reason: str | None) -> None:
    """A card before any run; `reason` says why the model cannot run."""
    slot.status.caption("Cannot run" if reason else "Not run yet")
    with slot.answer.container():
        if reason:
            notices.notice(reason, f"idle_{entry.name}")
        else:
            st.caption("Press Run (Ctrl+Enter): the answer appears here.")


def draw(slot: CardSlot, view: RunView) -> None:
    """The current state of the job.

    At most once per script run for an ended run: its elements have keys, which must be unique.
    """
    queue_time = f"Waited {ms(view.queued_ms)} in the queue." if view.result else None
    slot.status.caption(status(view), help=queue_time)
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
    """The job's state, in a few words, with the number of the repeat."""
    repeat = f"Run {view.repeat} of {view.repeats} · " if view.repeats > 1 else ""
    return repeat + _state(view)


def _state(view: RunView) -> str:
    if view.stopping:
        return STOPPING.get(view.stage or view.state, "Cancelling …")
    if view.state == "queued":
        return queued(view.position, "run")
    if view.state == "loading":
        return "Loading the model …"
    if view.state == "running":
        return _progress(view)
    return {"done": "Done", "failed": "Failed", "cancelled": "Cancelled"}[view.state]


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
    with st.container(horizontal=True, gap="small"):
        for words, colour, help_text in badges(result):
            st.badge(words, color=colour, help=help_text)
    with st.container(horizontal=True, gap="small"):
        for name, value in figures(result).items():
            st.metric(name, value, help=FORMULAS[name], width="content")
    notes = (STOPS[result.generation.stop], prefix_words(result.prefix), *result.notes)
    for number, note in enumerate(notes):
        if note:
            notices.small(note, f"note_{result.model.name}_{number}")


def prefix_words(use: PrefixUse | None) -> str:
    """How the prompt prefix was used, in a sentence."""
    if use is None:
        return ""
    how = "are kept for another question" if use.state == "kept" else "were reused from memory"
    return f"The first {use.tokens:,} tokens of the prompt {how}."


def figures(result: RunResult) -> dict[str, str]:
    """The headline numbers with their units, in a fixed order."""
    return {
        "New tokens": f"{result.new_tokens:,}",
        "Context": f"{result.generation.prompt_tokens:,}",
        "TTFT": ms(result.ttft_ms),
        "TPOT": ms(result.tpot_ms),
        "tok/s": rate(result.tokens_per_s).removesuffix(" tok/s"),
    }


def certificate_badge(standing: Standing, command: str = "") -> tuple[str, Colour, str]:
    """A badge with the certificate's hash, what it does not cover, or "unverified"; `command`
    would verify the result with its own settings."""
    if standing.state == "verified":
        return standing.words, "green", VERIFIED_HELP
    if standing.state == "not covered":
        name = standing.certificate[: certificates.SHOWN]
        closest = f" The closest certificate is {name}." if name else ""
        return standing.words, "orange", NOT_COVERED_HELP + closest
    how = f" To verify this result's own settings, in a terminal: `{command}`" if command else ""
    return standing.words, "gray", UNVERIFIED_HELP + how


def busy(load: MachineLoad) -> str:
    """The explanation of the badge "busy machine", with figures."""
    return BUSY_HELP.format(load_words(load))


def _reused(result: RunResult) -> tuple[str, Colour, str] | None:
    """A badge for a reused prompt prefix, with the time of the remaining prefill."""
    prefill, use = result.span("decode.prefill"), result.prefix
    if use is None or use.state != "reused" or prefill is None:
        return None
    return f"prefix reused: prefill {ms(prefill.ms)}", "green", PREFIX_HELP


def badges(result: RunResult) -> list[tuple[str, Colour, str]]:
    """(words, colour, explanation) of all that affects how far the times can be trusted."""
    request = result.request
    command = certificates.command(request.model, result.backend, request.pixels)
    found = [certificate_badge(certificates.certificate_status(result), command)]
    if (reused := _reused(result)) is not None:
        found.append(reused)
    for span in result.spans:
        if span.source == "cached" and reused is None:
            words = f"{span.name} from cache: {ms(span.ms)}, computed in {ms(span.original_ms)}"
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
