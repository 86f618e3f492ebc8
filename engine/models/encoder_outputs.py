"""Stage 3 of any model: the modules that do its work, and their output as named tensors, and back.

forward() reads only FIELDS of an encoder's output, and each may be a tensor or lists of tensors,
nested as in Qwen3-VL.  The feature cache keeps the named tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import Any

import torch
from transformers.modeling_outputs import BaseModelOutputWithPooling

from engine.decoding.decode import Decoder
from engine.types import Features, Prepared

ROWS = "pooler_output"  # the visual rows
FIELDS = (ROWS, "deepstack_features")
_NAMES = ("vision", "visual", "image")  # how the modules of a tower are called


def modality(prepared: Prepared) -> str:
    """Which encoder takes these pixels: that of clips, or that of images."""
    return "video" if prepared.pixel_name == "pixel_values_videos" else "image"


def features(out: Any) -> Features:
    """The tensors of an encoder's output that forward() reads."""
    pairs = (_named(name, getattr(out, name, None)) for name in FIELDS)
    return Features(dict(chain.from_iterable(pairs)))


def _named(name: str, value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """A tensor, or nested lists of tensors, by names such as "pooler_output.0"."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif value is not None:
        for index, one in enumerate(value):
            yield from _named(f"{name}.{index}", one)


def rows(found: Features) -> int:
    """The number of visual rows in all tensors together."""
    parts = [one for name, one in found.tensors.items() if name.startswith(ROWS)]
    return sum(one.numel() // max(one.shape[-1], 1) for one in parts)


def given(prepared: Prepared, found: Features) -> dict[str, Any]:
    """The keyword argument with which forward() and generate() take features."""
    out = BaseModelOutputWithPooling()
    for name in FIELDS:
        if (value := _nested(found.tensors, name)) is not None:
            out[name] = value
    return {"mm_encoder_outputs": {modality(prepared): out}}


def _nested(tensors: Mapping[str, torch.Tensor], name: str) -> Any:
    """The tensor, or the nested lists of tensors, that _named() took apart; None without any."""
    if name in tensors:
        return tensors[name]
    found: list[Any] = []
    while any(f"{one}.".startswith(f"{name}.{len(found)}.") for one in tensors):
        found.append(_nested(tensors, f"{name}.{len(found)}"))
    return found or None


def outside_language(model: Any, decoder: Decoder) -> Iterator[torch.nn.Module]:
    """The modules that are neither in the language model nor around it, nor the head.

    A few old models have their tower inside the language model: there the names decide.
    """
    if decoder.language_model in (model, model.base_model):
        names = ((name.split(".")[-1], one) for name, one in model.named_modules())
        yield from (one for name, one in names if name.startswith(_NAMES))
        return
    parts = (decoder.language_model, decoder.head)
    inside = {id(one) for part in parts for one in part.modules()}
    for module in model.modules():
        if id(module) not in inside and not any(id(one) in inside for one in module.modules()):
            yield module


@contextmanager
def outermost(modules: Iterable[torch.nn.Module]) -> Iterator[list[torch.nn.Module]]:
    """Inside a `with`: which of these modules are called while none of the others is running."""
    called: list[torch.nn.Module] = []
    running: list[torch.nn.Module] = []

    def enter(module: torch.nn.Module, *_: Any) -> None:
        if not running and module not in called:
            called.append(module)
        running.append(module)

    with ExitStack() as stack:
        for module in modules:
            stack.callback(module.register_forward_pre_hook(enter).remove)
            stack.callback(module.register_forward_hook(lambda *_: running.pop() and None).remove)
        yield called
