"""What a document is made of, before it is Markdown or HTML, and how figures are written.

Boundary: frozen blocks and formatting; no content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Bullets:
    items: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Cells are text; all columns but the first `words` are figures, set to the right."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1


@dataclass(frozen=True)
class Picture:
    """A chart, drawn only where the document shows it, and its content in words."""

    words: str
    draw: Callable[[], alt.Chart | alt.LayerChart]


_PLACES = ((100, 0), (10, 1), (1, 2))  # from this size on, so many decimals
Block = Heading | Text | Bullets | Table | Picture


def number(value: float | None) -> str:
    """Three significant figures, thousands apart; "-" for none."""
    if value is None or value != value:
        return "-"
    if value == 0:
        return "0"
    places = next((places for least, places in _PLACES if abs(value) >= least), 3)
    return f"{value:,.{places}f}"


def size(count: int) -> str:
    """Bytes in the unit a person would choose."""
    for unit, step in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= step:
            return f"{count / step:.1f} {unit}"
    return f"{count} B"
