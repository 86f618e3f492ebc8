"""The memory of each device: a bar of what is used, and the sizes of its models.

The bars refresh themselves, and redraw the whole page when any visitor loaded or unloaded a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape as escape_html

import streamlit as st

from engine.machine import device
from engine.machine.device import Memory
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.quoting import gib
from ui.models import model_actions
from ui.widgets.text import escape

IDLE_S = 3.0  # each refresh uses the CPU that may be timed
LIVE_S = 1.0
OTHER_USE = "other use"


def show(entries: Sequence[ModelEntry]) -> None:
    drawn = snapshot()

    @st.fragment(run_every=LIVE_S if drawn[1] else IDLE_S)
    def look() -> None:
        if snapshot() != drawn:
            st.rerun()
        held = registry.resident_bytes()
        places = {entry: registry.card(entry).device for entry in held}
        for memory in device.memories():
            here = {entry: size for entry, size in held.items() if _is_on(memory, places[entry])}
            free = f"{gib(memory.free)} free of {gib(memory.total)}"
            words = escape(f"{memory.device}: {memory.label}, {free}")
            st.progress(1 - memory.free / memory.total, text=words)
            st.html(facts(sizes(memory, here, entries), memory.device))

    look()


def snapshot() -> tuple[frozenset[ModelEntry], frozenset[str]]:
    """The models in memory and the live jobs, on which the rest of the page depends."""
    return frozenset(registry.resident()), frozenset(job.id for job in model_actions.JOBS.live())


def sizes(
    memory: Memory, held: Mapping[ModelEntry, int], entries: Sequence[ModelEntry]
) -> list[tuple[str, str]]:
    """Models in the order of models.toml (then those no longer in it), and other use."""
    order = [entry for entry in entries if entry in held]
    order += [entry for entry in held if entry not in order]
    rest = max(0, memory.total - memory.free - sum(held.values()))
    return [*((entry.label, gib(held[entry])) for entry in order), (OTHER_USE, gib(rest))]


def _is_on(memory: Memory, place: str) -> bool:
    """Whether a model on device `place` ("cpu", "cuda", "cuda:1", "mps") uses this memory."""
    if place.startswith("cuda"):
        return memory.device == (place if ":" in place else f"{place}:0")
    return memory.device == "cpu"  # other accelerators share the system's memory


def facts(rows: Iterable[tuple[str, str]], about: str) -> str:
    """Names and values, one pair per line; `about` is the label for screen readers."""
    inside = "".join(  # a path may break after each slash
        f"<dt>{escape_html(name)}</dt><dd>{escape_html(value).replace('/', '/<wbr>')}</dd>"
        for name, value in rows
    )
    return f'<dl class="model-facts" aria-label="{escape_html(about)}">{inside}</dl>'
