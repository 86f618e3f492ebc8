"""The map of an explanation as a picture: each cell's loss in colour over the grey pictures.

Orange cells lost log-probability when they were removed, purple ones gained it; a cell without
colour changed nothing.  All pictures have the same map, because a cell is removed from all of them.

Boundary: losses and pictures in, a PNG out; reads no files.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image as Pictures
from PIL import ImageColor, ImageDraw, ImageFont

from engine.attribution.explained import Box, Explanation
from engine.attribution.wording import by_chance
from engine.palette import GAIN_COLOUR, LOSS_COLOUR
from engine.types import Image
from engine.viewing import picture_sheet

STRONG, MUTED = 0.7, 0.25  # share of the colour in the cell that changed most
_SIDE = 480  # pixels: smaller pictures are drawn as large as this, so that edges stay sharp
_STRIP, _BAR, _TEXT = 46, (220, 14), 14  # the legend below the pictures, in pixels
_GREY = 150  # what a legend's zero looks like


@dataclass(frozen=True)
class Scale:
    """The colours of a map: nats from -limit to limit."""

    limit: float
    muted: bool = False

    @property
    def strength(self) -> float:
        return MUTED if self.muted else STRONG

    def share(self, nats: float) -> float:
        """From -1 to 1; 0 for every value if nothing changed."""
        return max(-1.0, min(1.0, nats / self.limit)) if self.limit > 0 else 0.0


def scale_of(found: Explanation) -> Scale:
    """The scale of all cells of the map; muted if no part matters more than chance."""
    most = max((abs(cell.nats) for cell in found.shown_cells), default=0.0)
    return Scale(most, by_chance(found))


def png(found: Explanation, pictures: Sequence[Image] = (), legend: bool = True) -> bytes:
    """The map over the pictures of the plain input; `pictures`: those of a result that was read
    from a file."""
    scale = scale_of(found)
    drawn = [_drawn(picture, found, scale) for picture in pictures or found.pictures]
    sheet = picture_sheet.sheet(drawn)
    sheet = sheet.crop(sheet.getbbox() or (0, 0, *sheet.size))
    buffer = io.BytesIO()
    (_with_legend(sheet, scale) if legend else sheet).save(buffer, "PNG")
    return buffer.getvalue()


def _drawn(picture: Image, found: Explanation, scale: Scale) -> Image:
    """The picture in grey under its map, with a frame around the cell that lost most."""
    page = _enlarged(Pictures.fromarray(picture).convert("L")).convert("RGB")
    pixels = np.asarray(page, dtype=np.float32).copy()
    for cell in found.shown_cells:
        left, top, right, bottom = _pixels(cell.box, page.size)
        share = scale.share(cell.nats)
        colour = np.array(ImageColor.getrgb(LOSS_COLOUR if share > 0 else GAIN_COLOUR), np.float32)
        weight = scale.strength * abs(share)
        part = pixels[top:bottom, left:right]
        part += weight * (colour - part)
    page = Pictures.fromarray(pixels.astype(np.uint8))
    first = found.strongest[0] if found.cells else None
    if first is not None and first.nats > 0 and not scale.muted:
        _frame(page, _pixels(first.box, page.size))
    return np.asarray(page)


def _enlarged(page: Pictures.Image) -> Pictures.Image:
    times = -(-_SIDE // max(page.size))
    size = (page.width * times, page.height * times)
    return page.resize(size, Pictures.Resampling.BICUBIC) if times > 1 else page


def _pixels(box: Box, size: tuple[int, int]) -> tuple[int, int, int, int]:
    width, height = size
    return (
        *(round(box[0] * width), round(box[1] * height)),
        *(round(box[2] * width), round(box[3] * height)),
    )


def _frame(page: Pictures.Image, box: tuple[int, int, int, int]) -> None:
    """White between black, so that it is seen on every ground."""
    draw = ImageDraw.Draw(page)
    for inset, colour, width in ((0, "black", 6), (2, "white", 2)):
        left, top, right, bottom = box
        draw.rectangle(
            (left + inset, top + inset, right - inset, bottom - inset), outline=colour, width=width
        )


def _with_legend(sheet: Pictures.Image, scale: Scale) -> Pictures.Image:
    """The sheet on white, with the colours and their nats below it."""
    width = max(sheet.width, _BAR[0] + 280)
    page = Pictures.new("RGB", (width, sheet.height + _STRIP), "white")
    page.paste(sheet, (0, 0), sheet if sheet.mode == "RGBA" else None)
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(_TEXT)
    top, middle = sheet.height + 8, sheet.height + 8 + _BAR[1] / 2
    low, high = f"-{scale.limit:.3g} nats", f"+{scale.limit:.3g} nats: the words rest on it"
    draw.text((100, middle), low, "black", font, anchor="rm")
    page.paste(_bar(scale), (108, top))
    draw.text((108 + _BAR[0] + 8, middle), high, "black", font, anchor="lm")
    draw.text((108 + _BAR[0] / 2, top + _BAR[1] + 2), "0", "black", font, anchor="ma")
    return page


def _bar(scale: Scale) -> Pictures.Image:
    """The colours from -limit to limit over grey."""
    shares = np.linspace(-1, 1, _BAR[0])[None, :, None]
    loss, gain = (
        np.array(ImageColor.getrgb(name), np.float32) for name in (LOSS_COLOUR, GAIN_COLOUR)
    )
    weights = scale.strength * np.abs(shares)
    row = _GREY + weights * (np.where(shares > 0, loss, gain) - _GREY)
    return Pictures.fromarray(np.repeat(row, _BAR[1], axis=0).astype(np.uint8))
