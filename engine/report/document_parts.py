"""The parts of a document, before they are Markdown or HTML.

Boundary: frozen blocks; no content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.report.replay import ReplayLane

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Bullets:
    items: tuple[str, ...]


@dataclass(frozen=True)
class Contents:
    """Links to the headings with these texts."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class ReportTable:
    """Cells are text.  The first `words` columns are aligned left, the others right.  caption:
    "" for none."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1


@dataclass(frozen=True)
class ChartBlock:
    """A chart, drawn only in documents that show charts, and its text.

    It is drawn by Altair, or is trusted HTML without scripts and requests.
    """

    words: str
    draw: Callable[[], alt.Chart | alt.LayerChart | str]


@dataclass(frozen=True)
class ReplayBlock:
    """Runs that an HTML document can play, at most once per document, and their text."""

    words: str
    lanes: tuple[ReplayLane, ...]


Block = Heading | Paragraph | Bullets | Contents | ReportTable | ChartBlock | ReplayBlock


def anchor(name: str) -> str:
    """The address of a heading within its document, as GitHub makes it."""
    kept = (c for c in name.lower() if c.isalnum() or c in " -_")
    return "".join(kept).replace(" ", "-")
