"""Headings, sentences and tables as GitHub's Markdown, or as one HTML page of its own.

Boundary: blocks in, text out; every text of a file is shown as text.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["h1", "h2", "h3", "p", "list", "table"]


@dataclass(frozen=True)
class Block:
    """A heading, a paragraph, a list (one cell per item) or a table (its first row is the head)."""

    kind: Kind
    rows: tuple[tuple[str, ...], ...]


def markdown(blocks: Sequence[Block]) -> str:
    return "\n".join(_markdown(block) for block in blocks) + "\n"


def page(blocks: Sequence[Block], title: str) -> str:
    """One page that loads nothing from anywhere.  title: our own words, not a file's."""
    body = "\n".join(_html(block) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n"
        "</html>\n"
    )


_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;margin:1rem 0;display:block;overflow-x:auto}"
    "th,td{border:1px solid #8888;padding:.25rem .6rem;text-align:left;vertical-align:top}"
    "h2{margin-top:2.5rem}h3{margin-top:2rem;overflow-wrap:anywhere}"
)


def _markdown(block: Block) -> str:
    if block.kind == "table":
        lines = ["| " + " | ".join(_escape(cell) for cell in row) + " |" for row in block.rows]
        return "\n".join(["", lines[0], "|" + " --- |" * len(block.rows[0]), *lines[1:], ""])
    text = [_escape(row[0]) for row in block.rows]
    if block.kind == "list":
        return "\n".join(["", *(f"- {one}" for one in text), ""])
    marks = {"h1": "# ", "h2": "\n## ", "h3": "\n### ", "p": "\n"}
    return marks[block.kind] + text[0]


_SIGNS = str.maketrans(
    {"<": "&lt;", ">": "&gt;", "&": "&amp;", **{sign: f"\\{sign}" for sign in "\\`*_[]|#~"}}
)


def _escape(text: str) -> str:
    """Text of a file stays text: no markup, no table's end, no line of its own."""
    return _plain(text).translate(_SIGNS)


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _html(block: Block) -> str:
    if block.kind == "table":
        head, *body = block.rows
        rows = [_cells(head, "th"), *(_cells(row, "td") for row in body)]
        return "<table>\n" + "\n".join(rows) + "\n</table>"
    if block.kind == "list":
        items = "\n".join(f"<li>{html.escape(_plain(row[0]))}</li>" for row in block.rows)
        return f"<ul>\n{items}\n</ul>"
    return f"<{block.kind}>{html.escape(_plain(block.rows[0][0]))}</{block.kind}>"


def _cells(row: Sequence[str], tag: str) -> str:
    scope = ' scope="col"' if tag == "th" else ""
    cells = "".join(f"<{tag}{scope}>{html.escape(_plain(cell))}</{tag}>" for cell in row)
    return f"<tr>{cells}</tr>"
