"""What a result shows, as blocks; engine/report/drawers.py and ui/widgets/blocks.py draw them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True)
class Heading:
    """Levels 1 and 2 belong to documents; 3 and 4 to a part, which a terminal indents below."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Bullets:
    items: tuple[str, ...]
    title: str = ""  # a line above them


@dataclass(frozen=True)
class Contents:
    """Links to the headings with these texts."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Cells are text; the first `words` columns are aligned left, the others right."""

    caption: str  # "" for none
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1


@dataclass(frozen=True)
class ChartBlock:
    """A chart, drawn only where charts can be shown, and its text for everywhere else.  It is drawn
    by Altair, or is trusted HTML without scripts and requests."""

    words: str
    draw: Callable[[], alt.Chart | alt.LayerChart | str]


Block = Heading | Paragraph | Bullets | Contents | Table | ChartBlock
