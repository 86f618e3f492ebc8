"""An explanation as a picture: the heat map over what the model was shown, with a legend in nats.

Pillow is imported when something is drawn.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from engine.attribution.explained import Explanation, most, nats_text
from engine.attribution.occlusion import area
from engine.attribution.wording import conclusion, no_place
from engine.palette import HEAT_COLOURS
from engine.storage.explanations import CellLoss, MomentLoss
from engine.types import Image
from engine.viewing import picture_sheet

if TYPE_CHECKING:
    from PIL.Image import Image as Picture
    from PIL.ImageDraw import ImageDraw

STRONGEST_ALPHA = 0.7  # of the colour of the strongest cell
MUTED = 0.35  # of this, if no place is named
SHARP = 480  # pixels: smaller pictures are enlarged for a sheet, so that edges stay sharp
SIDE, GAP, LINE = 320, 12, 18  # pixels: width of a panel, between parts, of a line of text
PER_ROW = 4
MAX_LINES, CHARACTERS = 4, 84  # of the words; of a line
_TEXT, _GROUND = "#1F2328", "#FFFFFF"


def colour(nats: float, strongest: float) -> tuple[int, int, int, float]:
    """Red, green, blue and alpha (0 to 1) of a loss."""
    red, green, blue = bytes.fromhex(HEAT_COLOURS["carries" if nats >= 0 else "against"][1:])
    share = min(abs(nats) / strongest, 1.0) if strongest else 0.0
    return red, green, blue, STRONGEST_ALPHA * share


def overlaid(picture: Image, cells: Sequence[CellLoss], muted: bool = False) -> Image:
    """A picture [H, W, 3] in grey under the colours of cells that cover it once (`shown_cells`)."""
    # Colours of the picture would mix with those of the map.
    light = picture.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    found, strongest = np.repeat(light[..., None], 3, axis=2), most(cells)
    for cell in cells:
        *tone, alpha = colour(cell.nats, strongest)
        alpha *= MUTED if muted else 1
        rows, columns = area(cell.box, (picture.shape[0], picture.shape[1]))
        found[rows, columns] = (1 - alpha) * found[rows, columns] + alpha * np.array(tone)
    return np.rint(found).astype(np.uint8)


def sheet(found: Explanation, pictures: Sequence[Image] = ()) -> bytes:
    """The pictures under the map as a PNG, without words: pages and reports write them beside it.

    `pictures`: those of a result that was read from a file.  The cell that lost most has a frame.
    The map is pale and without a frame if no place is named.
    """
    panels = [_sharp(picture, found) for picture in pictures or found.pictures]
    page = picture_sheet.sheet(panels)
    file = io.BytesIO()
    page.crop(page.getbbox() or (0, 0, *page.size)).save(file, "PNG")
    return file.getvalue()


def _sharp(picture: Image, found: Explanation) -> Image:
    from PIL import Image as Pictures
    from PIL import ImageDraw

    height, width = picture.shape[:2]
    times = -(-SHARP // max(height, width))
    large = Pictures.fromarray(picture).resize((width * times, height * times))
    muted, strongest = no_place(found), found.strongest[:1]
    page = overlaid(np.asarray(large), found.shown_cells, muted)
    if muted or not strongest or strongest[0].nats <= 0:
        return page
    framed = Pictures.fromarray(page)
    rows, columns = area(strongest[0].box, (page.shape[0], page.shape[1]))
    box = (columns.start, rows.start, columns.stop - 1, rows.stop - 1)
    draw = ImageDraw.Draw(framed)
    draw.rectangle(box, outline="black", width=6)  # white between black is seen on every ground
    draw.rectangle((box[0] + 2, box[1] + 2, box[2] - 2, box[3] - 2), outline="white", width=2)
    return np.asarray(framed)


def png(explanation: Explanation) -> bytes:
    """All pictures under the map, each with the losses of its moments, as a PNG."""
    from PIL import Image as Pictures
    from PIL import ImageDraw

    panels = [_panel(picture, explanation) for picture in explanation.pictures]
    below = [_moments(explanation.moments, index) for index in range(len(panels))]
    head = _head(explanation)
    columns = min(len(panels), PER_ROW)
    width = GAP + columns * (SIDE + GAP)
    tall = max((panel.height for panel in panels), default=0)
    tall += LINE * max(map(len, below), default=0) + GAP
    rows = -(-len(panels) // PER_ROW)
    top = GAP + LINE * len(head) + GAP
    sheet = Pictures.new("RGB", (max(width, 2 * SIDE), top + rows * tall + 4 * LINE), _GROUND)
    draw = ImageDraw.Draw(sheet)
    _write(draw, (GAP, GAP), head)
    for index, panel in enumerate(panels):
        corner = GAP + index % PER_ROW * (SIDE + GAP), top + index // PER_ROW * tall
        sheet.paste(panel, corner)
        _write(draw, (corner[0], corner[1] + panel.height + 2), below[index])
    _legend(sheet, draw, (GAP, top + rows * tall), explanation.most)
    file = io.BytesIO()
    sheet.save(file, "PNG")
    return file.getvalue()


def _panel(picture: Image, explanation: Explanation) -> Picture:
    from PIL import Image as Pictures

    height, width = picture.shape[:2]
    size = SIDE, max(1, min(round(height * SIDE / width), 4 * SIDE))
    large = Pictures.fromarray(picture).resize(size)
    page = overlaid(np.asarray(large), explanation.shown_cells, no_place(explanation))
    return Pictures.fromarray(page)


def _head(explanation: Explanation) -> list[str]:
    run = explanation.request.run
    said = "" if explanation.said else " (not said by the model)"
    lines = wrap(f'"{explanation.words}"{said}', CHARACTERS)[:MAX_LINES]
    read_first = wrap(conclusion(explanation), CHARACTERS)
    return [*lines, f"{run.model}, sample {run.sample.id}", *read_first]


def _moments(moments: Sequence[MomentLoss], index: int) -> list[str]:
    return [
        f"{one.label} {one.how}: {nats_text(one.nats)}" for one in moments if one.index == index
    ]


def _legend(sheet: Picture, draw: ImageDraw, corner: tuple[int, int], strongest: float) -> None:
    """A bar from the most negative to the most positive loss, over white."""
    from PIL import Image as Pictures

    steps = np.linspace(-strongest, strongest, SIDE)
    tones = [colour(float(nats), strongest) for nats in steps]
    row = [[255 + (one - 255) * tone[3] for one in tone[:3]] for tone in tones]
    bar = np.rint(np.array([row] * LINE)).astype(np.uint8)
    sheet.paste(Pictures.fromarray(bar), corner)
    left, top = corner
    draw.rectangle((left, top, left + SIDE - 1, top + LINE - 1), outline=_TEXT)
    ends = ((0, f"{-strongest:.2g}"), (SIDE // 2, "0"), (SIDE - 40, f"{strongest:+.2g}"))
    for across, text in ends:
        _write(draw, (left + across, top + LINE), [text])
    told = "nats of log-probability that the words lose when the place is removed"
    _write(draw, (left, top + 2 * LINE), [told])


def _write(draw: ImageDraw, corner: tuple[int, int], lines: Sequence[str]) -> None:
    """Lines of text; characters that the font lacks become question marks."""
    for number, line in enumerate(lines):
        text = line.encode("latin-1", "replace").decode("latin-1")
        draw.text((corner[0], corner[1] + number * LINE), text, fill=_TEXT, font_size=13)
