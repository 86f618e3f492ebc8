"""An encoder's output as named tensors, and back: what the feature cache keeps of a model's vision.

Boundary: transformers' output objects and Features; runs no model.  forward() reads only FIELDS of
an encoder's output, and each may be a tensor or lists of tensors, nested as in Qwen3-VL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers.modeling_outputs import BaseModelOutputWithPooling

from engine.types import Features, Prepared

ROWS = "pooler_output"  # the visual rows
FIELDS = (ROWS, "deepstack_features")


def features(out: Any) -> Features:
    """The tensors of an encoder's output that forward() reads."""
    found: dict[str, torch.Tensor] = {}
    for name in FIELDS:
        found |= _named(name, getattr(out, name, None))
    return Features(found)


def modality(prepared: Prepared) -> str:
    """Which encoder takes these pixels: that of clips, or that of images."""
    return "video" if prepared.pixel_name == "pixel_values_videos" else "image"


def _named(name: str, value: Any) -> dict[str, torch.Tensor]:
    """A tensor, or nested lists of tensors, by names such as "pooler_output.0"."""
    if value is None:
        return {}
    if isinstance(value, torch.Tensor):
        return {name: value}
    found: dict[str, torch.Tensor] = {}
    for index, one in enumerate(value):
        found |= _named(f"{name}.{index}", one)
    return found


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
    """The tensor, or the nested lists of tensors, that _named() took apart."""
    if name in tensors:
        return tensors[name]
    found: list[Any] = []
    while (value := _nested_item(tensors, f"{name}.{len(found)}")) is not None:
        found.append(value)
    return found or None


def _nested_item(tensors: Mapping[str, torch.Tensor], name: str) -> Any:
    known = any(one == name or one.startswith(f"{name}.") for one in tensors)
    return _nested(tensors, name) if known else None
