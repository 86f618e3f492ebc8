"""An explanation as a picture: the heat map over what the model was shown."""

from collections.abc import Sequence

import numpy as np
from PIL import Image as Pillow
from PIL import ImageDraw

from engine.attribution.explained import Explanation, restored
from engine.attribution.occlusion import area, shown
from engine.attribution.wording import no_place
from engine.errors import UnknownModel
from engine.media import images, thumbnails
from engine.models.families import FAMILIES
from engine.palette import HEAT_COLOURS
from engine.quoting import quoted
from engine.storage.explanations import CellLoss, StoredExplanation
from engine.storage.run_header import Header
from engine.types import Image, Sample

STRONGEST_ALPHA = 0.7  # of the colour of the strongest cell
MUTED = 0.35  # of this, if no place is named
SHARP = 480  # pixels: smaller pictures are enlarged for a sheet, so that edges stay sharp


def colour(nats: float, strongest: float) -> tuple[int, int, int, float]:
    """Red, green, blue and alpha (0 to 1) of a loss."""
    red, green, blue = bytes.fromhex(HEAT_COLOURS["carries" if nats >= 0 else "against"][1:])
    share = min(abs(nats) / strongest, 1.0) if strongest else 0.0
    return red, green, blue, STRONGEST_ALPHA * share


def overlaid(picture: Image, cells: Sequence[CellLoss], muted: bool = False) -> Image:
    """A picture [H, W, 3] in grey under the colours of cells that cover it once (`shown_cells`)."""
    # Colours of the picture would mix with those of the map.
    light = picture.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    found = np.repeat(light[..., None], 3, axis=2)
    strongest = max((abs(cell.nats) for cell in cells), default=0.0)
    for cell in cells:
        *tone, alpha = colour(cell.nats, strongest)
        alpha *= MUTED if muted else 1
        rows, columns = area(cell.box, (picture.shape[0], picture.shape[1]))
        found[rows, columns] = (1 - alpha) * found[rows, columns] + alpha * np.array(tone)
    return np.rint(found).astype(np.uint8)


def sheet(found: Explanation, pictures: Sequence[Image] = ()) -> bytes:
    """The pictures under the map as a PNG, without words.  The cell that lost most has a frame; the
    map is pale and has none if no place is named.  `pictures`: those of a result of a file."""
    panels = [_sharp(picture, found) for picture in pictures or found.pictures]
    page = thumbnails.sheet(panels)
    return images.encoded(page.crop(page.getbbox() or (0, 0, *page.size)), "PNG")


def mapped(stored: StoredExplanation, header: Header, sample: Sample) -> tuple[Explanation, bytes]:
    """An explanation of the run, and its map over the sample's pictures as a PNG."""
    request = header.plan.ask(sample, stored.model, stored.prompt)
    found = restored(stored, request)
    for model in header.models:
        if model.name == stored.model and model.family in FAMILIES:
            kind = model.shows or FAMILIES[model.family].kind
            return found, sheet(found, shown(request, kind).shown())
    raise UnknownModel(
        f"The run has no model {quoted(stored.model)} of a known family, so the map of its "
        "explanation cannot be drawn: explain the words again."
    )


def _sharp(picture: Image, found: Explanation) -> Image:
    height, width = picture.shape[:2]
    times = -(-SHARP // max(height, width))
    large = Pillow.fromarray(picture).resize((width * times, height * times))
    muted, strongest = no_place(found), found.strongest[:1]
    page = overlaid(np.asarray(large), found.shown_cells, muted)
    if muted or not strongest or strongest[0].nats <= 0:
        return page
    framed = Pillow.fromarray(page)
    rows, columns = area(strongest[0].box, (page.shape[0], page.shape[1]))
    box = (columns.start, rows.start, columns.stop - 1, rows.stop - 1)
    draw = ImageDraw.Draw(framed)
    draw.rectangle(box, outline="black", width=6)  # white between black is seen on every ground
    draw.rectangle((box[0] + 2, box[1] + 2, box[2] - 2, box[3] - 2), outline="white", width=2)
    return np.asarray(framed)
