"""A report of imported result files for a stranger: what was claimed, what the files show, what
cannot be known.

Boundary: from ResultFiles and findings to Markdown or one HTML page of its own; every text of a
file is shown as text.  Writes nothing.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from engine.acceptance import Acceptance, Range
from engine.audit import Finding, audit
from engine.headlines import Headline, Waterfall, headlines, waterfall
from engine.records import comparing, summary
from engine.records.types import ResultFile, milliseconds

Kind = Literal["h1", "h2", "h3", "p", "list", "table"]
TITLE = "What published result files show"
UNKNOWABLE = (
    "Which checkpoint answered, where a file names none and records neither weights, context nor "
    "prompt: such names stand as claimed.",
    "How many event images EventGPT saw, where no context is recorded.",
    "Whether decoupled answers equal generate()'s: no file holds both for one input.",
    "Whether outputs were sampled and from which seed: no file of these groups records it.",
    "How long answers would have been where a limit cut them, and so their natural times.",
    "The stages of a model whose vision tower ran inside generate(): they were not timed apart.",
    "What a draft of several cycles would bring: finished answers show the first cycle alone.",
)


@dataclass(frozen=True)
class Block:
    """A heading, a paragraph, a list (one cell per item) or a table (its first row is the head)."""

    kind: Kind
    rows: tuple[tuple[str, ...], ...]


def markdown(files: Sequence[ResultFile]) -> str:
    """The report as GitHub's Markdown."""
    return "\n".join(_markdown(block) for block in blocks(files)) + "\n"


def page(files: Sequence[ResultFile]) -> str:
    """The report as one HTML page that loads nothing from anywhere."""
    body = "\n".join(_html(block) for block in blocks(files))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{TITLE}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n"
        "</html>\n"
    )


_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;margin:1rem 0;display:block;overflow-x:auto}"
    "th,td{border:1px solid #8888;padding:.25rem .6rem;text-align:left;vertical-align:top}"
    "h2{margin-top:2.5rem}h3{margin-top:2rem;overflow-wrap:anywhere}"
)


def blocks(files: Sequence[ResultFile]) -> list[Block]:
    """The report's parts in their order."""
    audited = [(file, audit(file)) for file in files]
    used = [(file, found) for file, found in audited if file.status == "ok"]
    return [
        Block("h1", ((TITLE,),)),
        _paragraph(_opening(audited)),
        Block("h2", (("What was claimed",),)),
        *_claims(headlines([file for file, _ in used])),
        Block("h2", (("What the files show",),)),
        *_overview(audited),
        *_falls([file for file, _ in used]),
        *_acceptances([file for file, _ in used]),
        Block("h2", (("What cannot be known",),)),
        Block("list", tuple((sentence,) for sentence in UNKNOWABLE)),
        Block("h2", (("File by file",),)),
        *(block for file, found in audited for block in _file(file, found)),
    ]


def _paragraph(text: str) -> Block:
    return Block("p", ((text,),))


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[Block]:
    return [Block("table", (head, *rows))] if rows else []


def _opening(audited: Sequence[tuple[ResultFile, tuple[Finding, ...]]]) -> str:
    counts = {status: sum(f.status == status for f, _ in audited)
              for status in ("ok", "failed", "unknown")}  # fmt: skip
    errors = sum(finding.severity == "error" for _, found in audited for finding in found)
    return (
        f"{len(audited)} files: {counts['ok']} with results, {counts['failed']} of runs that "
        f"failed altogether, {counts['unknown']} of another kind. The rules found {errors} false "
        "figures or labels in them. Each table says whether its values are as recorded or "
        "corrected; times are milliseconds."
    )


def _claims(found: Sequence[Headline]) -> list[Block]:
    made: list[Block] = []
    for headline in found:
        made.append(Block("h3", ((headline.claim,),)))
        made.append(_paragraph(headline.verdict))
        rows = [
            (
                one.file,
                one.other,
                str(one.samples or "means"),
                _times(one.recorded),
                _times(one.corrected),
                _span(one.paired.median, one.paired.low, one.paired.high) if one.paired else "-",
                "; ".join(one.notes) or "-",
            )
            for one in headline.evidence
        ]
        head = ("file", "against", "n", "recorded", "corrected", "median per sample (95 %)",
                "to know")  # fmt: skip
        made += _table(head, rows)
    return made


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def _span(value: float, low: float, high: float) -> str:
    return f"{value:.2f}x ({low:.2f} to {high:.2f})"


def _overview(audited: Sequence[tuple[ResultFile, tuple[Finding, ...]]]) -> list[Block]:
    rows = [
        (
            file.name,
            str(file.group),
            str(file.samples),
            str(len(file.failures)),
            " / ".join(str(sum(one.severity == level for one in found))
                       for level in ("error", "warning", "note")),
        )
        for file, found in audited
    ]  # fmt: skip
    return _table(("file", "group", "n", "failed", "errors / warnings / notes"), rows)


