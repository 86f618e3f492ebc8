"""What a browser draws of a sample's answers and plays at their recorded times: bundle.js.  A
bundle has it of every sample; Compare has it of the shown runs, as a page of its own."""

import gzip
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from engine.analysis import agreement
from engine.palette import DECODE_COLOURS, SERVER_COLOURS, STAGE_COLOURS, family_colour, tones
from engine.report import answer_part, drawers
from engine.storage.result_rows import ResultRow
from engine.types import STAGES, Span

PARTS = (*(name for name in STAGES if name != "decode"), "prefill", "steps")  # decode in two
_OF_DECODE = {name: DECODE_COLOURS[f"decode.{name}"] for name in PARTS[-2:]}
COLOURS = {**STAGE_COLOURS, **SERVER_COLOURS, **_OF_DECODE}
WORDS = {"steps": "token steps", **answer_part.PART_NAMES}
NO_TEXT_TIMES = "The times of its words were not recorded: the text appears with the last token."


def page(sample: str, question: str, rows: Sequence[tuple[str, ResultRow]], scheme: str) -> str:
    """One sample as an HTML file without media; `scheme`: light or dark."""
    told = {"id": sample, "question": question, "reference": "", "media": []}
    index = {"chunk": 1, "samples": [[sample, "", question, None, 0]]}
    whole = drawers.html(f"Replay: {sample}", [], 1, script(), scheme)
    return one_file(whole, [(0, [told | {"answers": answers(rows)}]), (-1, index)])


def script() -> str:
    """What lists, searches, shows and replays samples in a browser."""
    return Path(__file__).with_name("bundle.js").read_text(encoding="utf-8")


def packed(value: object) -> str:
    """JSON as the script of samples reads it: gzip in base64, in which nothing can end a script."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def one_file(page: str, parts: Iterable[tuple[int, object]]) -> str:
    """A page with the numbered data of its script inside, as blocks that do not run."""
    blocks = (
        f'<script type="application/gzip" data-number="{number}">{packed(part)}</script>\n'
        for number, part in parts
    )
    return page.replace("</head>", f"{''.join(blocks)}</head>", 1)


def answers(rows: Sequence[tuple[str, ResultRow]]) -> list[dict[str, Any]]:
    """Each label's answer, with its differences from the first one that did not fail."""
    colours = tones([row.family or "" for _, row in rows])
    first = next((row.text or "" for _, row in rows if not row.error), "")
    found = []
    for (label, row), colour in zip(rows, map(family_colour, colours), strict=True):
        text, pieces, spans = row.text or "", _pieces(row), _spans(row)
        whole = row.batch_spans if row.batch > 1 else {**row.spans, **spans}
        notes = [row.standing.words, *(["cold run"] if row.cold else []), *row.notes]
        untimed = 0 < len(pieces[0]) < len(_times(row))
        found.append({
            "label": label,
            "colour": colour,
            "text": text,
            "error": row.error or "",
            "figures": answer_part.of_row(row),
            "stages": answer_part.stages(whole),
            "bars": [
                [WORDS.get(name, name), round(span.start_ms, 2), round(span.ms, 2), COLOURS[name]]
                for name, span in spans.items()
            ],
            "pieces": pieces,
            "total": round((row.total_ms if row.batch == 1 else row.batch_ms) or 0.0, 2),
            "notes": [*notes, *([NO_TEXT_TIMES] if untimed else [])],
            "changes": [] if row.error or text == first else agreement.difference(first, text),
        })  # fmt: skip
    return found


def _spans(row: ResultRow) -> Mapping[str, Span]:
    """The stages, with decode in its two parts if they are known, and the parts at a server."""
    spans = row.batch_spans if row.batch > 1 else row.spans
    names = PARTS if spans.get("prefill") and spans.get("steps") else STAGES
    found = {name: span for name in names if (span := spans.get(name)) is not None}
    return found | ({span.name: span for span in row.served.spans[1:]} if row.served else {})


def _times(row: ResultRow) -> Sequence[float]:
    """When its pieces of text came, since the start of the run, in ms."""
    return row.served.arrivals_ms if row.served else row.token_ms or ()


def _pieces(row: ResultRow) -> tuple[list[int], list[int]]:
    """When text came, in tenths of a millisecond, and how many letters, each since the one before;
    nothing of a failure or a sample of a batch."""
    times, length = _times(row), len(row.text or "")
    ends = (row.served or row).text_ends or ()
    if row.error or row.total_ms is None or not times:
        return [], []
    if len(ends) != len(times):
        times, ends = times[-1:], (length,)
    known = accumulate((*ends[:-1], length), max)  # of a damaged row they may go back
    moments, letters = [round(at * 10) for at in times], [min(end, length) for end in known]
    return [b - a for a, b in pairwise((0, *moments))], [b - a for a, b in pairwise((0, *letters))]
