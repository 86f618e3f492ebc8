"""The objects of a demo scene, beside the road and moving, and how each is drawn.  A prop knows its
place in metres at time 0, its motion and its looks; each call passes the camera's place and the
time.  Random looks are fixed when a prop is created, so that it does not change within a clip."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from engine.demo.camera import GLOW, NEAR, Canvas, Colour, pick_colour, shade

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
class Prop:
    """Something that begins at depth z at time 0, when the car has gone 0 m, and is `length` long,
    in metres.  `draw` takes the canvas, its depth now and the time; `speed` is that of a vehicle
    relative to the camera in metres per second: negative comes nearer."""

    z: float
    draw: Callable[[Canvas, float, float], None]
    length: float = 0.0
    speed: float = 0.0


def make_trees(rng: np.random.Generator, near: float, reach: float) -> list[Prop]:
    """Rows of round or pointed trees on both sides, from depth `near` to `reach`, metres."""
    trees: list[Prop] = []
    pointed, leaf = bool(rng.random() < 0.4), pick_colour(rng, LEAVES, 12)
    for side in (-1, 1):
        z = near + rng.uniform(0, 3)
        while z < reach:
            tone = shade(leaf, float(rng.uniform(0.8, 1.2)))
            x, height = side * rng.uniform(4.6, 6.4), rng.uniform(4.2, 7.5)
            looks = (x, height, rng.uniform(1.1, 1.9), tone)
            trees.append(Prop(z, partial(_pointed_tree if pointed else _round_tree, *looks)))
            z += rng.uniform(3.0, 5.5)
    return trees


def _trunk(x: float, height: float, canvas: Canvas, z: float) -> None:
    half = 0.16 + 0.02 * height
    canvas.box(x - half, x + half, 0, height * 0.5, z, (92, 66, 44), "tree")


def _pointed_tree(
    x: float, height: float, crown: float, leaf: Colour, canvas: Canvas, z: float, time: float
) -> None:
    _trunk(x, height, canvas, z)
    for low, wide, tone in ((0.22, 1.0, 0.8), (0.45, 0.8, 0.95), (0.66, 0.55, 1.1)):
        corners = [(-wide, low), (wide, low), (0.0, low + 0.42)]
        points = [canvas.camera.point(x + u * crown, v * height, z) for u, v in corners]
        canvas.polygon(points, shade(leaf, tone), z, "tree")


def _round_tree(
    x: float, height: float, crown: float, leaf: Colour, canvas: Canvas, z: float, time: float
) -> None:
    _trunk(x, height, canvas, z)
    for u, v, size, tone in (
        (0.0, 0.72, 1.0, 0.78), (-0.5, 0.62, 0.66, 0.9), (0.5, 0.66, 0.66, 0.84),
        (-0.15, 0.86, 0.7, 1.08), (0.3, 0.8, 0.4, 1.2),
    ):  # fmt: skip
        middle = canvas.camera.point(x + u * crown, v * height, z)
        radius = size * crown * canvas.camera.scale(z)
        canvas.ellipse(middle, (radius, radius * 0.85), shade(leaf, tone), z, "tree")


def make_houses(rng: np.random.Generator, near: float, reach: float) -> list[Prop]:
    houses: list[Prop] = []
    for side in (-1, 1):
        z = near - rng.uniform(0, 6)
        while z < reach:
            length = rng.uniform(6.0, 12.0)
            lit = tuple(bool(flag) for flag in rng.random(24) < 0.5)
            wall = pick_colour(rng, WALLS, 16)
            x = side * rng.uniform(4.9, 5.8)
            draw = partial(_house, x, length, rng.uniform(5.5, 12.0), wall, lit)
            houses.append(Prop(z, draw, length))
            z += length + (rng.uniform(0.5, 2.5) if rng.random() < 0.5 else 0.0)
    return houses


def _house(
    x: float,
    length: float,
    height: float,
    wall: Colour,
    lit: tuple[bool, ...],
    canvas: Canvas,
    z: float,
    time: float,
) -> None:
    near, far = max(z, NEAR + 0.3), max(z + length, NEAR + 0.6)
    middle, whole = (near + far) / 2, (near, far)
    if z > NEAR:
        left, right = sorted((x, x + math.copysign(6.0, x)))
        canvas.box(left, right, 0, height, z, shade(wall, 0.7), "building")
    canvas.wall(x, whole, (0, height), wall, middle, "building")
    canvas.wall(x, whole, (height * 0.96, height + 0.25), shade(wall, 0.5), middle, "building")
    floors, columns = max(1, int(height / 2.8)), max(2, int(length / 2.4))
    for number in range(floors * columns):
        floor, column = divmod(number, columns)
        start = z + (column + 0.25) * length / columns
        end = start + 0.5 * length / columns
        if start < NEAR + 0.3 or canvas.camera.point(x, 0, start)[0] < -60:
            continue
        glows = canvas.light.night and lit[number % len(lit)]
        colour = (250, 208, 120) if glows else (58, 70, 88)
        low = 0.9 + floor * 2.8
        canvas.wall(x, (start, end), (low, low + 1.5), colour, middle, GLOW if glows else "")


def make_rail(rng: np.random.Generator, side: int, x: float, reach: float) -> list[Prop]:
    """The spans of a guardrail on one side, x metres from the lane's middle."""
    step, start = rng.uniform(1.8, 2.6), rng.uniform(0, 1.0)
    draw = partial(_rail, side * x, step, float(rng.uniform(0.88, 1.08)))
    return [Prop(start + number * step, draw, step) for number in range(int(reach / step))]


