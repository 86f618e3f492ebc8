"""Changes the input: removes a box from all pictures, or one picture.

An event picture is as if the events in the box had been dropped before drawing, with the split and
the sizes of the whole stream.  A pixel shows its last event, so painting the box with the
background gives the same picture, bit for bit; a test compares both.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from engine import media
from engine.attribution.explained import Fill
from engine.errors import MediaError
from engine.storage.explanations import MomentLoss, Removal
from engine.types import Box, Image, Media, MediaKind, RunRequest

BLUR_SHARE = 0.08  # standard deviation of the blur, as a share of the picture's longer side
BACKGROUND = 255  # of event pictures


@dataclass(frozen=True, eq=False)
class Occlusion:
    """The changed versions of one sample's pictures."""

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
        drawn = media.load(replace(run.sample, event_images=()), "events", run.how)
    except MediaError:
        return False
    return len(drawn.images) == len(plain.images) and all(
        map(np.array_equal, drawn.images, plain.images)
    )


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
    from PIL import Image as Pictures
    from PIL import ImageFilter

    radius = BLUR_SHARE * max(picture.shape[:2])
    found = Pictures.fromarray(picture).filter(ImageFilter.GaussianBlur(radius))
    return np.asarray(found, dtype=np.uint8)


def neutral(picture: Image) -> Image:
    """The picture's mean colour in its size."""
    mean = np.rint(picture.reshape(-1, 3).mean(axis=0)).astype(np.uint8)
    return np.broadcast_to(mean, picture.shape).copy()


def emptied(picture: Image) -> Image:
    """An event picture without events, in the same size."""
    return np.full_like(picture, BACKGROUND)
