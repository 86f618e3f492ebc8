"""Changes the input: removes a box from all pictures, or one picture; and draws the heat map over
what the model was shown.

An event picture is as if the events in the box had been dropped before drawing, with the split and
the sizes of the whole stream.  A pixel shows its last event, so painting the box with the
background gives the same picture, bit for bit; a test compares both.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from PIL import Image as Pillow
from PIL import ImageDraw, ImageFilter

from engine import media
from engine.attribution.explained import Explanation, Fill, restored
from engine.attribution.wording import no_place
from engine.errors import MediaError, UnknownModel
from engine.media import images, thumbnails
from engine.models.families import FAMILIES
from engine.palette import HEAT_COLOURS
from engine.quoting import quoted
from engine.storage.explanations import CellLoss, MomentLoss, Removal, StoredExplanation
from engine.storage.run_header import Header
from engine.types import Box, Image, Media, MediaKind, RunRequest, Sample

BLUR_SHARE = 0.08  # standard deviation of the blur, as a share of the picture's longer side
BACKGROUND = 255  # of event pictures
STRONGEST_ALPHA = 0.7  # of the colour of the strongest cell
MUTED = 0.35  # of this, if no place is named
SHARP = 480  # pixels: smaller pictures are enlarged for a sheet, so that edges stay sharp


@dataclass(frozen=True, eq=False)
class Occlusion:
    plain: Media
    fill: Fill = "blur"
    raw: bool = False  # the pictures are drawn from raw events

    @property
    def removal(self) -> Removal:
        if self.plain.kind != "events":
            return self.fill
        return "events" if self.raw else "painted"

    @cached_property
    def canvas(self) -> tuple[int, int] | None:
        """Height and width of the largest event picture: boxes are shares of it.  None for other
        pictures, of which each is its own canvas."""
        if self.plain.kind != "events":
            return None
        shapes = [picture.shape for picture in self.plain.images]
        return max(shape[0] for shape in shapes), max(shape[1] for shape in shapes)

    @cached_property
    def _filled(self) -> tuple[Image, ...]:
        """Each picture with nothing left in it."""
        make = {"blur": blurred, "neutral": neutral, "events": emptied, "painted": emptied}
        return tuple(make[self.removal](picture) for picture in self.plain.images)

    def without(self, *boxes: Box) -> Media:
        """The media with these boxes removed from every picture."""
        pictures = []
        for plain, filled in zip(self.plain.images, self._filled, strict=True):
            picture = plain.copy()
            for box in boxes:
                rows, columns = area(box, self.canvas or (plain.shape[0], plain.shape[1]))
                picture[rows, columns] = filled[rows, columns]
            pictures.append(picture)
        return self._changed(tuple(pictures), f"without {boxes} by {self.removal}")

    def moments(self) -> Iterator[MomentLoss]:
        """Each picture replaced by its neighbour, and of raw events also each emptied, without the
        losses; none of a single picture."""
        count, frames = len(self.plain.images), self.plain.frames
        name = "event image" if self.plain.kind == "events" else "image"
        labels = [f"{name} {index + 1}" for index in range(count)]
        if frames is not None:
            labels = [f"frame {index}" for index in frames.indices[:count]]
        if count > 1:
            yield from (MomentLoss(*one, "replaced", 0.0) for one in enumerate(labels))
        if count > 1 and self.raw:
            yield from (MomentLoss(*one, "emptied", 0.0) for one in enumerate(labels))

    def at(self, moment: MomentLoss) -> Media:
        """The media with this picture replaced by the one before it (the first by the second), or
        with none of its events, on the same canvas."""
        pictures, index = list(self.plain.images), moment.index
        if moment.how == "emptied":
            pictures[index] = emptied(pictures[index])
        else:
            pictures[index] = pictures[index - 1 if index else 1]
        return self._changed(tuple(pictures), f"{moment.how} {index}")

    def _changed(self, pictures: tuple[Image, ...], what: str) -> Media:
        digest = hashlib.blake2b(f"{self.plain.digest} {what}".encode(), digest_size=32)
        return replace(self.plain, images=pictures, digest=digest.hexdigest())

    def shown(self) -> tuple[Image, ...]:
        """The plain pictures; event pictures on one canvas, so that boxes fit all of them."""
        if self.canvas is None:
            return self.plain.images
        found = []
        for picture in self.plain.images:
            page = np.full((*self.canvas, 3), BACKGROUND, np.uint8)
            page[: picture.shape[0], : picture.shape[1]] = picture
            found.append(page)
        return tuple(found)


def shown(run: RunRequest, kind: MediaKind, fill: Fill = "blur") -> Occlusion:
    """The pictures of the run for a model of this kind; MediaError if they cannot be read."""
    plain = media.load(run.sample, kind, run.how)
    return Occlusion(plain, fill, _from_events(run, plain))


def _from_events(run: RunRequest, plain: Media) -> bool:
    """Whether the pictures are those that this project draws from the sample's raw events."""
    if plain.kind != "events" or plain.extent is not None or run.sample.events is None:
        return plain.extent is not None
    try:
        drawn = media.load(replace(run.sample, event_images=()), "events", run.how).images
    except MediaError:
        return False
    return len(drawn) == len(plain.images) and all(map(np.array_equal, drawn, plain.images))


def area(box: Box, canvas: tuple[int, int]) -> tuple[slice, slice]:
    """The rows and columns of a box on a canvas (height, width); at least one pixel."""
    height, width = canvas
    return _pixels(box[1], box[3], height), _pixels(box[0], box[2], width)


def _pixels(low: float, high: float, size: int) -> slice:
    first = min(round(low * size), size - 1)
    return slice(first, max(round(high * size), first + 1))


def blurred(picture: Image) -> Image:
    """The picture [H, W, 3] without its details.  The blur is mild: models see things in a stronger
    one that are not there (docs/attribution.md)."""
    radius = BLUR_SHARE * max(picture.shape[:2])
    found = Pillow.fromarray(picture).filter(ImageFilter.GaussianBlur(radius))
    return np.asarray(found, dtype=np.uint8)


def neutral(picture: Image) -> Image:
    """The picture's mean colour in its size."""
    mean = np.rint(picture.reshape(-1, 3).mean(axis=0)).astype(np.uint8)
    return np.broadcast_to(mean, picture.shape).copy()


def emptied(picture: Image) -> Image:
    return np.full_like(picture, BACKGROUND)


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


def heat_map(found: Explanation, pictures: Sequence[Image] = ()) -> bytes:
    """The pictures under the map as a PNG, without words.  The cell that lost most has a frame; the
    map is pale and has none if no place is named.  `pictures`: those of a result of a file."""
    page = thumbnails.sheet([_sharp(picture, found) for picture in pictures or found.pictures])
    return images.encoded(page.crop(page.getbbox() or (0, 0, *page.size)), "PNG")


def mapped(stored: StoredExplanation, header: Header, sample: Sample) -> tuple[Explanation, bytes]:
    """An explanation of the run, and its map over the sample's pictures as a PNG."""
    request = header.plan.ask(sample, stored.model, stored.prompt)
    found = restored(stored, request)
    for model in header.models:
        if model.name == stored.model and model.family in FAMILIES:
            kind = model.shows or FAMILIES[model.family].kind
            return found, heat_map(found, shown(request, kind).shown())
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
