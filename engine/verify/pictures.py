"""Checks of what the model is shown: the frames that each rule names, and pictures of other shapes.

The frame rules are computed and the files read a second time, only with PyAV and Pillow.  If that
cannot be compared pixel by pixel (for example a rotated clip), the check stays open.

A sample's pictures often have one shape, and are nearly square for the model: a grid with height
and width swapped, or a mask without padding, would then change nothing.  So a wide and a tall
picture are shown in every way, and the inputs of generate() are compared with those of the
processor that the checkpoint names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import numpy as np
import torch
from PIL import Image as Pictures
from PIL import ImageOps

from engine import media
from engine.errors import BadInput
from engine.models.adapter import Adapter
from engine.storage.schemas import Outcome
from engine.types import (
    DEFAULT_MEDIA,
    FRAME_RULES,
    ChosenFrames,
    Image,
    Media,
    MediaOptions,
    Sample,
)
from engine.verify import equality, named_processor
from engine.verify.answer_paths import Subject, rounding
from engine.verify.equality import Pieces
from engine.verify.stage_work import instead
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


TOKENS = 8


def shapes(
    subject: Subject, folder: Path, pieces: Pieces, doing: Callable[[str], None]
) -> CheckFinding:
    """The worst finding, with the sentences of all; open if the model takes no such pictures."""
    found = []
    for shown in _shown(subject):
        doing(f"answering about {shown.source}")
        given = (subject.sample, subject.request, folder / shown.source, subject.cancelled)
        with instead(media, "load", lambda *_, shown=shown: shown):
            try:
                shaped = Subject(subject.adapter, *given)
            except BadInput as error:
                sentence = f"{error} Pictures of other shapes are not covered."
                return CheckFinding("unresolved", sentence)
            found.append(_compared(shaped, pieces))
            shaped.cache.close()
    worst = max(found, key=lambda one: list(equality.OUTCOMES.values()).index(one.outcome))
    return replace(worst, sentence=" ".join(one.sentence for one in found))


def _shown(subject: Subject) -> Iterator[Media]:
    """Both in one prompt if the model is shown several; the frames of a clip have one shape."""
    kind, (wide, tall) = subject.adapter.kind, named_processor.pictures()
    if kind == "events":
        yield Media(kind, (wide, tall), "wide and tall", "a wide and a tall picture")
        return
    count, frames = (FRAMES, subject.media.frames) if kind == "video" else (1, None)
    if frames is not None:
        frames = ChosenFrames(tuple(range(count)), count, rate=frames.rate)
    for name, picture in (("wide", wide), ("tall", tall)):
        what = f"{count} {name} frames" if kind == "video" else f"a {name} picture"
        yield Media(kind, (picture,) * count, name, what, frames=frames)


def _compared(subject: Subject, pieces: Pieces) -> CheckFinding:
    adapter, name = subject.adapter, subject.media.source
    received: dict[str, Any] = {}
    config = replace(subject.greedy, max_new_tokens=min(TOKENS, subject.greedy.max_new_tokens))
    own = adapter.model.generate

    def generate(*given: Any, **inputs: Any) -> Any:
        received.update(inputs)
        return own(*given, **inputs)

    with instead(adapter.model, "generate", generate):
        plain = subject.plain(config)
    others = [getattr(subject, way)(config) for way in subject.ways if way != "plain"]
    noise = rounding(adapter, subject.prepared, plain)
    found, _ = equality.finding(plain, others, noise, pieces)
    found = replace(found, sentence=f"With {name}: {found.sentence}")
    if adapter.info.family != "transformers":  # the others give the model pixels alone
        return found
    wanted = named_processor.inputs(adapter, subject.media, subject.request.prompt)
    wrong = [key for key, value in wanted.items() if not _same(received.get(key), value)]
    if not wrong:
        return found
    sentence = f"With {name}: the model gets another {wrong[0]} than its processor makes."
    return replace(found, outcome="failed", sentence=sentence)


def _same(received: Any, wanted: torch.Tensor) -> bool:
    if not isinstance(received, torch.Tensor):
        return False
    return torch.equal(received, wanted.to(received.device, received.dtype))
