"""Draws blocks for a terminal, as Markdown and as HTML, and values as JSON.  Markdown and HTML
escape every text: an answer cannot become markup, a link or a script."""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from hashlib import sha256
from textwrap import indent

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from engine.report.blocks import Block, Bullets, ChartBlock, Contents, Heading, Paragraph, Table

_MARKUP = str.maketrans(
    {"<": "&lt;", ">": "&gt;", "&": "&amp;"} | {sign: f"\\{sign}" for sign in "\\`*_{}[]#|~!$"}
)


def terminal(blocks: Iterable[Block]) -> str:
    """Text for a terminal: what follows a heading of level 3 or 4 is indented below it."""
    text, depth = "", 0
    for block in blocks:
        if isinstance(block, Heading):
            depth = max(0, block.level - 3)
        gap = "\n" if depth and text else "\n\n" if text else ""
        text += gap + indent(_plain(block), "  " * depth)
        if isinstance(block, Heading):
            depth = max(0, block.level - 2)
    return text


def _plain(block: Block) -> str:
    if isinstance(block, Bullets):
        items = "\n".join(block.items)
        return f"{block.title}\n{indent(items, '  ')}" if block.title else items
    if isinstance(block, Contents):
        return "\n".join(block.names)
    if isinstance(block, Table):
        lines = [block.columns, *block.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        aligned = (
            "  ".join(
                cell.ljust(width) if place < block.words else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )
        return "\n".join(filter(None, (block.caption, *aligned)))
    return block.words if isinstance(block, ChartBlock) else block.text


def markdown(blocks: Iterable[Block]) -> str:
    """GitHub's Markdown, with charts in words."""
    return "\n\n".join(map(_marked, blocks)) + "\n"


def _marked(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {escape(block.text)}"
    if isinstance(block, Bullets):
        items = "\n".join(f"- {_line(item)}" for item in block.items)
        return f"{_line(block.title)}\n\n{items}" if block.title else items
    if isinstance(block, Contents):
        return "\n".join(f"- [{escape(one)}](#{anchor(one)})" for one in block.names)
    if isinstance(block, Table):
        rule = [":--" if place < block.words else "--:" for place in range(len(block.columns))]
        lines = (_row(map(escape, block.columns)), _row(rule),
                 *(_row(map(escape, row)) for row in block.rows))  # fmt: skip
        return (f"{_line(block.caption)}\n\n" if block.caption else "") + "\n".join(lines)
    return _line(block.words if isinstance(block, ChartBlock) else block.text)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape(text: str) -> str:
    """Text for Markdown, on one line."""
    return printable(text).translate(_MARKUP).replace("://", ":\\//")


def _line(text: str) -> str:
    """The same for the start of a line, where text could become a list or a heading."""
    return re.sub(r"^(\d*)([-+=.)])", r"\1\\\2", escape(text.strip()))


def printable(text: str) -> str:
    """Text without control characters and line ends."""
    return "".join(c if c.isprintable() else " " for c in text)


def anchor(name: str) -> str:
    """The address of a heading within its document, as GitHub makes it."""
    kept = (c for c in name.lower() if c.isalnum() or c in " -_")
    return "".join(kept).replace(" ", "-")


def html(
    title: str,
    blocks: Sequence[Block],
    samples: int = 0,
    script: str = "",
    scheme: str = "light dark",
) -> str:
    """One file with its charts inside; its policy forbids scripts and requests.  `samples`: how
    many a bundle shows above the contents; only its own files may run then, or in a bundle of one
    file this `script`.  `scheme`: light, dark, or both as the browser prefers."""
    page = _templates().get_template("document.html.jinja")
    drawn = _pictures(blocks)
    digest = b64encode(sha256(script.encode()).digest()).decode() if script else ""
    more = {"samples": samples, "script": Markup(script), "digest": digest, "scheme": scheme}
    return page.render(title=title, blocks=drawn, **more) + "\n"


def fragment(blocks: Sequence[Block]) -> str:
    """The blocks within another page, such as a notebook: in its colours, without scripts."""
    return _templates().get_template("fragment.html.jinja").render(blocks=_pictures(blocks))


def _pictures(blocks: Sequence[Block]) -> list[Block]:
    """The blocks with charts as markup: SVG is Markup, other trusted HTML a plain text.  A chart
    that cannot be drawn is left out for its words."""
    from engine.report.charts import svgs

    made = [block.draw() if isinstance(block, ChartBlock) else "" for block in blocks]
    drawn = iter(svgs([chart for chart in made if not isinstance(chart, str)]))
    found = list[Block]()
    for block, chart in zip(blocks, made, strict=True):
        if isinstance(block, ChartBlock):
            # S704: own markup; a chart's texts are escaped where it is made.
            markup = chart if isinstance(chart, str) else Markup(next(drawn))
            again = ChartBlock(block.words, partial(type(markup), markup))
            block = again if markup else Paragraph(block.words)
        found.append(block)
    return found


def table_html(table: Table) -> str:
    macro: Callable[[Table], Markup]
    macro = vars(_templates().get_template("blocks.html.jinja").module)["table"]
    return str(macro(table))


@cache
def _templates() -> Environment:
    found = Environment(
        autoescape=True,
        loader=PackageLoader("engine.report", "."),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else printable(str(value)),
    )
    found.globals.update(kind=lambda block: type(block).__name__, anchor=anchor)
    return found


def as_json(value: object) -> str:
    """Dataclasses, structs and mappings as an indented document; ValueError for NaN."""
    return json.dumps(msgspec.to_builtins(value, str_keys=True), indent=1, allow_nan=False)
