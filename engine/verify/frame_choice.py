"""Checks that the model is shown the frames that each rule names.

Boundary: computes the rules and reads the files a second time, only with PyAV and Pillow.  If it
cannot compare pixel by pixel (for example a rotated clip), the check stays open.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import av
import numpy as np
from PIL import Image as Pictures
from PIL import ImageOps

from engine import media
from engine.models.adapter import Adapter
from engine.storage.schemas import Outcome
from engine.types import DEFAULT_MEDIA, FRAME_RULES, Image, Media, MediaOptions, Sample
from engine.verify.verdict import CheckFinding

FRAMES = 8
MANY_BYTES = 2**29  # frames that need more memory are not compared


def named(count: int, rule: str) -> list[int]:
    """The frames that a rule names out of `count`, by integer arithmetic.

    all: every frame; middle: count // 2; arange: the k-th of 8 is floor(k * count / 8); spread
    and linspace: floor(k * (count - 1) / 7), but with fewer frames spread shows each once.
    """
    if rule == "all" or (rule == "spread" and count < FRAMES):
        return list(range(count))
    if rule == "middle":
        return [count // 2]
    if rule == "arange":
        return [k * count // FRAMES for k in range(FRAMES)]
    return [k * (count - 1) // (FRAMES - 1) for k in range(FRAMES)]


def frames(adapter: Adapter, sample: Sample) -> CheckFinding:
    """Compares the pictures of every rule with the files; only videos have several rules."""
    video = adapter.kind == "video"
    rules = {"events": ("all",), "image": ("middle",), "video": FRAME_RULES}[adapter.kind]
    faults: list[str] = []
    open_: list[str] = []
    for rule in rules:
        shown = media.load(
            sample, adapter.kind, MediaOptions(frames=rule) if video else DEFAULT_MEDIA
        )
        if shown.source.startswith("raw events"):
            continue  # pictures drawn from events are listed as not proved
        pictures = _pictures(sample, shown)
        if pictures is None:
            open_.append(f"{rule}: the frames of {shown.source} were not read a second time.")
            continue
        wrong, unlike = _compare(shown.images, pictures, rule)
        faults += wrong
        open_ += unlike
    evidence = {"rules": list(rules) if video else [], "faults": faults, "open": open_}
    outcome: Outcome = "failed" if faults else "unresolved" if open_ else "passed"
    good = f"The pictures equal the frames that the rule names ({', '.join(rules)}), read again."
    return CheckFinding(outcome, (*faults, *open_, good)[0], len(faults), 0, "faults", evidence)


def _pictures(sample: Sample, shown: Media) -> Sequence[Image] | None:
    """All frames of the source that was shown, or None if they cannot be read again."""
    if shown.source.startswith("MP4") and sample.mp4 is not None:
        return _decoded(sample.mp4)
    paths = sample.images
    if shown.kind == "events":
        paths = sample.event_images
    elif shown.source.startswith("frame folder"):
        paths = sample.frames
    return [_opened(path) for path in paths] if paths else None


def _opened(path: Path) -> Image:
    with Pictures.open(path) as picture:
        upright = ImageOps.exif_transpose(picture) if picture.format == "JPEG" else picture
        return np.asarray(upright.convert("RGB"))


def _decoded(path: Path) -> list[Image] | None:
    """All frames, or None if they need more than MANY_BYTES."""
    found: list[Image] = []
    with av.open(str(path)) as clip:
        for frame in clip.decode(clip.streams.video[0]):
            found.append(np.asarray(frame.to_ndarray(format="rgb24"), np.uint8))
            if len(found) * found[0].nbytes > MANY_BYTES:
                return None
    return found


def _compare(
    shown: Sequence[Image], pictures: Sequence[Image], rule: str
) -> tuple[list[str], list[str]]:
    """(faults: pictures that are other frames, faults: pictures that equal no frame)."""
    places = named(len(pictures), rule)
    if len(shown) != len(places):
        return [f"{rule}: {len(shown)} pictures are shown; the rule names {len(places)}."], []
    wrong, unlike = [], []
    for number, (one, place) in enumerate(zip(shown, places, strict=True), 1):
        if np.array_equal(one, pictures[place]):
            continue
        equal = (other for other, frame in enumerate(pictures) if np.array_equal(one, frame))
        other = next(equal, None)
        if other is None:
            unlike.append(f"{rule}: picture {number} equals no frame as PyAV decodes it.")
        else:
            wrong.append(f"{rule}: picture {number} is frame {other}, but the rule names {place}.")
    return wrong, unlike