def _rail(x: float, length: float, gloss: float, canvas: Canvas, z: float, time: float) -> None:
    near, far = max(z, NEAR), z + length
    if far <= NEAR:
        return
    if z > NEAR:
        canvas.box(x - 0.09, x + 0.09, 0, 0.8, z, (96, 98, 102), "rail")
    for low, high, tone in ((0.42, 0.9, 1.0), (0.52, 0.6, 0.5), (0.72, 0.8, 0.55)):
        colour, kind = shade((214, 216, 220), tone * gloss), "rail" if tone == 1.0 else ""
        canvas.wall(x, (near, far), (low, high), colour, near, kind)


def make_bales(rng: np.random.Generator, reach: float, straw: bool) -> list[Prop]:
    """Round straw bales, or low bushes, scattered beside the road."""
    colours: tuple[Colour, ...] = ((206, 176, 92),) if straw else ((84, 116, 58), (108, 122, 66))
    bales: list[Prop] = []
    for _ in range(int(rng.integers(2, 7))):
        x = float(rng.choice((-1, 1)) * rng.uniform(6.0, 16.0))
        z = float(rng.uniform(8, reach))
        size = float(rng.uniform(0.5, 0.8) if straw else rng.uniform(0.25, 0.5))
        bales.append(Prop(z, partial(_bale, x, size, pick_colour(rng, colours, 12))))
    return bales


def _bale(x: float, size: float, colour: Colour, canvas: Canvas, z: float, time: float) -> None:
    middle = canvas.camera.point(x, size, z)
    for part, tone in ((1.0, 0.8), (0.72, 1.0), (0.3, 0.8)):
        radius = size * part * canvas.camera.scale(z)
        canvas.ellipse(middle, (radius * 1.15, radius), shade(colour, tone), z)


def make_posts(rng: np.random.Generator, reach: float) -> list[Prop]:
    """At most three lamp posts or road signs: tall, thin, no person."""
    sign, side = bool(rng.random() < 0.5), int(rng.choice((-1, 1)))
    height = rng.uniform(2.2, 2.9) if sign else rng.uniform(4.5, 6.0)
    x, first = side * rng.uniform(3.9, 4.4), rng.uniform(7, 16)
    count = int(rng.integers(1, 4)) if rng.random() < 0.6 else 0
    draw = partial(_post, x, height, sign)
    return [Prop(first + number * reach / 4, draw) for number in range(count)]


