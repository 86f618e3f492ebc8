"""A finished comparison as one picture, and its replay as an animated picture: files that a slide
or a chat shows without this app.

Both are drawn from the same lanes as the replay in HTML: stages and words at their recorded times.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from math import ceil
from unicodedata import east_asian_width

from PIL import Image

from engine.errors import BadInput
from engine.palette import family_colour, tones
from engine.quoting import ms, printable, tokens_told
from engine.report.answer_part import stage_words
from engine.report.replay import COLOURS, SPEEDS, WORDS, ReplayLane

WIDTH, MARGIN, INDENT = 960, 24, 16  # pixels
FRAME_MS, MOST_FRAMES = 100, 80  # a frame takes about 70 ms to draw
SHORTEST_MS, LAST_MS = 3000, 3000  # of an animation; its last frame stays
MOST_LINES = 40  # of one answer
_SIZES = {"head": 24, "label": 18, "text": 17, "small": 13}  # of letters, in pixels
_LINE = 1.4  # height of a line, in sizes
_WIDE = 0.56  # width of a letter, in sizes: on the safe side for sans-serif
# Draws each line's SVG as PNG in base64.
_DRAW = """import base64, json, sys, vl_convert
for line in sys.stdin:
    picture = vl_convert.svg_to_png(json.loads(line))
    print(base64.b64encode(picture).decode(), flush=True)
