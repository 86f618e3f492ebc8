"""Rows of facts and bars of memory as HTML; all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from engine.machine.memory import gib

FREE = "free"


class BarPart(NamedTuple):
    """A part of a bar: name, bytes, and colour (None for the free part)."""

    name: str
    size: int
    colour: str | None


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
