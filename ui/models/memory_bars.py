"""What each device's memory holds: the models, everything else, and what is free.

Boundary: figures of the engine as bars.  The bars look again by themselves, and have the whole page
drawn again when a model has come or gone meanwhile, whoever loaded it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from engine.machine import device
from engine.machine.device import Memory
from engine.machine.memory import gib
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.pipeline import prefix_cache
from engine.pipeline.prefix_cache import Prefixes
from ui.models import model_actions
from ui.models.model_markup import FREE, BarPart, bar
from ui.widgets.text import count
from ui.widgets.theme import OTHER_FAMILY, family_colour

IDLE_S = 3.0  # each look takes a moment from what may be timed
LIVE_S = 1.0
EVERYTHING_ELSE = "everything else"
Snapshot = tuple[frozenset[ModelEntry], frozenset[str]]


def show(entries: Sequence[ModelEntry]) -> None:
    """The bars of all devices, kept up to date."""
    now = snapshot()
    st.fragment(_show, run_every=LIVE_S if now[1] else IDLE_S)(entries, now)


def snapshot() -> Snapshot:
    """The models in memory and the jobs under way: what the rest of the page was drawn from."""
    return frozenset(registry.resident()), frozenset(job.id for job in model_actions.live())


def _show(entries: Sequence[ModelEntry], drawn: Snapshot) -> None:
    if snapshot() != drawn:
        st.rerun()
    held = registry.resident_bytes()
    places = {entry: registry.card(entry).device for entry in held}
    for memory in device.memories():
        here = {entry: size for entry, size in held.items() if _is_on(memory, places[entry])}
        with st.container(key=f"memory_{memory.device.replace(':', '_')}", gap="xsmall"):
            st.caption(
                f"{memory.device}: {memory.label}, {gib(memory.free)} free of {gib(memory.total)}"
            )
            st.html(bar(memory.device, parts(memory, here, entries)))
    if words := prefix_words(prefix_cache.store()):
        st.caption(words)


def prefix_words(kept: Prefixes) -> str:
    """What prefixes take, in a sentence; nothing where there is none."""
    if not len(kept):
        return ""
    return (
        f"Of everything else, {gib(kept.bytes)} (at most {gib(kept.limit_bytes)}) are "
        f"{count(len(kept), 'prompt prefix', 'prompt prefixes')} kept for another question."
    )


def parts(
    memory: Memory, held: Mapping[ModelEntry, int], entries: Sequence[ModelEntry]
) -> list[BarPart]:
    """The models in the order of models.toml (then those no longer in it), the rest, the free."""
    order = [entry for entry in entries if entry in held]
    order += [entry for entry in held if entry not in order]
    models = [BarPart(entry.label, held[entry], family_colour(entry.family)) for entry in order]
    rest = max(0, memory.total - memory.free - sum(held.values()))
    return [*models, BarPart(EVERYTHING_ELSE, rest, OTHER_FAMILY), BarPart(FREE, memory.free, None)]


def _is_on(memory: Memory, place: str) -> bool:
    """Whether a model's device ("cpu", "cuda", "cuda:1", "mps") keeps its weights there."""
    if place.startswith("cuda"):
        return memory.device == (place if ":" in place else f"{place}:0")
    return memory.device == "cpu"  # other accelerators share the system's memory
