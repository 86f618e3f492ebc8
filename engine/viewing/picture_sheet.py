"""Several pictures on one sheet, in reading order."""

from collections.abc import Sequence

from PIL import Image as Pictures

from engine.types import Image

SHEET = (1200, 600)  # every sheet has this shape, so that columns line up
_GAP = 6


def sheet(images: Sequence[Image]) -> Pictures.Image:
    """The pictures on one transparent sheet, as large as possible.  Cells have the largest width
    and height of all pictures; other pictures are scaled to fit."""
    width, height = (max(image.shape[side] for image in images) for side in (1, 0))
    columns, cell = grid(len(images), width / height)
    page = Pictures.new("RGBA", SHEET)
    for index, image in enumerate(images):
        picture = Pictures.fromarray(image)
        scale = min((room - _GAP) / side for room, side in zip(cell, picture.size, strict=True))
        size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
        row, column = divmod(index, columns)
        corner = column * cell[0], row * cell[1]
        page.paste(picture.resize(size, Pictures.Resampling.BICUBIC), corner)
    return page


def grid(number: int, aspect: float) -> tuple[int, tuple[int, int]]:
    """(columns, cell size in pixels) with the largest cells for `number` pictures on a sheet."""

    def cell(columns: int) -> tuple[int, int]:
        rows = -(-number // columns)
        width = min(SHEET[0] / columns, SHEET[1] / rows * aspect)
        return max(1, int(width)), max(1, int(width / aspect))

    columns = max(range(1, number + 1), key=lambda n: (cell(n)[0], -n))
    return columns, cell(columns)
