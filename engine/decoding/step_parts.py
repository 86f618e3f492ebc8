"""One token through a LLaMA, written for a compiler: plain operations on memory of a fixed length.

The step has three parts: what precedes the layers, one layer, and what follows them.  Each takes
what differs between calls as arguments, so that a compiler may compile a part once and call it for
every layer.  Matrix times vector is written as product and sum, which a compiler fuses with what
surrounds it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from engine.decoding.llama import Layer, Llama, rms_norm, rotate

Step = Callable[..., tuple[torch.Tensor, torch.Tensor]]


class Place(NamedTuple):
    """Where the token stands: its index [1], its rotation [1, D], and what comes later [L]."""

    position: torch.Tensor
    cos: torch.Tensor
    sin: torch.Tensor
    later: torch.Tensor


def step(
    llama: Llama,
    head: torch.Tensor,
    eos: list[int],
    limit: int,
    part: Callable[[Any], Any] = lambda part: part,
) -> Step:
    """The step as a function of its memory; `part` is applied to its three parts."""
    begin, layer = part(_beginning(llama, limit)), part(_layer(llama))
    end, layers = part(_end(llama, head, eos)), llama.layers

    def run(
        token: torch.Tensor,
        position: torch.Tensor,
        held: torch.Tensor,
        keys: Sequence[torch.Tensor],
        values: Sequence[torch.Tensor],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        hidden, place = begin(token, position, keys[0])
        for weights, kept_keys, kept_values in zip(layers, keys, values, strict=True):
            hidden = layer(hidden, weights, kept_keys, kept_values, place)
        scores, best = end(hidden, position, held)
        return scores, best

    return run


def _beginning(llama: Llama, limit: int) -> Callable[..., tuple[torch.Tensor, Place]]:
    """What precedes the layers; it holds the rotations."""
    embedding, (cosines, sines) = llama.embedding, llama.rotations(0, limit)

    def begin(
        token: torch.Tensor, position: torch.Tensor, keys: torch.Tensor
    ) -> tuple[torch.Tensor, Place]:
        hidden = functional.embedding(token, embedding)[0]  # [hidden]
        cos, sin = cosines.index_select(0, position), sines.index_select(0, position)  # [1, D]
        later = torch.arange(keys.shape[1], device=position.device) > position  # [L]
        return hidden, Place(position, cos, sin, later)

    return begin


def _layer(llama: Llama) -> Callable[..., torch.Tensor]:
    """One layer, with its weights as arguments."""
    heads, size, eps = llama.heads, llama.head_dim, llama.eps

    def layer(
        hidden: torch.Tensor, weights: Layer, keys: torch.Tensor, values: torch.Tensor, place: Place
    ) -> torch.Tensor:
        normed = rms_norm(hidden, weights.before, eps)
        q = rotate(_times(weights.q, normed).view(heads, size), place.cos, place.sin)
        k = rotate(_times(weights.k, normed).view(heads, size), place.cos, place.sin)
        v = _times(weights.v, normed).view(heads, size)
        keys.index_copy_(1, place.position, k[:, None])
        values.index_copy_(1, place.position, v[:, None])
        mixed = _attend(q, keys, values, place.later)
        hidden = hidden + _times(weights.o, mixed.view(-1))
        normed = rms_norm(hidden, weights.between, eps)
        gate = functional.silu(_times(weights.gate, normed))
        return hidden + _times(weights.down, gate * _times(weights.up, normed))

    return layer


def _end(
    llama: Llama, head: torch.Tensor, eos: list[int]
) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
    """What follows the layers: the scores, and the best token that may follow; the position grows
    by one."""
    norm, eps = llama.norm, llama.eps
    ends = torch.zeros(len(head), dtype=torch.bool, device=head.device)
    ends[eos] = True

    def end(
        hidden: torch.Tensor, position: torch.Tensor, held: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        scores = _times(head, rms_norm(hidden, norm, eps)).float()
        allowed = scores.masked_fill(ends & (position < held), -torch.inf)
        position.add_(1)
        return scores[None], allowed.argmax(-1, keepdim=True)

    return end


def _times(weight: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """weight [out, in], vector [in] -> [out], in a form that the compiler can fuse."""
    return (weight * vector).sum(-1)


def _attend(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, later: torch.Tensor
) -> torch.Tensor:
    """q [heads, D], keys and values [heads, L, D], later [L] -> [heads, D]."""
    scores = (keys * q[:, None]).sum(-1) * q.shape[-1] ** -0.5
    shares = scores.masked_fill(later, -torch.inf).softmax(-1, dtype=torch.float32)
    mixed: torch.Tensor = (shares.to(q.dtype)[..., None] * values).sum(1)
    return mixed
