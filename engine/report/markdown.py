"""A document as Markdown, with charts in words.

Boundary: blocks in, text out.  Every text is escaped: an answer cannot become markup or a link.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine.report.document_parts import (
    Block,
    Bullets,
    ChartBlock,
    Contents,
    Heading,
    Paragraph,
    ReplayBlock,
    ReportTable,
    anchor,
)

_MARKUP = str.maketrans(
    {"<": "&lt;", ">": "&gt;", "&": "&amp;"} | {sign: f"\\{sign}" for sign in "\\`*_{}[]#|~!$"}
)


def render(blocks: Iterable[Block]) -> str:
    return "\n\n".join(_block(block) for block in blocks) + "\n"


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {escape(block.text)}"
    if isinstance(block, Paragraph):
        return _line(block.text)
    if isinstance(block, Bullets):
        return "\n".join(f"- {_line(item)}" for item in block.items)
    if isinstance(block, Contents):
        return "\n".join(f"- [{escape(one)}](#{anchor(one)})" for one in block.names)
    if isinstance(block, ChartBlock | ReplayBlock):
        return _line(block.words)
    return _table(block)


def _table(table: ReportTable) -> str:
    rule = [":--" if place < table.words else "--:" for place in range(len(table.columns))]
    lines = [_row(map(escape, table.columns)), _row(rule)]
    lines += [_row(map(escape, row)) for row in table.rows]
    caption = f"{_line(table.caption)}\n\n" if table.caption else ""
    return caption + "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape(text: str) -> str:
    """Escaped text on one line."""
    return printable(text).translate(_MARKUP).replace("://", ":\\//")


def printable(text: str) -> str:
    """Text without control characters and line ends."""
    return "".join(c if c.isprintable() else " " for c in text)


def _line(text: str) -> str:
    """The same for the start of a line, where text could become a list or a heading."""
    return re.sub(r"^(\d*)([-+=.)])", r"\1\\\2", escape(text.strip()))
