"""Fact rows and memory bars as HTML.

Boundary: plain text in, HTML out; no streamlit.  All text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from engine.machine.memory import gib

FREE = "free"


@dataclass(frozen=True)
class BarPart:
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
    return f'<dl class="model-facts" aria-label="{escape(about, quote=True)}">{inside}</dl>'


def bar(name: str, parts: Sequence[BarPart]) -> str:
    """A bar of all parts to scale, with a legend below."""
    whole = sum(part.size for part in parts) or 1
    pieces = "".join(_piece(part, whole) for part in parts if part.colour and part.size)
    label = escape(f"{name}: {words(parts)}", quote=True)
    keys = "".join(_key(part) for part in parts)
    return (
        f'<div class="model-bar" role="img" aria-label="{label}">{pieces}</div>'
        f'<div class="model-keys">{keys}</div>'
    )


def words(parts: Sequence[BarPart]) -> str:
    """The bar as text, for screen readers."""
    return ", ".join(f"{part.name} {gib(part.size)}" for part in parts)


def _piece(part: BarPart, whole: int) -> str:
    style = f"width: {100 * part.size / whole:.3f}%; background: {part.colour}"
    title = escape(f"{part.name}: {gib(part.size)}", quote=True)
    return f'<span style="{style}" title="{title}"></span>'


def _key(part: BarPart) -> str:
    style = f' style="background: {part.colour}"' if part.colour else ""
    return (
        f'<span class="model-key"><span class="model-dot" aria-hidden="true"{style}></span>'
        f"{escape(part.name)} <b>{gib(part.size)}</b></span>"
    )
