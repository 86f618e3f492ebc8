"""The time line of what each model saw, as HTML and CSS: no script, no request, no SVG.  Pointing
at a mark, or moving to it with Tab, shows its picture, which is a data URL.  Pages and HTML reports
use the same markup.  Every text in it is escaped."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from html import escape
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image as Pillow

from engine.media import images
from engine.palette import EVENT_COLOURS
from engine.types import Image, MediaKind
from engine.viewing.seen_times import EventDensity, SeenPicture, SeenRow, SeenTimeline

MOST_TICKS = 6
HINT = "Point at a mark, or move to it with Tab, to see its picture:"
NOUNS: Mapping[MediaKind, str] = {
    "events": "event images",
    "video": "frames",
    "image": "middle frame",
}
_QUALITY = 82
STYLE = """
.seen { position: relative; padding: 0 8px; font-size: .875rem; line-height: 1.35;
  font-variant-numeric: tabular-nums; print-color-adjust: exact; }
.seen-label { margin: .55rem 0 .15rem; overflow-wrap: anywhere; }
.seen-key { display: inline-block; width: .7rem; height: .7rem; border-radius: .15rem;
  margin: 0 .25rem 0 .7rem; vertical-align: -.05rem; }
.seen-track { display: grid; grid-template-columns: minmax(0, 1fr); }
.seen-track > * { grid-area: 1 / 1; }
.seen-density { height: 4.2rem; border-bottom: 1px solid currentColor; }
.seen-row { min-height: 1.7rem; background: #868D971F; border-radius: .2rem; }
.seen-mark { min-width: 0; height: 1.7rem; box-sizing: border-box; cursor: pointer;
  text-align: center; line-height: 1.5rem; }
.seen-span { border: 1px solid; border-radius: .2rem; overflow: hidden; }
.seen-tick { width: 14px; border: 0 solid; }
.seen-line { display: block; width: 0; height: 1.7rem; margin: 0 auto; border-left: 4px solid; }
.seen-assumed.seen-span, .seen-assumed .seen-line { border-style: dashed; }
.seen-mark:hover, .seen-mark:focus { outline: 2px solid currentColor; outline-offset: 1px; }
.seen-axis { border-top: 1px solid currentColor; margin-top: .5rem; padding-top: .15rem; }
.seen-axis span { width: max-content; }
.seen-unit { text-align: center; }
.seen-stage { height: 14.5rem; }
.seen-picture { display: none; position: absolute; bottom: 0; width: max-content; max-width: 100%;
  height: 14.5rem; line-height: 1.35; color: inherit; text-align: left; pointer-events: none; }
.seen-mark:hover .seen-picture, .seen-mark:focus .seen-picture { display: block; }
.seen-first .seen-picture { display: block; }
.seen:has(.seen-mark:hover) .seen-mark:not(:hover) .seen-picture,
.seen:has(.seen-mark:focus) .seen-first:not(:hover, :focus) .seen-picture { display: none; }
.seen-picture img { display: block; max-width: 100%; height: 11.8rem; object-fit: contain;
  border: 1px solid #868D97; border-radius: .2rem; margin: 0 0 .3rem; }
@media (max-width: 480px) { .seen-axis span:nth-child(even) { visibility: hidden; } }
@media print { .seen-stage { display: none; } }
"""


class RowHead(NamedTuple):
    """The models that receive a row's pictures, and the row's colour (#RRGGBB)."""

    models: str
    colour: str


def markup(found: SeenTimeline, heads: Mapping[MediaKind, RowHead]) -> str:
    """The time line; `heads` has an entry for every row."""
    parts = [_density(found.density, found.window_us)] if found.density else []
    parts += [_row(row, heads[row.kind], found, row is found.rows[0]) for row in found.rows]
    parts.append(_axis(found.window_us))
    if found.rows:
        parts.append(f'<div class="seen-label">{HINT}</div><div class="seen-stage"></div>')
    body = "".join(parts)
    return f'<div class="seen" role="group" aria-label="{escape(words(found, heads))}">{body}</div>'


def words(found: SeenTimeline, heads: Mapping[MediaKind, RowHead]) -> str:
    sentences = [f"Time line of {found.window_us:,.0f} µs." if found.window_us else "No times."]
    if found.density:
        sentences.append(f"{int(found.density.total.sum()):,} events.")
    for row in found.rows:
        times = ", ".join(_when(picture) for picture in row.pictures)
        sentences.append(f"{heads[row.kind].models}, {NOUNS[row.kind]}: {times}.")
    return " ".join(sentences)


def _when(picture: SeenPicture) -> str:
    if not picture.known:
        return "time unknown"
    if picture.begin_us == picture.end_us:
        return f"{picture.begin_us:,.0f} µs"
    return f"{picture.begin_us:,.0f} to {picture.end_us:,.0f} µs"


def _density(found: EventDensity, window: float) -> str:
    """Two areas: all events, and in front of them those with p = 1."""
    total, top = int(found.total.sum()), max(1, int(found.total.max()))
    share = found.bin_us * len(found.on) / max(window, found.bin_us * len(found.on))
    areas = "".join(
        f'<span style="background:{EVENT_COLOURS[name]};width:{100 * share:.3f}%;'
        f'clip-path:polygon({_steps(counts / top)})"></span>'
        for name, counts in (("darker", found.total), ("brighter", found.on))
    )
    keys = "".join(
        f'<span class="seen-key" style="background:{EVENT_COLOURS[name]}"></span>{name}'
        for name in ("brighter", "darker")
    )
    text = f"{total:,} events, counted per {found.bin_us:,.0f} µs (highest {top:,})"
    return (
        f'<div class="seen-label">{text}{keys}</div>'
        f'<div class="seen-track seen-density" role="img" aria-label="{text}">{areas}</div>'
    )


def _steps(heights: npt.NDArray[np.float64]) -> str:
    """The corners of an area of bars side by side, each height between 0 and 1."""
    edges = np.linspace(0, 100, len(heights) + 1)
    corners = [
        f"{edge:.2f}% {100 * (1 - height):.1f}%"
        for place, height in enumerate(heights)
        for edge in edges[place : place + 2]
    ]
    return ",".join(("0% 100%", *corners, "100% 100%"))


def _row(row: SeenRow, head: RowHead, found: SeenTimeline, first: bool) -> str:
    """A row's label and marks; the picture of the first mark of all is shown at the beginning."""
    # Without any time, the right edge is the row's own last place.
    end = found.window_us or max((picture.end_us for picture in row.pictures), default=0) or 1
    marks = "".join(
        _mark(picture, str(number), head.colour, end, first and number == 1)
        for number, picture in enumerate(row.pictures, start=1)
    )
    label = escape(f"{head.models}: {row.source}")
    return f'<div class="seen-label">{label}</div><div class="seen-track seen-row">{marks}</div>'


def _mark(picture: SeenPicture, number: str, colour: str, end: float, first: bool) -> str:
    """A span with its number, or a tick for a single moment; with its hidden picture."""
    begin, width = 100 * picture.begin_us / end, 100 * (picture.end_us - picture.begin_us) / end
    events = "" if picture.events is None else f", {picture.events:,} events"
    name, middle = escape(f"{picture.name}: {_when(picture)}{events}"), begin + width / 2
    kind = ("seen-first " if first else "") + ("" if picture.known else "seen-assumed ")
    if picture.begin_us == picture.end_us:
        kind, place = kind + "seen-tick", f"calc({begin:.3f}% - 7px)"
        inside = f'<span class="seen-line" style="border-color:{colour}"></span>'
    else:
        kind, inside = kind + "seen-span", number
        place = f"{begin:.3f}%;width:{width:.3f}%;background:{colour}33;border-color:{colour}"
    return (
        f'<span class="seen-mark {kind}" tabindex="0" role="img" aria-label="{name}" '
        f'style="margin-left:{place}">{inside}'
        # The picture below the time line is moved so that it stays inside.
        f'<span class="seen-picture" style="left:{middle:.2f}%;'
        f'transform:translateX(-{middle:.2f}%)"><img src="{address(picture.picture)}" '
        f'alt="{name}">{name}</span></span>'
    )


def _axis(window: float) -> str:
    if not window:
        return '<div class="seen-unit">in order; no file gives a time</div>'
    ticks = "".join(
        f'<span style="margin-left:{100 * at / window:.3f}%;'
        f'transform:translateX(-{100 * at / window:.3f}%)">{at:,.0f}</span>'
        for at in ticks_of(window)
    )
    return f'<div class="seen-track seen-axis">{ticks}</div><div class="seen-unit">time (µs)</div>'


def ticks_of(window: float) -> list[float]:
    """At most MOST_TICKS round values from 0 up to `window`."""
    scale = 10.0 ** np.floor(np.log10(window))
    steps = (max(1.0, scale * part) for part in (0.2, 0.5, 1, 2))
    step = next(step for step in steps if window / step < MOST_TICKS)
    return [step * number for number in range(int(window / step) + 1)]


def address(image: Image) -> str:
    """A data URL of the picture [H, W, 3] as WebP."""
    return _address(image, "webp", quality=_QUALITY, method=0)


def event_address(image: Image) -> str:
    """A data URL of an event picture as PNG: its three colours exactly, and quicker than WebP."""
    white, red = image[..., 1] == 255, image[..., 0] == 255
    picture = Pillow.fromarray(np.where(white, 0, 1 + red).astype(np.uint8))
    picture.putpalette((255, 255, 255, 0, 0, 255, 255, 0, 0))
    return _address(picture, "png", compress_level=1, bits=2)


def _address(picture: Image | Pillow.Image, form: str, **options: int) -> str:
    data = base64.b64encode(images.encoded(picture, form, **options))
    return f"data:image/{form};base64,{data.decode()}"
