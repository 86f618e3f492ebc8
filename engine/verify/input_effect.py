"""Checks whether the visual input changes the model's logits and answer.

Boundary: decodes the prompt with replaced features: another sample's, and zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from engine.decoding import decode
from engine.models.adapter import Adapter
from engine.types import DecodeConfig, Features, Prepared


@dataclass(frozen=True)
class Ablation:
    """The effect of replaced features: the change of the first logits, and the answer."""

    shown: str
    moved: float
    ids: tuple[int, ...]


@torch.inference_mode()
def ablations(
    adapter: Adapter, prepared: Prepared, other: Prepared | None, config: DecodeConfig
) -> tuple[list[Ablation], tuple[int, ...]]:
    """(the effects of replaced features, the ids with the original features)."""
    features = adapter.encode(prepared)
    scores, own = _decode(adapter, prepared, features, config)
    found = []
    for shown, others in (
        (_name(other, prepared), adapter.encode(_other(prepared, other))),
        ("zeros", features.changed(torch.zeros_like)),
    ):
        moved, ids = _decode(adapter, prepared, others, config)
        found.append(Ablation(shown, float((moved - scores).abs().max()), ids))
    return found, own


def _fits(other: Prepared | None, prepared: Prepared) -> bool:
    return other is not None and other.pixels.shape == prepared.pixels.shape


def _name(other: Prepared | None, prepared: Prepared) -> str:
    return "another sample" if _fits(other, prepared) else "the same pictures as negatives"


def _other(prepared: Prepared, other: Prepared | None) -> Prepared:
    """Another sample's pixels if their shape fits, else the sample's own pixels, negated."""
    if other is not None and _fits(other, prepared):
        return replace(prepared, pixels=other.pixels)
    return replace(prepared, pixels=-prepared.pixels)


def _decode(
    adapter: Adapter, prepared: Prepared, features: Features, config: DecodeConfig
) -> tuple[torch.Tensor, tuple[int, ...]]:
    """The first scores [1, vocabulary] and the new ids."""
    prompt = adapter.embed(prepared, features)
    scores, _ = decode.prefill(adapter.decoder, prompt)
    ids, _ = decode.generate(
        adapter.decoder,
        prompt,
        config,
        lambda _: None,
        lambda: False,
        rules=adapter.rules_for(prepared, config),
    )
    return scores, tuple(ids)
