"""The memory of each device as a bar of HTML: models, other use, free.

The bars refresh themselves, and redraw the whole page when any visitor loaded or unloaded a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

import streamlit as st

from engine.machine import device
from engine.machine.device import Memory
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.palette import NEUTRAL, family_colour, tones
from engine.quoting import gib
from ui.models import model_actions

IDLE_S = 3.0  # each refresh uses the CPU that may be timed
LIVE_S = 1.0
OTHER_USE = "other use"
FREE = "free"
Snapshot = tuple[frozenset[ModelEntry], frozenset[str]]


class BarPart(NamedTuple):
    """A part of a bar: name, bytes, and colour (None for the free part)."""

    name: str
    size: int
    colour: str | None


def show(entries: Sequence[ModelEntry]) -> None:
    now = snapshot()
    st.fragment(_show, run_every=LIVE_S if now[1] else IDLE_S)(entries, now)


def snapshot() -> Snapshot:
    """The models in memory and the live jobs, on which the rest of the page depends."""
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


def parts(
    memory: Memory, held: Mapping[ModelEntry, int], entries: Sequence[ModelEntry]
) -> list[BarPart]:
    """Models in the order of models.toml (then those no longer in it), other use, free."""
    order = [entry for entry in entries if entry in held]
    order += [entry for entry in held if entry not in order]
    colours = map(family_colour, tones([entry.family for entry in order]))
    models = [BarPart(entry.label, held[entry], next(colours)) for entry in order]
    rest = max(0, memory.total - memory.free - sum(held.values()))
    return [*models, BarPart(OTHER_USE, rest, NEUTRAL), BarPart(FREE, memory.free, None)]


def _is_on(memory: Memory, place: str) -> bool:
    """Whether a model on device `place` ("cpu", "cuda", "cuda:1", "mps") uses this memory."""
    if place.startswith("cuda"):
        return memory.device == (place if ":" in place else f"{place}:0")
    return memory.device == "cpu"  # other accelerators share the system's memory


def facts(rows: Iterable[tuple[str, str]], about: str) -> str:
    """Names and values, one pair per line; `about` is the label for screen readers."""
    inside = "".join(  # a path may break after each slash
        f"<dt>{escape(name)}</dt><dd>{escape(value).replace('/', '/<wbr>')}</dd>"
        for name, value in rows
    )
    return f'<dl class="model-facts" aria-label="{escape(about)}">{inside}</dl>'


def bar(about: str, parts: Sequence[BarPart]) -> str:
    """A bar of all parts to scale, with a legend below."""
    whole = sum(part.size for part in parts) or 1
    pieces = keys = ""
    for name, size, colour in parts:
        fill = f"background: {colour}" if colour else ""
        if fill and size:
            pieces += (
                f'<span style="width: {100 * size / whole:.3f}%; {fill}" '
                f'title="{escape(name)}: {gib(size)}"></span>'
            )
        keys += (
            f'<span class="model-key"><span class="model-dot" aria-hidden="true" style="{fill}">'
            f"</span>{escape(name)} <b>{gib(size)}</b></span>"
        )
    label = escape(f"{about}: {', '.join(f'{part.name} {gib(part.size)}' for part in parts)}")
    return (
        f'<div class="model-bar" role="img" aria-label="{label}">{pieces}</div>'
        f'<div class="model-keys">{keys}</div>'
    )