def _post(x: float, height: float, sign: bool, canvas: Canvas, z: float, time: float) -> None:
    grey, camera = (112, 114, 118), canvas.camera
    canvas.box(x - 0.06, x + 0.06, 0, height, z, grey, "post")
    top, scale = camera.point(x, height, z), camera.scale(z)
    if sign:
        canvas.ellipse(top, (0.36 * scale, 0.36 * scale), (206, 36, 34), z, "post")
        canvas.ellipse(top, (0.25 * scale, 0.25 * scale), (238, 238, 236), z)
        return
    reach = -math.copysign(1.1, x)
    left, right = sorted((x, x + reach))
    canvas.box(left, right, height - 0.1, height, z, grey, "post")
    if canvas.light.night:
        lamp = camera.point(x + reach, height - 0.15, z)
        canvas.ellipse(lamp, (0.3 * scale, 0.16 * scale), (255, 226, 160), z, GLOW)


def make_vehicle(rng: np.random.Generator, truck: bool, motion: str) -> Prop:
    """A lead vehicle, seen from behind in the lane ahead, whose motion shows within one second."""
    rate = {"approaching": -1.0, "steady": 0.0, "pulling away": 1.0}[motion]
    speed = rate * rng.uniform(3.6, 5.4) + rng.uniform(-0.2, 0.2)
    middle = rng.uniform(8.5, 12.0) if truck else rng.uniform(6.8, 10.0)
    width = rng.uniform(2.35, 2.6) if truck else rng.uniform(1.75, 1.95)
    height = rng.uniform(3.0, 3.6) if truck else rng.uniform(1.4, 1.72)
    draw = partial(_truck if truck else _car, width, height, pick_colour(rng, PAINTS, 14))
    return Prop(float(middle - speed / 2), draw, speed=float(speed))


def _shadow(width: float, canvas: Canvas, z: float) -> None:
    scale = canvas.camera.scale(z)
    radii = (width * 0.58 * scale, 0.12 * scale)
    canvas.ellipse(canvas.camera.point(0, 0.03, z), radii, (26, 26, 28), z)


def _car(width: float, top: float, paint: Colour, canvas: Canvas, z: float, time: float) -> None:
    half, point = width / 2, canvas.camera.point
    _shadow(width, canvas, z)
    for side in (-1, 1):
        inner, outer = sorted((side * half * 0.6, side * half * 0.94))
        canvas.box(inner, outer, 0.0, 0.42, z, (18, 18, 20), "car")
    canvas.box(-half, half, 0.25, top * 0.62, z, paint, "car")
    sides = ((-0.92, 0.6), (-0.68, 1.0), (0.68, 1.0), (0.92, 0.6))
    cabin = [(half * across, top * up) for across, up in sides]
    canvas.polygon([point(x, y, z) for x, y in cabin], shade(paint, 0.86), z, "car")
    glass = [point(x * 0.86, y if y < top else top * 0.95, z) for x, y in cabin]
    canvas.polygon(glass, (44, 58, 72), z)
    canvas.box(-half, half, 0.25, 0.42, z, shade(paint, 0.55))
    canvas.box(-0.26, 0.26, 0.46, 0.6, z, (236, 232, 196))
    _lamps(half, canvas, z, top * 0.44, top * 0.6)


