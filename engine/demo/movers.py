"""The moving objects of a demo scene: the vehicle ahead and the pedestrian.

Each knows its place in metres at time 0 and how it moves; each call passes the camera's place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from engine.demo.camera import Canvas, Colour, pick_colour, shade

PAINTS: tuple[Colour, ...] = (
    (190, 40, 36), (40, 78, 160), (222, 222, 218), (62, 64, 70), (228, 176, 40),
    (44, 124, 84), (150, 152, 160), (236, 118, 40),
)  # fmt: skip
CLOTHES: tuple[Colour, ...] = (
    (214, 52, 44), (240, 190, 40), (48, 92, 196), (240, 240, 236), (196, 66, 140),
    (28, 30, 36), (40, 150, 110),
)  # fmt: skip
SKIN: tuple[Colour, ...] = ((226, 182, 150), (160, 112, 80), (98, 66, 48))


@dataclass(frozen=True)
class Vehicle:
    """A car or a truck seen from behind, in the lane ahead."""

    truck: bool
    z: float
    speed: float  # metres per second relative to the camera; negative comes nearer
    paint: Colour
    width: float
    height: float

    def draw(self, canvas: Canvas, z: float, time: float) -> None:
        canvas.ellipse(
            canvas.camera.point(0, 0.03, z),
            (self.width * 0.58 * canvas.camera.scale(z), 0.12 * canvas.camera.scale(z)),
            (26, 26, 28),
            z,
        )
        (self._truck if self.truck else self._car)(canvas, z)

    def _car(self, canvas: Canvas, z: float) -> None:
        half, top, point = self.width / 2, self.height, canvas.camera.point
        for side in (-1, 1):
            inner, outer = sorted((side * half * 0.6, side * half * 0.94))
            canvas.box(inner, outer, 0.0, 0.42, z, (18, 18, 20), "car")
        canvas.box(-half, half, 0.25, top * 0.62, z, self.paint, "car")
        cabin = [(-half * 0.92, top * 0.6), (-half * 0.68, top), (half * 0.68, top)]
        cabin.append((half * 0.92, top * 0.6))
        roof = [point(x, y, z) for x, y in cabin]
        canvas.polygon(roof, shade(self.paint, 0.86), z, "car")
        glass = [point(x * 0.86, y if y < top else top * 0.95, z) for x, y in cabin]
        canvas.polygon(glass, (44, 58, 72), z)
        canvas.box(-half, half, 0.25, 0.42, z, shade(self.paint, 0.55))
        canvas.box(-0.26, 0.26, 0.46, 0.6, z, (236, 232, 196))
        self._lamps(canvas, z, top * 0.44, top * 0.6)

    def _truck(self, canvas: Canvas, z: float) -> None:
        half, top = self.width / 2, self.height
        for side in (-1, 1):
            inner, outer = sorted((side * half * 0.45, side * half * 0.95))
            canvas.box(inner, outer, 0.0, 0.8, z, (18, 18, 20), "truck")
        canvas.box(-half, half, 0.75, top, z, self.paint, "truck")
        canvas.box(-half, half, top - 0.14, top, z, shade(self.paint, 0.6))
        for x in (-half * 0.98, -0.03, half * 0.9):  # the frame of the two cargo doors
            canvas.box(x, x + 0.1, 0.85, top - 0.15, z, shade(self.paint, 0.55))
        for x in (-half * 0.5, half * 0.42):  # locking bars
            canvas.box(x, x + 0.07, 0.85, top - 0.2, z, (228, 228, 228))
        canvas.box(-half, half, 0.48, 0.75, z, (52, 52, 56), "truck")
        for n in range(6):  # warning stripes on the bumper
            x = -half + (n + 0.15) * self.width / 6
            colour = (232, 190, 40) if n % 2 else (206, 44, 36)
            canvas.box(x, x + self.width / 9, 0.55, 0.68, z, colour)
        self._lamps(canvas, z, 0.78, 0.98)

    def _lamps(self, canvas: Canvas, z: float, low: float, high: float) -> None:
        half, night = self.width / 2, canvas.light.night
        for side in (-1, 1):
            inner, outer = sorted((side * half * 0.72, side * half * 0.98))
            if night:
                middle = canvas.camera.point((inner + outer) / 2, (low + high) / 2, z)
                reach = 0.2 * canvas.camera.scale(z)
                canvas.ellipse(middle, (reach, reach), (120, 26, 20), z, glow=True)
            colour = (255, 70, 48) if night else (196, 30, 26)
            canvas.box(inner, outer, low, high, z, colour, glow=night)


@dataclass(frozen=True)
class Person:
    """A pedestrian at the roadside."""

    z: float
    x: float
    drift: float  # metres per second sideways
    height: float
    stride: float
    phase: float
    coat: Colour
    legs: Colour
    skin: Colour
    bag: bool

    def draw(self, canvas: Canvas, z: float, time: float) -> None:
        k, swing = self.height / 1.8, math.sin(self.phase + 7.0 * time)
        x, size = self.x + self.drift * time, canvas.camera.scale(z) * self.height / 1.8
        step = self.stride * swing

        def at(dx: float, y: float) -> tuple[float, float]:
            return canvas.camera.point(x + dx * k, y * k, z)

        canvas.ellipse(at(0, 0.02), (0.4 * size, 0.07 * size), (30, 30, 30), z)
        canvas.limb(at(0.1, 0.9), at(0.12 + step, 0.0), 0.2 * size, self.legs, z)
        canvas.limb(at(-0.1, 0.9), at(-0.12 - step, 0.0), 0.2 * size, shade(self.legs, 0.8), z)
        torso = [at(-0.3, 1.5), at(0.3, 1.5), at(0.25, 0.78), at(-0.25, 0.78)]
        canvas.polygon(torso, self.coat, z, "person")
        canvas.limb(at(-0.3, 1.46), at(-0.38 + step * 0.8, 0.85), 0.14 * size,
                    shade(self.coat, 0.75), z)  # fmt: skip
        canvas.limb(at(0.3, 1.46), at(0.38 - step * 0.8, 0.85), 0.14 * size,
                    shade(self.coat, 0.75), z)  # fmt: skip
        if self.bag:
            canvas.polygon([at(0.3, 1.0), at(0.56, 1.0), at(0.56, 0.62), at(0.3, 0.62)],
                           (92, 60, 36), z, "person")  # fmt: skip
        canvas.ellipse(at(0, 1.68), (0.15 * size, 0.18 * size), self.skin, z, "person")
        canvas.ellipse(at(0, 1.77), (0.15 * size, 0.1 * size), (40, 30, 26), z, "person")


def make_vehicle(rng: np.random.Generator, truck: bool, motion: str) -> Vehicle:
    """A lead vehicle whose motion shows within one second."""
    rate = {"approaching": -1.0, "steady": 0.0, "pulling away": 1.0}[motion]
    speed = rate * rng.uniform(3.6, 5.4) + rng.uniform(-0.2, 0.2)
    middle = rng.uniform(8.5, 12.0) if truck else rng.uniform(6.8, 10.0)
    width = rng.uniform(2.35, 2.6) if truck else rng.uniform(1.75, 1.95)
    height = rng.uniform(3.0, 3.6) if truck else rng.uniform(1.4, 1.72)
    paint = pick_colour(rng, PAINTS, 14)
    return Vehicle(truck, float(middle - speed / 2), float(speed), paint, width, height)


def make_person(rng: np.random.Generator, side: int, speed: float) -> Person:
    """A pedestrian on one side (-1 left, 1 right), in view for most of the second."""
    middle = rng.uniform(5.0, 7.4)
    x = min(rng.uniform(1.8, 2.9), 118.0 * middle / 230.0)
    drift = rng.uniform(-0.5, 0.5)
    return Person(
        z=float(middle + speed / 2),
        x=float(side * x - drift / 2),
        drift=float(drift),
        height=float(rng.uniform(1.7, 2.0)),
        stride=float(rng.uniform(0.12, 0.3)),
        phase=float(rng.uniform(0, 6.28)),
        coat=pick_colour(rng, CLOTHES, 12),
        legs=pick_colour(rng, ((40, 44, 66), (84, 72, 58), (28, 28, 30), (120, 124, 136)), 10),
        skin=pick_colour(rng, SKIN, 8),
        bag=bool(rng.random() < 0.4),
    )
