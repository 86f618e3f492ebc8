"""Checks of what the model is shown: pixels, and pictures of other shapes.

Pixels are compared with those of the image processor that a checkpoint names, which is loaded
independently of the adapter: from engine/models only the folder's path is used, so a wrong class or
setting there shows up as a difference here.

A sample's pictures often have one shape, and are nearly square for the model: a grid with height
and width swapped, or a mask without padding, would then change nothing.  So a wide and a tall
picture are shown in every way, and the inputs of generate() are compared with those of the
processor that the checkpoint names.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image as Pictures
from transformers import AutoImageProcessor, CLIPImageProcessorPil
from transformers.video_utils import VideoMetadata

from engine.errors import BadInput
from engine.models import auto_processor, checkpoint, registry
from engine.models.adapter import Adapter
from engine.types import ChosenFrames, Image, Media, ModelInfo
from engine.verify import checks
from engine.verify.answer_paths import Subject, rounding
from engine.verify.checks import Pieces
from engine.verify.verdict import CheckFinding

FRAMES = 8
TOKENS = 8  # of the answers to other shapes
_NAMING = ('"image_processor_type"', '"feature_extractor_type"')
_SHAPES = ((60, 180), (180, 60))  # height and width: padding and cropping differ between them


def pixels(subject: Subject) -> tuple[bool, bool]:
    """Whether ours equal the named processor's pixels, and whether ours were used.

    Compared on the sample's pictures, and on a wide and a tall one.
    """
    adapter, equal = subject.adapter, True
    for shown in (subject.media, *(Media("image", (one,), "", "noise") for one in noise())):
        named = inputs(adapter, shown, "What?")
        wanted = next(made for name, made in named.items() if name.startswith("pixel_values"))
        equal &= torch.equal(adapter.pixels_of(shown), wanted)
    ours, used = adapter.pixels_of(subject.media), subject.prepared.pixels
    return equal, torch.equal(used, ours.to(used.device, used.dtype))


def inputs(adapter: Adapter, shown: Media, question: str) -> dict[str, torch.Tensor]:
    """What the named processor makes of the pictures: pixels, and grids, sizes or masks of them."""
    info, images = adapter.info, shown.images
    if info.family == "transformers":
        return _of_a_prompt(adapter, shown, question)
    return dict(
        _processor(info)(list(images), return_tensors="pt", input_data_format="channels_last")
    )


def _of_a_prompt(adapter: Any, shown: Media, question: str) -> dict[str, torch.Tensor]:
    """Those that the processor makes with a prompt of the checkpoint's own chat template."""
    info, images = adapter.info, shown.images
    processor = auto_processor.load(info, checkpoint.locate(registry.entry(info.name)))
    given: dict[str, Any]
    if rate := adapter.clip_rate(shown):
        text = adapter.prompt_text(question, 1, "video")
        clip = VideoMetadata(len(images), fps=rate, frames_indices=list(range(len(images))))
        given = {"videos": [np.stack(images)], "video_metadata": [clip], "do_sample_frames": False}
    else:
        text = adapter.prompt_text(question, len(images))
        given = {"images": [[Pictures.fromarray(image) for image in images]]}
    with warnings.catch_warnings():
        # PaliGemma's class converts a tensor in a way that numpy has deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        made = processor(text=[text], return_tensors="pt", **given)
    each_token = made["input_ids"].shape  # what has one value per token belongs to the prompt
    return {name: value for name, value in made.items() if value.shape[:2] != each_token}


def noise() -> list[Image]:
    """A wide and a tall picture of noise, which processors treat differently."""
    random = np.random.default_rng(0)
    return [random.integers(0, 256, (*shape, 3), dtype=np.uint8) for shape in _SHAPES]


def _processor(info: ModelInfo) -> Any:
    folder = checkpoint.locate(registry.entry(info.name))
    if info.family == "eventgpt" and (made := _published(info, folder)) is not None:
        return made
    return AutoImageProcessor.from_pretrained(
        folder, backend="pil", local_files_only=True, trust_remote_code=False
    )


def _published(info: ModelInfo, folder: Path) -> Any:
    """CLIP's processor at the tower's size if an EventGPT folder names none; otherwise None.

    transformers knows no processor for EventGPT's model_type.
    """
    files = [folder / name for name in ("preprocessor_config.json", "processor_config.json")]
    texts = [file.read_text(encoding="utf-8") for file in files if file.is_file()]
    if any(key in text for text in texts for key in _NAMING):
        return None
    if texts:
        return CLIPImageProcessorPil.from_pretrained(folder, local_files_only=True)
    assert info.tower is not None  # read from config.json
    side = info.tower.image_size
    return CLIPImageProcessorPil(
        size={"shortest_edge": side}, crop_size={"height": side, "width": side}
    )


def shapes(
    subject: Subject, folder: Path, pieces: Pieces, doing: Callable[[str], None]
) -> CheckFinding:
    """The worst finding, with the sentences of all; open if the model takes no such pictures."""
    found = []
    for shown in _shown(subject):
        doing(f"answering about {shown.source}")
        given = (subject.sample, subject.request, folder / shown.source, subject.cancelled)
        try:
            shaped = Subject(subject.adapter, *given, shown)
        except BadInput as error:
            sentence = f"{error} Pictures of other shapes are not covered."
            return CheckFinding("unresolved", sentence)
        found.append(_compared(shaped, pieces))
        shaped.cache.close()
    worst = max(found, key=lambda one: list(checks.OUTCOMES.values()).index(one.outcome))
    return replace(worst, sentence=" ".join(one.sentence for one in found))


def _shown(subject: Subject) -> Iterator[Media]:
    """Both in one prompt if the model is shown several; the frames of a clip have one shape."""
    kind, (wide, tall) = subject.adapter.kind, noise()
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

    adapter.model.generate = generate
    try:
        plain = subject.plain(config)
    finally:
        del adapter.model.generate
    pairs = [(plain, getattr(subject, way)(config)) for way in subject.ways if way != "plain"]
    found, _ = checks.finding(pairs, rounding(adapter, subject.prepared, plain), pieces)
    found = replace(found, sentence=f"With {name}: {found.sentence}")
    if adapter.info.family != "transformers":  # the others give the model pixels alone
        return found
    wanted = inputs(adapter, subject.media, subject.request.prompt)
    for key, value in wanted.items():
        got = received.get(key)
        if not isinstance(got, torch.Tensor) or not torch.equal(
            got, value.to(got.device, got.dtype)
        ):
            sentence = f"With {name}: the model gets another {key} than its processor makes."
            return replace(found, outcome="failed", sentence=sentence)
    return found
