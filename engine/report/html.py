"""A document as one self-contained HTML file: charts as SVG, no script, no requests.

Boundary: blocks in, text out.  Every text is escaped, and the file's policy forbids scripts and
requests, so that a model's answer cannot run code in the browser.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape as escape_markup

from engine.report import replay
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
from engine.report.markdown import printable
from engine.report.svg_charts import svg
from engine.viewing import seen_markup

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5b6472; --line: #d6dae0;
  --ground: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ec; --soft: #a3acb9; --line: #3a4250; --ground: #12161d; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground);
  max-width: 76rem; margin: 2rem auto; padding: 0 1.5rem; }
a { color: inherit; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.4rem; } h3 { font-size: 1rem; }
p, li { max-width: 60rem; overflow-wrap: anywhere; }
figure { margin: 1.2rem 0; color: var(--ink); overflow-x: auto; }
figcaption, caption { color: var(--soft); font-size: .87rem; text-align: left; padding: .3rem 0; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--line); text-align: right;
  vertical-align: top; }
th.w, td.w { text-align: left; overflow-wrap: anywhere; min-width: 4rem; }
th { color: var(--soft); font-weight: 600; }
@media print {
  :root { --ink: #000; --soft: #444; --line: #bbb; --ground: #fff; }
  body { max-width: none; margin: 0; padding: 0; font-size: 10pt; }
  figure, tr { break-inside: avoid; } h2, h3, caption { break-after: avoid; }
  nav { break-after: page; } .wide, figure { overflow: visible; } }
"""


def render(title: str, blocks: Iterable[Block]) -> str:
    """The whole file."""
    body = "\n".join(_block(block) for block in blocks)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{seen_markup.STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def escape(text: str) -> str:
    """Text without markup and without control characters."""
    return escape_markup(printable(text))


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        return f'<h{block.level} id="{anchor(block.text)}">{escape(block.text)}</h{block.level}>'
    if isinstance(block, Paragraph):
        return f"<p>{escape(block.text)}</p>"
    if isinstance(block, Bullets):
        items = "".join(f"<li>{escape(item)}</li>" for item in block.items)
        return f"<ul>{items}</ul>"
    if isinstance(block, Contents):
        links = (f'<li><a href="#{anchor(one)}">{escape(one)}</a></li>' for one in block.names)
        return f'<nav aria-label="Contents"><h2>Contents</h2><ul>{"".join(links)}</ul></nav>'
    if isinstance(block, ChartBlock):
        return _figure(block)
    if isinstance(block, ReplayBlock):
        return replay.section(block.lanes)
    return _table(block)


def _figure(block: ChartBlock) -> str:
    """A chart with its words below; HTML has a name of its own, and parts that can be focused."""
    words, drawn = escape(block.words), block.draw()
    if isinstance(drawn, str):
        return f"<figure>{drawn}<figcaption>{words}</figcaption></figure>"
    name = f'role="img" aria-label="{words}"'
    return f"<figure {name}>{svg(drawn)}<figcaption>{words}</figcaption></figure>"


def _table(table: ReportTable) -> str:
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    head = _row("th", table.columns, table.words)
    rows = "\n".join(_row("td", row, table.words) for row in table.rows)
    return (
        f'<div class="wide"><table>{caption}\n'
        f"<thead>{head}</thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )


def _row(tag: str, cells: Iterable[str], words: int) -> str:
    marked = (
        f"<{tag}{' class=w' if place < words else ''}>{escape(cell)}</{tag}>"
        for place, cell in enumerate(cells)
    )
    return f"<tr>{''.join(marked)}</tr>"
