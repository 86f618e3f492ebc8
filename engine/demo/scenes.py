"""One-second driving scenes whose content is known, drawn from a seed.  Sky and ground are painted
per pixel at the size of a frame (160 x 120)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from engine.analysis.answer_reading import ATTRIBUTES
from engine.demo import props
from engine.demo.camera import (
    EYE,
    FOCAL,
    HEIGHT,
    KIND,
    WIDTH,
    Camera,
    Canvas,
    Colour,
    Light,
    pick_colour,
)
from engine.demo.props import Prop

FPS = 20
FRAMES = 20
REACH = 60.0  # metres: nothing stands farther away
FloatArray = npt.NDArray[np.float32]
COLUMNS, ROWS = 160, 120
TEXTURE = 128  # side of the square noise tile
DAY_SKIES: tuple[Colour, ...] = ((92, 148, 214), (128, 168, 208), (156, 172, 188), (104, 128, 190))
NIGHT_SKIES: tuple[Colour, ...] = ((12, 16, 36), (20, 22, 34), (8, 10, 24))
LANDS: tuple[Colour, ...] = ((98, 130, 62), (122, 134, 70), (138, 124, 78), (84, 114, 66))


@dataclass(frozen=True)
class Surroundings:
    """Everything of a scene that lies flat or far: road, land, colours, horizon."""

    horizon: float  # pixels at the drawn size
    left: float  # edges of the road, metres
    right: float
    middle: float
    dash: tuple[float, float]  # length and period of the centre line, metres
    asphalt: Colour
    land: Colour
    haze: Colour
    rows: bool  # crop rows in the land
    paved: bool  # a pavement beside the road
    tile: FloatArray  # (128, 128) noise around 0


def make_surroundings(rng: np.random.Generator, roadside: str) -> Surroundings:
    """Random looks of the flat world that suit the roadside."""
    grey, shift = float(rng.uniform(70, 108)), float(rng.choice((-1, 1)) * rng.uniform(0.4, 0.7))
    return Surroundings(
        horizon=float(rng.uniform(98, 108)),
        left=shift - float(rng.uniform(2.8, 3.1)),
        right=shift + float(rng.uniform(2.8, 3.1)),
        middle=shift,
        dash=(float(rng.uniform(1.6, 2.6)), float(rng.uniform(4.0, 5.5))),
        asphalt=(grey, grey + 1, grey + 5),
        land=pick_colour(rng, LANDS, 14),
        haze=pick_colour(rng, ((198, 208, 220), (214, 206, 194)), 10),
        rows=roadside == "open field",
        paved=roadside == "buildings",
        tile=np.clip(rng.standard_normal((TEXTURE, TEXTURE), np.float32), -2, 2) * np.float32(0.5),
    )


def paint_sky(rng: np.random.Generator, around: Surroundings, light: Light) -> FloatArray:
    """(120, 160, 3): a gradient, clouds or stars, and hills along the horizon."""
    top = np.array(pick_colour(rng, NIGHT_SKIES if light.night else DAY_SKIES, 4))
    low = top * 1.9 if light.night else np.array(around.haze) * 1.04
    down = np.linspace(0, 1, ROWS)[:, None, None] * (ROWS / (around.horizon / 2))
    sky = top + (low - top) * np.clip(down, 0, 1) + np.zeros((1, COLUMNS, 1))
    clouds = _clouds(rng) * float(rng.uniform(0.2, 1.0))
    sky += clouds[..., None] * (12.0 if light.night else 52.0)
    if light.night:
        ys, xs = rng.integers(0, 45, 40), rng.integers(0, COLUMNS, 40)
        sky[ys, xs] += rng.uniform(20, 110, (40, 1))
    _hills(rng, sky, around, light)
    return np.asarray(sky * (1.0 if light.night else light.gain), dtype=np.float32)


def paint_ground(
    around: Surroundings, light: Light, camera: Camera, sky: FloatArray, gone: float
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """(120, 160, 3) picture and (120, 160) labels after `gone` metres of driving."""
    first = int(np.ceil(camera.horizon / 2 + 0.6))
    rows = np.arange(first, ROWS, dtype=np.float32)[:, None]
    z = (FOCAL / 2 * EYE) / (rows - camera.horizon / 2)  # (rows, 1) metres
    pixel = z / (FOCAL / 2)  # metres per pixel, sideways
    columns = np.arange(COLUMNS, dtype=np.float32)[None] - camera.centre / 2
    x = columns * pixel - camera.bend * z * z
    road = _band(x, around.left, around.right, pixel)
    colour = _land(around, x, z, gone, pixel) * (1 - road[..., None])
    colour += np.array(around.asphalt, np.float32) * road[..., None]
    fade = np.exp(-z / 14.0)
    colour *= (1 + 0.22 * fade * _texture(around.tile, x, z + gone, 7.0))[..., None]
    paint = np.clip(_paint(around, x, z + gone, pixel), 0, 1)[..., None]
    colour += (np.array((232, 230, 218), np.float32) - colour) * paint
    picture = sky.copy()
    picture[first:] = _lit(colour, light, x, z)
    labels = np.full((ROWS, COLUMNS), KIND["sky"], np.uint8)
    labels[first:] = np.where(road > 0.5, KIND["road"], KIND["land"])
    return np.clip(picture, 0, 255).astype(np.uint8), labels


def _lit(colour: FloatArray, light: Light, x: FloatArray, z: FloatArray) -> FloatArray:
    """Haze by day, headlights by night."""
    if light.night:
        beam = np.exp(-((z / 15.0) ** 2)) * np.exp(-((x / (1.6 + 0.38 * z)) ** 2))
        tint = np.array((0.94, 0.96, 1.0), np.float32)
        return np.asarray(colour * tint * (light.gain * (0.2 + 0.8 * beam))[..., None])
    clear = np.exp(-z / 90.0)[..., None]
    haze = np.array(light.haze, np.float32)
    return np.asarray(light.gain * (colour * clear + haze * (1 - clear)))


def _land(
    around: Surroundings, x: FloatArray, z: FloatArray, gone: float, pixel: FloatArray
) -> FloatArray:
    land = np.array(around.land, np.float32) * np.ones((*x.shape, 1), np.float32)
    fade = np.exp(-z / 25.0)
    if around.rows:  # furrows run along the road
        land *= (1 + 0.22 * np.sign(np.sin(x * 2.6)) * np.exp(-pixel / 0.12))[..., None]
    if around.paved:
        width = np.maximum(around.left - x, x - around.right)
        pavement = np.clip((2.2 - width) / pixel + 0.5, 0, 1)[..., None]
        land += (np.array((150, 148, 144), np.float32) - land) * pavement
        slab = (np.mod(z + gone, 1.5) < 0.12) * fade * 0.25
        land *= (1 - slab)[..., None]
    coarse = _texture(around.tile, x, z + gone, 2.2)
    return np.asarray(land * (1 + 0.5 * fade * coarse)[..., None])


def _paint(around: Surroundings, x: FloatArray, along: FloatArray, pixel: FloatArray) -> FloatArray:
    """How much of each pixel is white paint: two edge lines and a dashed middle."""
    lines = _band(x, around.left + 0.12, around.left + 0.3, pixel)
    lines = lines + _band(x, around.right - 0.3, around.right - 0.12, pixel)
    length, period = around.dash
    dash = _band(np.mod(along, period), 0.0, length, np.maximum(pixel * pixel * 40, 0.03))
    return lines + dash * _band(x, around.middle - 0.09, around.middle + 0.09, pixel)


def _band(x: FloatArray, low: float, high: float, pixel: FloatArray) -> FloatArray:
    """1 inside low..high, 0 outside, with a soft edge one pixel wide."""
    centre, half = (low + high) / 2, (high - low) / 2
    inside = np.clip((half - np.abs(x - centre)) / pixel + 0.5, 0, 1)
    return np.asarray(inside * np.minimum(1.0, 2 * half / pixel), dtype=np.float32)


def _texture(tile: FloatArray, x: FloatArray, along: FloatArray, density: float) -> FloatArray:
    u = np.floor(x * density).astype(np.int64) % TEXTURE
    v = np.floor(along * density).astype(np.int64) % TEXTURE
    return np.asarray(tile[u, np.broadcast_to(v, u.shape)], dtype=np.float32)


def _clouds(rng: np.random.Generator) -> FloatArray:
    """(120, 160) from 0 to 1: two octaves of smooth noise, stretched sideways."""
    cover = np.zeros((ROWS, COLUMNS), np.float32)
    for width, weight in ((5, 0.65), (12, 0.35)):
        coarse = (rng.random((width + 2, width)) * 255).astype(np.uint8)
        smooth = Image.fromarray(coarse).resize((COLUMNS, ROWS), Image.Resampling.BICUBIC)
        cover += weight * np.asarray(smooth, np.float32) / 255
    return np.asarray(np.clip((cover - 0.45) * 2.6, 0, 1), dtype=np.float32)


def _hills(
    rng: np.random.Generator, sky: npt.NDArray[np.float64], around: Surroundings, light: Light
) -> None:
    """Distant hills, darker than the sky above them; painted in place."""
    if rng.random() < 0.3:
        return
    across = np.linspace(0, 6.28, COLUMNS)
    waves = [np.sin(across * rate + rng.uniform(0, 6.28)) for rate in (0.7, 1.9, 4.3)]
    height = 4 + 2.6 * waves[0] + 1.4 * waves[1] + 0.5 * waves[2]
    land = np.array(around.land) * (0.14 if light.night else 0.5)
    colour = land if light.night else 0.5 * land + 0.5 * np.array(around.haze)
    top = around.horizon / 2 - np.maximum(height, 0.5)
    sky[np.arange(ROWS)[:, None] > top[None]] = colour


@dataclass(frozen=True, eq=False)
class Scene:
    """frames (20, 120, 160, 3) uint8; labels (20, 120, 160) uint8, numbers into camera.KINDS."""

    seed: int
    frames: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.uint8]
    truth: dict[str, str]
    distance: npt.NDArray[np.float32]  # (20,) metres to the lead vehicle, nan without one


def draw_truth(rng: np.random.Generator) -> dict[str, str]:
    """Attribute values, independent of each other; only those that apply."""

    def pick(name: str, *weights: float) -> str:
        return str(rng.choice(ATTRIBUTES[name], p=weights or None))

    truth = {"curve": pick("curve"), "lead vehicle": pick("lead vehicle", 0.28, 0.36, 0.36)}
    motion, side = pick("motion"), pick("guardrail side")
    if truth["lead vehicle"] != "none":
        truth["motion"] = motion
    truth["roadside"] = pick("roadside")
    if truth["roadside"] == "guardrail":
        truth["guardrail side"] = side
    truth["pedestrian"] = pick("pedestrian", 0.4, 0.3, 0.3)
    truth["time of day"] = pick("time of day", 0.6, 0.4)
    return truth


def render(seed: int) -> Scene:
    """The scene of a seed; the same seed gives the same bytes."""
    rng = np.random.default_rng([seed, 0x57A6E])
    truth = draw_truth(rng)
    night, side = truth["time of day"] == "night", {"left": -1, "right": 1}
    speed = float(rng.uniform(3.0, 5.0))
    turn = {"left": -1.0, "straight": 0.0, "right": 1.0}[truth["curve"]]
    bend = float(turn * rng.uniform(0.0048, 0.0092) + rng.uniform(-0.0004, 0.0004))
    gain = float(rng.uniform(0.8, 0.95) if night else rng.uniform(0.82, 1.08))
    around = make_surroundings(rng, truth["roadside"])
    light = Light(night, gain, around.haze)
    still = _roadside(rng, truth, around)
    lead, person = None, None
    if truth["lead vehicle"] != "none":
        lead = props.make_vehicle(rng, truth["lead vehicle"] == "truck", truth["motion"])
    if truth["pedestrian"] != "none":
        person = props.make_person(rng, side[truth["pedestrian"]], speed)
    # A camera on wheels: a slow sway and a little jitter, pixels at the drawn size.
    phase, rate = rng.uniform(0, 6.28, 2), rng.uniform(4, 9, 2)
    sway = np.sin(phase + rate * (np.arange(FRAMES)[:, None] / FPS)) * rng.uniform(0.9, 1.8, 2)
    shake = sway + rng.normal(0, 0.3, (FRAMES, 2))
    sky = paint_sky(rng, around, light)
    frames, labels = [], []
    for number, (up, aside) in enumerate(shake):
        time = number / FPS
        gone = speed * time
        camera = Camera(around.horizon + up, WIDTH / 2 + aside, bend)
        ground, label = paint_ground(around, light, camera, sky, gone)
        picture = Image.fromarray(ground).resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR)
        canvas = Canvas(picture, Image.fromarray(label), camera, light)
        for thing in still:
            if thing.z - gone + thing.length > 1.5:
                thing.draw(canvas, thing.z - gone, time)
        moving: list[tuple[float, Prop]] = []
        if lead:
            moving.append((lead.z + lead.speed * time, lead))
        if person and person.z - gone > 1.5:
            moving.append((person.z - gone, person))
        for z, thing in sorted(moving, key=lambda pair: -pair[0]):
            thing.draw(canvas, z, time)
        frames.append(_expose(picture, rng))
        labels.append(np.asarray(canvas.labels, dtype=np.uint8))
    times = np.arange(FRAMES, dtype=np.float32) / FPS
    distance = lead.z + lead.speed * times if lead else np.full(FRAMES, np.nan)
    return Scene(seed, np.stack(frames), np.stack(labels), truth, distance.astype(np.float32))


def _roadside(rng: np.random.Generator, truth: dict[str, str], around: Surroundings) -> list[Prop]:
    """What stands beside the road, the farthest first."""
    kind, things = truth["roadside"], props.make_posts(rng, REACH)
    if kind == "trees":
        things += props.make_trees(rng, 4.0, REACH)
    elif kind == "buildings":
        things += props.make_houses(rng, 2.0, REACH)
    elif kind == "guardrail":
        side = -1 if truth["guardrail side"] == "left" else 1
        edge = around.right if side > 0 else -around.left
        things += props.make_bales(rng, REACH, straw=False)
        things += props.make_rail(rng, side, edge + float(rng.uniform(0.35, 0.8)), REACH)
    else:
        things += props.make_bales(rng, REACH, straw=True)
    return sorted(things, key=lambda thing: -thing.z)


def _expose(picture: Image.Image, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Halves the picture and adds sensor noise in proportion to the light, so that the number of
    events that it causes does not give the hour away."""
    small = np.asarray(picture.reduce(2), dtype=np.float32)
    noise = rng.standard_normal(small.shape[:2], dtype=np.float32)[..., None] * 0.018
    return np.clip(np.rint(small * (1.0 + noise)), 0, 255).astype(np.uint8)
