"""The objects of a demo scene, beside the road and moving, and how each is drawn.

A prop knows its place in metres at time 0, its motion and its looks; each call passes the camera's
place and the time.  Random looks are fixed when a prop is created, so that it does not change
within a clip.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from engine.demo.camera import NEAR, Canvas, Colour, pick_colour, shade

WALLS: tuple[Colour, ...] = ((176, 128, 100), (200, 188, 164), (148, 146, 150), (168, 92, 76))
LEAVES: tuple[Colour, ...] = ((58, 112, 46), (78, 132, 52), (42, 92, 54), (146, 122, 44))
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
class Prop(ABC):
    """Something at x and, at time 0 when the car has gone 0 m, at depth z, in metres."""

    x: float
    z: float

    @abstractmethod
    def draw(self, canvas: Canvas, z: float, time: float) -> None: ...


@dataclass(frozen=True)
class Tree(Prop):
    """A round or a pointed tree."""

    height: float
    crown: float
    pointed: bool
    leaf: Colour

    def draw(self, canvas: Canvas, z: float, time: float) -> None:
        point, scale = canvas.camera.point, canvas.camera.scale(z)
        trunk = 0.16 + 0.02 * self.height
        canvas.box(self.x - trunk, self.x + trunk, 0, self.height * 0.5, z, (92, 66, 44), "tree")
        if self.pointed:
            for low, wide, tone in ((0.22, 1.0, 0.8), (0.45, 0.8, 0.95), (0.66, 0.55, 1.1)):
                corners = [(-wide, low), (wide, low), (0.0, low + 0.42)]
                points = [point(self.x + u * self.crown, v * self.height, z) for u, v in corners]
                canvas.polygon(points, shade(self.leaf, tone), z, "tree")
            return
        for u, v, size, tone in (
            (0.0, 0.72, 1.0, 0.78), (-0.5, 0.62, 0.66, 0.9), (0.5, 0.66, 0.66, 0.84),
            (-0.15, 0.86, 0.7, 1.08), (0.3, 0.8, 0.4, 1.2),
        ):  # fmt: skip
            middle = point(self.x + u * self.crown, v * self.height, z)
            radius = size * self.crown * scale
            canvas.ellipse(middle, (radius, radius * 0.85), shade(self.leaf, tone), z, "tree")


@dataclass(frozen=True)
class House(Prop):
    """A façade along the road, from depth z to z + length."""

    length: float
    height: float
    wall: Colour
    lit: tuple[bool, ...]

    def draw(self, canvas: Canvas, z: float, time: float) -> None:
        near, far = max(z, NEAR + 0.3), max(z + self.length, NEAR + 0.6)
        middle, whole = (near + far) / 2, (near, far)
        if z > NEAR:
            left, right = sorted((self.x, self.x + math.copysign(6.0, self.x)))
            canvas.box(left, right, 0, self.height, z, shade(self.wall, 0.7), "building")
        canvas.wall(self.x, whole, (0, self.height), self.wall, middle, "building")
        eaves = (self.height * 0.96, self.height + 0.25)
        canvas.wall(self.x, whole, eaves, shade(self.wall, 0.5), middle, "building")
        floors, columns = max(1, int(self.height / 2.8)), max(2, int(self.length / 2.4))
        for number in range(floors * columns):
            floor, column = divmod(number, columns)
            start = z + (column + 0.25) * self.length / columns
            end = start + 0.5 * self.length / columns
            if start < NEAR + 0.3 or canvas.camera.point(self.x, 0, start)[0] < -60:
                continue
            lit = canvas.light.night and self.lit[number % len(self.lit)]
            colour = (250, 208, 120) if lit else (58, 70, 88)
            low = 0.9 + floor * 2.8
            canvas.wall(self.x, (start, end), (low, low + 1.5), colour, middle, "", lit)


@dataclass(frozen=True)
class Rail(Prop):
    """One span of a guardrail with its post, from depth z to z + length."""

    length: float
    tone: float

    def draw(self, canvas: Canvas, z: float, time: float) -> None:
        near, far = max(z, NEAR), z + self.length
        if far <= NEAR:
            return
        if z > NEAR:
            canvas.box(self.x - 0.09, self.x + 0.09, 0, 0.8, z, (96, 98, 102), "rail")
        for low, high, tone in ((0.42, 0.9, 1.0), (0.52, 0.6, 0.5), (0.72, 0.8, 0.55)):
            colour, kind = shade((214, 216, 220), tone * self.tone), "rail" if tone == 1.0 else ""
            canvas.wall(self.x, (near, far), (low, high), colour, near, kind)


@dataclass(frozen=True)
class Post(Prop):
    """A lamp post or a road sign: tall, thin, no person."""

    height: float
    sign: bool

    def draw(self, canvas: Canvas, z: float, time: float) -> None:
        canvas.box(self.x - 0.06, self.x + 0.06, 0, self.height, z, (112, 114, 118), "post")
        top, scale = canvas.camera.point(self.x, self.height, z), canvas.camera.scale(z)
        if self.sign:
            canvas.ellipse(top, (0.36 * scale, 0.36 * scale), (206, 36, 34), z, "post")
            canvas.ellipse(top, (0.25 * scale, 0.25 * scale), (238, 238, 236), z)
            return
        reach = -math.copysign(1.1, self.x)
        left, right = sorted((self.x, self.x + reach))
        canvas.box(left, right, self.height - 0.1, self.height, z, (112, 114, 118), "post")
        if canvas.light.night:
            lamp = canvas.camera.point(self.x + reach, self.height - 0.15, z)
            canvas.ellipse(lamp, (0.3 * scale, 0.16 * scale), (255, 226, 160), z, glow=True)


@dataclass(frozen=True)
class Bale(Prop):
    """A round straw bale, or a low bush when green, in an open field."""

    size: float
    colour: Colour

    def draw(self, canvas: Canvas, z: float, time: float) -> None:
        scale = canvas.camera.scale(z)
        middle = canvas.camera.point(self.x, self.size, z)
        for part, tone in ((1.0, 0.8), (0.72, 1.0), (0.3, 0.8)):
            radius = self.size * part * scale
            canvas.ellipse(middle, (radius * 1.15, radius), shade(self.colour, tone), z)


def make_trees(rng: np.random.Generator, near: float, reach: float) -> list[Prop]:
    """Rows of trees on both sides, from depth `near` to `reach`, metres."""
    trees: list[Prop] = []
    pointed, leaf = bool(rng.random() < 0.4), pick_colour(rng, LEAVES, 12)
    for side in (-1, 1):
        z = near + rng.uniform(0, 3)
        while z < reach:
            tone = shade(leaf, float(rng.uniform(0.8, 1.2)))
            x, height = side * rng.uniform(4.6, 6.4), rng.uniform(4.2, 7.5)
            trees.append(Tree(x, z, height, rng.uniform(1.1, 1.9), pointed, tone))
            z += rng.uniform(3.0, 5.5)
    return trees


def make_houses(rng: np.random.Generator, near: float, reach: float) -> list[Prop]:
    """Façades on both sides."""
    houses: list[Prop] = []
    for side in (-1, 1):
        z = near - rng.uniform(0, 6)
        while z < reach:
            length = rng.uniform(6.0, 12.0)
            lit = tuple(bool(flag) for flag in rng.random(24) < 0.5)
            wall = pick_colour(rng, WALLS, 16)
            x = side * rng.uniform(4.9, 5.8)
            houses.append(House(x, z, length, rng.uniform(5.5, 12.0), wall, lit))
            z += length + (rng.uniform(0.5, 2.5) if rng.random() < 0.5 else 0.0)
    return houses


def make_rail(rng: np.random.Generator, side: int, x: float, reach: float) -> list[Prop]:
    """A guardrail on one side, x metres from the lane's middle."""
    step, start = rng.uniform(1.8, 2.6), rng.uniform(0, 1.0)
    tone = float(rng.uniform(0.88, 1.08))
    count = int(reach / step)
    return [Rail(side * x, start + number * step, step, tone) for number in range(count)]