def _falls(files: Sequence[ResultFile]) -> list[Block]:
    falls = [fall for file in files if (fall := waterfall(file))]
    if not falls:
        return []
    rows = [(f.file, f"{f.slow} {f.slow_ms:,.0f}", f"{f.fast} {f.fast_ms:,.0f}", _parts(f))
            for f in falls]  # fmt: skip
    return [
        Block("h3", (("What a difference is made of",),)),
        _paragraph(
            "Milliseconds that EventGPT saves per sample in each part (negative: loses), corrected "
            "values. Answers of different length are not equal work: fewer tokens is what it does "
            "not say, time per token what it says faster."
        ),
        *_table(("file", "from", "to", "parts"), rows),
    ]


def _parts(fall: Waterfall) -> str:
    return ", ".join(f"{part.name} {part.ms:+,.0f}" for part in fall.parts)


def _acceptances(files: Sequence[ResultFile]) -> list[Block]:
    rows = []
    for file in files:
        told = {one.ours: one for one in comparing.stated(file)}
        for name, found in comparing.variants(file).items():
            mine = told.get(found.rate.value if found.rate else None)
            shown = "" if name == "main" else f" ({name.replace('_', ' ')})"
            rows.append((f"{file.name}{shown}", *_acceptance(found, mine.stated if mine else None)))
    if not rows:
        return []
    head = ("file", "pairs", "stated", "position match", "shuffled (95 %)", "mean prefix",
            f"W{found.gamma}", "cost ratio", "ceiling", "predicted speed-up (95 %)")  # fmt: skip
    return [
        Block("h3", (("Would EventGPT's answers do as drafts?",),)),
        _paragraph(
            "Position match is the share of ids that agree in their places; shuffled is the same "
            "share for drafts of other samples: what is not above it says nothing about the image. "
            "W is the share of the first drafted ids that would be accepted; the cost ratio is per "
            "token; the ceiling is the speed-up if all were accepted. Under 1x is slower."
        ),
        *_table(head, rows),
    ]


def _acceptance(found: Acceptance, stated: float | None) -> tuple[str, ...]:
    return (
        str(found.pairs),
        "-" if stated is None else f"{stated:.1%}",
        f"{found.rate.value:.1%}" if found.rate else "-",
        _percent(found.shuffled),
        f"{found.mean_prefix:.2f}",
        f"{found.first_window:.3f}",
        "-" if found.cost_ratio is None else f"{found.cost_ratio:.3f}",
        _times(found.ceiling),
        _span(found.speedup.value, found.speedup.low, found.speedup.high) if found.speedup else "-",
    )


def _percent(found: Range | None) -> str:
    return f"{found.value:.1%} ({found.low:.1%} to {found.high:.1%})" if found else "-"


def _file(file: ResultFile, findings: Sequence[Finding]) -> list[Block]:
    made = [Block("h3", ((file.name,),))]
    if file.status != "ok":
        made.append(_paragraph(file.message))
    if file.status == "unknown":
        return made
    made.append(
        _paragraph(f"Group {file.group}; {file.samples} samples, {len(file.failures)} failed.")
    )
    rows = []
    for model in summary.models(file):
        made.append(_paragraph(f"{model.model}: claimed {model.claimed}; {model.evidence}."))
        rows += _model(model)
    head = ("model", "what", "n", "mean", "median", "mean without the first", "corrected mean")
    made += _table(head, rows)
    if findings:
        made.append(Block("list", tuple((_finding(one),) for one in findings)))
    return made


def _model(model: summary.ModelSummary) -> list[tuple[str, ...]]:
    rows = []
    for key, stage in model.stages.items():
        values = [stage.recorded.mean, stage.recorded.median, stage.recorded.mean_without_first]
        after = stage.corrected.mean if stage.corrected else None
        cells = [_ms(key, value) for value in values]
        corrected = "not measured" if stage.corrected is None else _ms(key, after)
        what = f"{key} ({stage.part}), ms" if stage.part else f"{key}, ms"
        rows.append((model.model, what, str(stage.recorded.n), *cells, corrected))
    told, mended = model.tokens_recorded, model.tokens_corrected
    if told.n:
        cells = [_number(one) for one in (told.mean, told.median, told.mean_without_first)]
        rows.append((model.model, "tokens", str(told.n), *cells, _number(mended.mean)))
    return rows


def _ms(key: str, value: float | None) -> str:
    return "-" if value is None else _number(milliseconds(key, value))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def _finding(found: Finding) -> str:
    mended = f" Correction: {found.correction}" if found.correction else ""
    return f"{found.severity}: {found.message}{mended}"


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
