"""The camera of the demo world and the canvas it draws on.  Metres: x to the right of the lane's
middle, y above the road, z ahead of the lens."""

import math
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

Colour = tuple[float, float, float]
Point = tuple[float, float]

WIDTH, HEIGHT = 320, 240  # drawn at twice the size of a frame, then halved: smooth edges
FOCAL = 230.0  # pixels at the drawn size
EYE = 1.45  # metres above the road
NEAR = 1.2  # metres; nothing nearer is drawn

# What a pixel shows, in the order of the dense training labels.
KINDS = ("sky", "land", "road", "car", "truck", "person", "tree", "building", "rail", "post")
KIND = {name: number for number, name in enumerate(KINDS)}
GLOW = "glow"  # in place of a kind


@dataclass(frozen=True)
class Camera:
    """A pinhole over a road whose middle lies at `bend * z**2`."""

    horizon: float
    centre: float
    bend: float

    def scale(self, z: float) -> float:
        """Pixels per metre at depth z."""
        return FOCAL / max(z, NEAR)

    def point(self, x: float, y: float, z: float) -> Point:
        """Metres -> pixels at the drawn size."""
        depth, scale = max(z, NEAR), self.scale(z)
        across = self.centre + scale * (x + self.bend * depth * depth)
        return across, self.horizon + scale * (EYE - y)


@dataclass(frozen=True)
class Light:
    """How a surface's colour looks from a distance."""

    night: bool
    gain: float
    haze: Colour

    def on(self, colour: Colour, z: float) -> tuple[int, int, int]:
        """The lit colour at depth z, 0..255."""
        if self.night:
            lit = self.gain * (0.24 + 0.76 * math.exp(-((z / 15.0) ** 2)))
            mixed = [c * lit * tint for c, tint in zip(colour, (0.94, 0.96, 1.0), strict=True)]
        else:
            clear = math.exp(-z / 90.0)
            mixed = [
                self.gain * (c * clear + h * (1.0 - clear))
                for c, h in zip(colour, self.haze, strict=True)
            ]
        red, green, blue = (max(0, min(255, round(value))) for value in mixed)
        return red, green, blue


class Canvas:
    """A picture and, at half its size, the map of what each pixel shows."""

    def __init__(self, picture: Image.Image, labels: Image.Image, camera: Camera, light: Light):
        self.picture, self.labels, self.camera, self.light = picture, labels, camera, light
        self._ink = ImageDraw.Draw(picture)
        self._map = ImageDraw.Draw(labels)

    def polygon(self, points: list[Point], colour: Colour, z: float, kind: str = "") -> None:
        """Fill in pixels; with a kind the label map is filled too; GLOW ignores the light."""
        self._ink.polygon(points, fill=self._fill(colour, z, kind))
        if kind in KIND:
            self._map.polygon([(x / 2, y / 2) for x, y in points], fill=KIND[kind])

    def ellipse(
        self, middle: Point, radii: Point, colour: Colour, z: float, kind: str = ""
    ) -> None:
        """Fill an upright ellipse; middle and radii in pixels at the drawn size."""
        (x, y), (rx, ry) = middle, radii
        self._ink.ellipse((x - rx, y - ry, x + rx, y + ry), fill=self._fill(colour, z, kind))
        if kind in KIND:
            box = ((x - rx) / 2, (y - ry) / 2, (x + rx) / 2, (y + ry) / 2)
            self._map.ellipse(box, fill=KIND[kind])

    def limb(self, start: Point, end: Point, width: float, colour: Colour, z: float) -> None:
        """A thick line with square ends, as an arm or a leg of a person; width in pixels."""
        (x0, y0), (x1, y1) = start, end
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        dx, dy = (y1 - y0) / length * width / 2, (x0 - x1) / length * width / 2
        corners = [(x0 + dx, y0 + dy), (x1 + dx, y1 + dy), (x1 - dx, y1 - dy), (x0 - dx, y0 - dy)]
        self.polygon(corners, colour, z, "person")

    def box(
        self,
        left: float,
        right: float,
        low: float,
        high: float,
        z: float,
        colour: Colour,
        kind: str = "",
    ) -> None:
        """A rectangle in metres that faces the camera at depth z."""
        (x0, y0), (x1, y1) = self.camera.point(left, high, z), self.camera.point(right, low, z)
        self.polygon([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], colour, z, kind)

    def wall(
        self, x: float, depths: Point, heights: Point, colour: Colour, z: float, kind: str = ""
    ) -> None:
        """A rectangle in metres along the road, at x, lit as at depth z."""
        (near, far), (low, high) = depths, heights
        corners = [(low, near), (high, near), (high, far), (low, far)]
        self.polygon([self.camera.point(x, y, depth) for y, depth in corners], colour, z, kind)

    def _fill(self, colour: Colour, z: float, kind: str) -> tuple[int, ...]:
        return tuple(map(int, colour)) if kind == GLOW else self.light.on(colour, z)


def shade(colour: Colour, factor: float) -> Colour:
    return colour[0] * factor, colour[1] * factor, colour[2] * factor


def pick_colour(rng: np.random.Generator, colours: tuple[Colour, ...], spread: float) -> Colour:
    """One of the colours, each channel moved by up to `spread`."""
    base = colours[int(rng.integers(len(colours)))]
    red, green, blue = (float(np.clip(c + rng.uniform(-spread, spread), 4, 250)) for c in base)
    return red, green, blue