def make_bales(rng: np.random.Generator, reach: float, straw: bool) -> list[Prop]:
    """Straw bales, or low bushes, scattered beside the road."""
    colours: tuple[Colour, ...] = ((206, 176, 92),) if straw else ((84, 116, 58), (108, 122, 66))
    count = int(rng.integers(2, 7))
    return [
        Bale(
            float(rng.choice((-1, 1)) * rng.uniform(6.0, 16.0)),
            float(rng.uniform(8, reach)),
            float(rng.uniform(0.5, 0.8) if straw else rng.uniform(0.25, 0.5)),
            pick_colour(rng, colours, 12),
        )
        for _ in range(count)
    ]


def make_posts(rng: np.random.Generator, reach: float) -> list[Prop]:
    """At most three lamp posts or signs."""
    sign, side = bool(rng.random() < 0.5), int(rng.choice((-1, 1)))
    height = rng.uniform(2.2, 2.9) if sign else rng.uniform(4.5, 6.0)
    x, first = side * rng.uniform(3.9, 4.4), rng.uniform(7, 16)
    count = int(rng.integers(1, 4)) if rng.random() < 0.6 else 0
    return [Post(x, first + n * reach / 4, height, sign) for n in range(count)]


@dataclass(frozen=True)
class Vehicle(Prop):
    """A car or a truck seen from behind, in the lane ahead."""

    truck: bool
    speed: float  # metres per second relative to the camera; negative comes nearer
    paint: Colour
    width: float
    height: float

    def draw(self, canvas: Canvas, z: float, time: float) -> None:
        scale = canvas.camera.scale(z)
        shadow = (self.width * 0.58 * scale, 0.12 * scale)
        canvas.ellipse(canvas.camera.point(0, 0.03, z), shadow, (26, 26, 28), z)
        (self._truck if self.truck else self._car)(canvas, z)

    def _car(self, canvas: Canvas, z: float) -> None:
        half, top, point = self.width / 2, self.height, canvas.camera.point
        for side in (-1, 1):
            inner, outer = sorted((side * half * 0.6, side * half * 0.94))
            canvas.box(inner, outer, 0.0, 0.42, z, (18, 18, 20), "car")
        canvas.box(-half, half, 0.25, top * 0.62, z, self.paint, "car")
        sides = ((-0.92, 0.6), (-0.68, 1.0), (0.68, 1.0), (0.92, 0.6))
        cabin = [(half * across, top * up) for across, up in sides]
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
class Person(Prop):
    """A pedestrian at the roadside."""

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
        for side in (-1, 1):
            hand = at(side * (0.38 - step * 0.8), 0.85)
            canvas.limb(at(side * 0.3, 1.46), hand, 0.14 * size, shade(self.coat, 0.75), z)
        if self.bag:
            bag = [at(0.3, 1.0), at(0.56, 1.0), at(0.56, 0.62), at(0.3, 0.62)]
            canvas.polygon(bag, (92, 60, 36), z, "person")
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
    return Vehicle(0, float(middle - speed / 2), truck, float(speed), paint, width, height)


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