"""


@dataclass(frozen=True)
class _Line:
    """A line of a text, the place of its first letter in the text, and its baseline in pixels."""

    text: str
    start: int
    y: float


def picture(lanes: Sequence[ReplayLane], asked: str, said: Sequence[str]) -> bytes:
    """A PNG of the ended runs below what was `asked` and what is `said` of them; BadInput if it
    cannot be drawn."""
    return next(_drawn([_svg(lanes, asked, said, max(lane.total_ms for lane in lanes), "")]))


def animation(lanes: Sequence[ReplayLane], asked: str, said: Sequence[str]) -> bytes:
    """An animated WebP that plays once: at full speed, or slower where that is over too soon to be
    seen.  The last frame is that of picture().  BadInput if it cannot be drawn."""
    longest = max(lane.total_ms for lane in lanes)
    speeds = [(name, slow) for name, slow in SPEEDS.items() if longest * slow >= SHORTEST_MS]
    name, slow = min(speeds, key=lambda one: one[1], default=list(SPEEDS.items())[-1])
    step = max(FRAME_MS, ceil(longest * slow / MOST_FRAMES))
    times = [number * step / slow for number in range(ceil(longest * slow / step))]
    svgs = [_svg(lanes, asked, said, at, f"{ms(at)} at {name}") for at in times]
    svgs.append(_svg(lanes, asked, said, longest, f"{ms(longest)} at {name}"))
    first, *others = (Image.open(BytesIO(png)).convert("RGB") for png in _drawn(svgs))
    out = BytesIO()
    durations = [step] * len(others) + [LAST_MS]
    first.save(out, "WEBP", save_all=True, append_images=others, duration=durations, loop=1)
    return out.getvalue()


def _drawn(svgs: Sequence[str]) -> Iterator[bytes]:
    """Each SVG as PNG, drawn in another process: some characters make the library end it."""
    command = [sys.executable, "-P", "-c", _DRAW]
    rest = "\n".join(map(json.dumps, svgs))
    done = subprocess.run(command, input=rest, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise BadInput(f"The picture cannot be drawn ({printable(why)[:200]}): copy the answers.")
    yield from map(base64.b64decode, done.stdout.split())


def _svg(
    lanes: Sequence[ReplayLane], asked: str, said: Sequence[str], at: float, clock: str
) -> str:
    """What is known `at` ms after the start."""
    longest = max(lane.total_ms for lane in lanes)
    y, body = float(MARGIN), list[str]()
    told = [(asked, "small"), *zip(said, ("head", *["small"] * len(said)), strict=False)]
    for number, (words, style) in enumerate(told):
        for line in _wrap(words, style, y, MARGIN):
            y = line.y
            if number == 0 or at >= longest:  # who was first is not told before the end
                weight = "bold" if style == "head" else "normal"
                body.append(_text(line.text, MARGIN, y, style, weight))
        y += 4
    if clock:
        body.append(_text(clock, WIDTH - MARGIN, MARGIN - 6, "small", anchor="end"))
    for lane, tone in zip(lanes, tones([lane.family for lane in lanes]), strict=True):
        top, y = y + 14, y + 14
        inner, y = MARGIN + INDENT, y + _SIZES["label"]
        body.append(_text(printable(lane.label), inner, y, "label", "bold"))
        if at >= lane.total_ms:
            done = f"{ms(lane.total_ms)}, {tokens_told(lane.tokens)}"
            body.append(_text(done, WIDTH - MARGIN, y, "label", "bold", "end"))
        y += 10
        wide = (WIDTH - MARGIN - inner) / longest
        body.append(f'<rect x="{inner}" y="{y}" width="{longest * wide}" height="12" {_TRACK}/>')
        for name, span in lane.stages:
            length = min(span.ms, max(0.0, at - span.start_ms)) * wide
            x, fill = inner + span.start_ms * wide, COLOURS[name]
            body.append(f'<rect x="{x}" y="{y}" width="{length}" height="12" fill="{fill}"/>')
        y += 12
        known = sum(len(piece) for when, piece in lane.pieces if when <= at)
        for line in _wrap("".join(piece for _, piece in lane.pieces), "text", y, inner):
            y = line.y
            body.append(_text(line.text[: max(0, known - line.start)], inner, y, "text"))
        # A time that was not measured here never looks as if it were.
        others = [stage for stage in lane.stages if stage[1].source != "measured"]
        notes = [stage_words(WORDS.get(name, name), span) for name, span in others]
        for note in (*notes, *lane.notes):
            for line in _wrap(note, "small", y, inner):
                y = line.y
                body.append(_text(line.text, inner, y, "small"))
        colour = family_colour(tone)
        body.append(f'<rect x="{MARGIN}" y="{top}" width="4" height="{y - top}" fill="{colour}"/>')
    y += 14 + _SIZES["small"]
    x = MARGIN
    for name in dict.fromkeys(name for lane in lanes for name, _ in lane.stages):
        words = WORDS.get(name, name)
        body.append(f'<rect x="{x}" y="{y - 10}" width="10" height="10" fill="{COLOURS[name]}"/>')
        body.append(_text(words, x + 15, y, "small"))
        x += 40 + round(len(words) * _SIZES["small"] * _WIDE)
    height = ceil(y + MARGIN)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'font-family="system-ui, sans-serif" fill="#1F2328">'
        f'<rect width="{WIDTH}" height="{height}" fill="#FFFFFF"/>{"".join(body)}</svg>'
    )


_TRACK = 'fill="#E6E8EB"'


def _text(
    words: str, x: float, y: float, style: str, weight: str = "normal", anchor: str = "start"
) -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{_SIZES[style]}" font-weight="{weight}" '
        f'text-anchor="{anchor}" xml:space="preserve">{escape(words)}</text>'
    )


def _wrap(text: str, style: str, y: float, x: float) -> Iterator[_Line]:
    """The lines of a text below `y`, broken at spaces; at most MOST_LINES."""
    size = _SIZES[style]
    most, start, number = (WIDTH - MARGIN - x) / (size * _WIDE), 0, 0
    while start < len(text) and number < MOST_LINES:
        end, width, space = start, 0.0, -1
        while end < len(text) and text[end] != "\n":
            width += 1.8 if east_asian_width(text[end]) in "WF" else 1
            if width > most:
                break
            space = end if text[end] == " " else space
            end += 1
        whole = end == len(text) or text[end] == "\n"
        stop = end if whole or space <= start else space
        number += 1
        shown = text[start:stop]
        if number == MOST_LINES and stop < len(text):
            shown += " …"
        yield _Line(shown, start, y + number * size * _LINE)
        start = stop + (stop < len(text) and text[stop] in " \n")
