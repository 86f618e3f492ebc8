"""Does what the model is shown change what it says?

Boundary: decodes the prompt with features that are not its own: another sample's, and zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from engine.decoding import decode
from engine.models.adapter import Adapter
from engine.types import DecodeConfig, Prepared


@dataclass(frozen=True)
class Ablation:
    """The model with other features: how far its first logits moved, and what it then says."""

    shown: str
    moved: float
    ids: tuple[int, ...]


@torch.inference_mode()
def ablations(
    adapter: Adapter, prepared: Prepared, other: Prepared | None, config: DecodeConfig
) -> tuple[list[Ablation], tuple[int, ...]]:
    """What other features change, and the ids with the model's own features."""
    rows = adapter.encode(prepared)
    scores, own = _decode(adapter, prepared, rows, config)
    found = []
    for shown, others in (
        (_name(other, prepared), adapter.encode(_other(prepared, other))),
        ("zeros", torch.zeros_like(rows)),
    ):
        moved, ids = _decode(adapter, prepared, others, config)
        found.append(Ablation(shown, float((moved - scores).abs().max()), ids))
    return found, own


def _fits(other: Prepared | None, prepared: Prepared) -> bool:
    return other is not None and other.pixels.shape == prepared.pixels.shape


def _name(other: Prepared | None, prepared: Prepared) -> str:
    return "another sample" if _fits(other, prepared) else "the same pictures as negatives"


def _other(prepared: Prepared, other: Prepared | None) -> Prepared:
    """Another sample's pixels; where there is none of this shape, the sample's own, negated."""
    if other is not None and _fits(other, prepared):
        return replace(prepared, pixels=other.pixels)
    return replace(prepared, pixels=-prepared.pixels)


def _decode(
    adapter: Adapter, prepared: Prepared, rows: torch.Tensor, config: DecodeConfig
) -> tuple[torch.Tensor, tuple[int, ...]]:
    """The first scores [1, vocabulary] and the new ids."""
    embeds = adapter.embed(prepared, rows)
    scores, _ = decode.prefill(adapter.decoder, embeds)
    ids, _ = decode.generate(
        adapter.decoder,
        embeds,
        config,
        lambda _: None,
        lambda: False,
        rules=adapter.rules_for(prepared, config),
    )
    return scores, tuple(ids)
