"""Parts of a report on the page: tables, sentences, lists.

Boundary: the engine's blocks in, Streamlit elements out.  Table cells are escaped and sentences go
through st.text, so text of models and files stays plain text.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import streamlit as st

from engine.report.document_parts import Block, Bullets, ChartBlock, Heading, Paragraph, ReportTable
from ui.widgets import notices
from ui.widgets.text import escape as literal


def draw(blocks: Iterable[Block], key: str) -> None:
    """Draws the blocks in order, except pictures: the page has interactive charts instead."""
    for number, block in enumerate(blocks):
        if isinstance(block, ReportTable):
            st.html(table(block))
        elif isinstance(block, Heading):
            st.subheader(literal(block.text), anchor=False)
        elif isinstance(block, Bullets):
            notices.small("\n".join(f"• {item}" for item in block.items), f"{key}_{number}")
        elif isinstance(block, Paragraph):
            notices.small(block.text, f"{key}_{number}")
        else:
            assert isinstance(block, ChartBlock)


def table(block: ReportTable) -> str:
    """The table as HTML, with figures right-aligned."""
    head = _row("th", block.columns, block.words, ' scope="col"')
    rows = "".join(_row("td", row, block.words) for row in block.rows)
    return (
        f'<div class="figures-wide"><table class="figures"><caption>{escape(block.caption)}'
        f"</caption><thead>{head}</thead><tbody>{rows}</tbody></table></div>"
    )


def _row(tag: str, cells: Iterable[str], words: int, more: str = "") -> str:
    marked = (
        f'<{tag}{more} class="{"figures-word" if place < words else "figures-number"}">'
        f"{escape(cell)}</{tag}>"
        for place, cell in enumerate(cells)
    )
    return f"<tr>{''.join(marked)}</tr>"
