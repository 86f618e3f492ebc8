"""One-second driving scenes whose content is known, drawn from a seed."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from engine.analysis.answer_reading import ATTRIBUTES
from engine.demo import props
from engine.demo.backdrop import Surroundings, make_surroundings, paint_ground, paint_sky
from engine.demo.camera import HEIGHT, WIDTH, Camera, Canvas, Light
from engine.demo.props import Prop

FPS = 20
FRAMES = 20
REACH = 60.0  # metres: nothing stands farther away


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
    pictures, maps = np.stack(frames), np.stack(labels)
    return Scene(seed, pictures, maps, truth, distance.astype(np.float32))


def _roadside(
    rng: np.random.Generator, truth: dict[str, str], around: Surroundings
) -> list[props.Prop]:
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
    noisy = small * (1.0 + noise)
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
