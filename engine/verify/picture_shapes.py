"""Compares answers to a wide and a tall picture, and what the model is given besides their pixels.

A sample's pictures often have one shape, and are nearly square for the model: a grid with height
and width swapped, or a mask without padding, would then change nothing.

Boundary: answers in every way as answer_paths.py does; the inputs of generate() are compared with
those of the processor that the checkpoint names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from engine import media
from engine.errors import BadInput
from engine.types import ChosenFrames, Media
from engine.verify import equality, named_processor
from engine.verify.answer_paths import Subject, rounding
from engine.verify.equality import Pieces
from engine.verify.frame_choice import FRAMES
from engine.verify.stage_work import instead
from engine.verify.verdict import CheckFinding

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