def _truck(width: float, top: float, paint: Colour, canvas: Canvas, z: float, time: float) -> None:
    half = width / 2
    _shadow(width, canvas, z)
    for side in (-1, 1):
        inner, outer = sorted((side * half * 0.45, side * half * 0.95))
        canvas.box(inner, outer, 0.0, 0.8, z, (18, 18, 20), "truck")
    canvas.box(-half, half, 0.75, top, z, paint, "truck")
    canvas.box(-half, half, top - 0.14, top, z, shade(paint, 0.6))
    for x in (-half * 0.98, -0.03, half * 0.9):  # the frame of the two cargo doors
        canvas.box(x, x + 0.1, 0.85, top - 0.15, z, shade(paint, 0.55))
    for x in (-half * 0.5, half * 0.42):  # locking bars
        canvas.box(x, x + 0.07, 0.85, top - 0.2, z, (228, 228, 228))
    canvas.box(-half, half, 0.48, 0.75, z, (52, 52, 56), "truck")
    for n in range(6):  # warning stripes on the bumper
        x = -half + (n + 0.15) * width / 6
        canvas.box(x, x + width / 9, 0.55, 0.68, z, (232, 190, 40) if n % 2 else (206, 44, 36))
    _lamps(half, canvas, z, 0.78, 0.98)


def _lamps(half: float, canvas: Canvas, z: float, low: float, high: float) -> None:
    night = canvas.light.night
    for side in (-1, 1):
        inner, outer = sorted((side * half * 0.72, side * half * 0.98))
        if night:
            middle = canvas.camera.point((inner + outer) / 2, (low + high) / 2, z)
            reach = 0.2 * canvas.camera.scale(z)
            canvas.ellipse(middle, (reach, reach), (120, 26, 20), z, GLOW)
        colour = (255, 70, 48) if night else (196, 30, 26)
        canvas.box(inner, outer, low, high, z, colour, GLOW if night else "")


def make_person(rng: np.random.Generator, side: int, speed: float) -> Prop:
    """A pedestrian on one side (-1 left, 1 right), in view for most of the second."""
    middle = rng.uniform(5.0, 7.4)
    x = min(rng.uniform(1.8, 2.9), 118.0 * middle / 230.0)
    drift = rng.uniform(-0.5, 0.5)  # metres per second sideways
    height, stride, phase = (rng.uniform(*each) for each in ((1.7, 2.0), (0.12, 0.3), (0, 6.28)))
    coat = pick_colour(rng, CLOTHES, 12)
    trousers = ((40, 44, 66), (84, 72, 58), (28, 28, 30), (120, 124, 136))
    legs, skin = pick_colour(rng, trousers, 10), pick_colour(rng, SKIN, 8)
    bag = rng.random() < 0.4

    def draw(canvas: Canvas, z: float, time: float) -> None:
        k, size = height / 1.8, canvas.camera.scale(z) * height / 1.8
        step = stride * math.sin(phase + 7.0 * time)
        now = side * x - drift / 2 + drift * time

        def at(dx: float, y: float) -> tuple[float, float]:
            return canvas.camera.point(now + dx * k, y * k, z)

        canvas.ellipse(at(0, 0.02), (0.4 * size, 0.07 * size), (30, 30, 30), z)
        canvas.limb(at(0.1, 0.9), at(0.12 + step, 0.0), 0.2 * size, legs, z)
        canvas.limb(at(-0.1, 0.9), at(-0.12 - step, 0.0), 0.2 * size, shade(legs, 0.8), z)
        torso = [at(-0.3, 1.5), at(0.3, 1.5), at(0.25, 0.78), at(-0.25, 0.78)]
        canvas.polygon(torso, coat, z, "person")
        for arm in (-1, 1):
            hand = at(arm * (0.38 - step * 0.8), 0.85)
            canvas.limb(at(arm * 0.3, 1.46), hand, 0.14 * size, shade(coat, 0.75), z)
        if bag:
            corners = [at(0.3, 1.0), at(0.56, 1.0), at(0.56, 0.62), at(0.3, 0.62)]
            canvas.polygon(corners, (92, 60, 36), z, "person")
        canvas.ellipse(at(0, 1.68), (0.15 * size, 0.18 * size), skin, z, "person")
        canvas.ellipse(at(0, 1.77), (0.15 * size, 0.1 * size), (40, 30, 26), z, "person")

    return Prop(float(middle + speed / 2), draw)
