"""One token through a LLaMA, without the work that transformers repeats for every token.

The operations and their order are those of transformers' LlamaModel for one token
(no mask, scaled_dot_product_attention), so scores are equal bit for bit.  Masks, argument checks,
module calls and copies of keys and values are left out.

For any other model (quantized, hooked, on several devices, another attention) `read` returns None,
and the model's own forward() is used.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional
from transformers import DynamicCache, LlamaModel
from transformers.cache_utils import DynamicLayer
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

AHEAD = 256  # tokens for which memory is allocated at once
_GROWS = ("dynamic", "longrope")  # rotary types that change with the length
_NOTES_OUTPUTS = "transformers.utils.output_capturing"  # hooks that change nothing


class RoomyLayer(DynamicLayer):
    """Keys and values [B, heads, S, D] as views of a larger buffer.  A new token is written after
    the others; transformers' own layer copies all of them instead."""

    keys: Any
    values: Any

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._rooms: tuple[torch.Tensor, torch.Tensor] | None = None
        self._last: torch.Tensor | None = None  # the keys that the last update left

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = self.get_seq_length()
        rooms, end = self._rooms, start + key_states.shape[2]
        if rooms is None or end > rooms[0].shape[2] or not self._lies_in(rooms[0]):
            rooms = self._rooms = (
                _room(key_states, self.keys, start, end),
                _room(value_states, self.values, start, end),
            )
        rooms[0].narrow(2, start, end - start).copy_(key_states)
        rooms[1].narrow(2, start, end - start).copy_(value_states)
        self.keys = self._last = rooms[0].narrow(2, 0, end)
        self.values = rooms[1].narrow(2, 0, end)
        return self.keys, self.values

    def _lies_in(self, room: torch.Tensor) -> bool:
        """Whether keys and values still lie in the buffer (not cropped, no rows selected)."""
        keys: torch.Tensor = self.keys
        if keys is self._last:
            return True
        return keys.data_ptr() == room.data_ptr() and keys.shape[0] == room.shape[0]


def _room(like: torch.Tensor, kept: torch.Tensor, start: int, end: int) -> torch.Tensor:
    batch, heads, _, size = like.shape
    room = like.new_empty((batch, heads, end + AHEAD, size))
    if start:
        room[:, :, :start] = kept
    return room


def cache(text_config: Any) -> DynamicCache:
    """An empty cache whose plain layers can grow without copies."""
    made = DynamicCache(config=text_config)
    made.layers = [RoomyLayer() if type(one) is DynamicLayer else one for one in made.layers]
    return made


class Layer(NamedTuple):
    """The weights of one decoder layer, [out, in] as Linear has them."""

    before: torch.Tensor  # weight of the norm before attention
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    o: torch.Tensor
    between: torch.Tensor  # weight of the norm before the MLP
    gate: torch.Tensor
    up: torch.Tensor
    down: torch.Tensor


_MODULES = (  # of a LlamaDecoderLayer, in the order of Layer
    *("input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    *("self_attn.o_proj", "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj"),
    "mlp.down_proj",
)


@dataclass(frozen=True, eq=False)
class Llama:
    """The weights of the model, and the rotations of the positions so far."""

    embedding: torch.Tensor
    layers: tuple[Layer, ...]
    norm: torch.Tensor
    eps: float
    heads: int
    head_dim: int
    rotary: nn.Module
    _rotations: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)

    def takes(self, token: torch.Tensor, kept: DynamicCache) -> bool:
        """Whether this is one token of one answer that attends to all keys and values."""
        return token.shape == (1, 1) and isinstance(kept.layers[0], DynamicLayer)

    def token(self, token: torch.Tensor, kept: DynamicCache) -> torch.Tensor:
        """token [1, 1] -> last hidden state [1, 1, hidden]; the cache grows by one."""
        rotation = self._rotation(kept.get_seq_length())
        hidden = functional.embedding(token, self.embedding)
        for layer, place in zip(self.layers, kept.layers, strict=True):
            hidden = hidden + self._attention(layer, place, hidden, rotation)
            normed = rms_norm(hidden, layer.between, self.eps)
            gate = functional.silu(functional.linear(normed, layer.gate))
            up = functional.linear(normed, layer.up)
            hidden = hidden + functional.linear(gate * up, layer.down)
        return rms_norm(hidden, self.norm, self.eps)

    def _attention(
        self,
        layer: Layer,
        place: Any,
        hidden: torch.Tensor,
        rotation: tuple[torch.Tensor, torch.Tensor],
    ) -> torch.Tensor:
        shape = (1, self.heads, 1, self.head_dim)
        normed = rms_norm(hidden, layer.before, self.eps)
        q = rotate(functional.linear(normed, layer.q).view(shape), *rotation)
        k = rotate(functional.linear(normed, layer.k).view(shape), *rotation)
        keys, values = place.update(k, functional.linear(normed, layer.v).view(shape))
        mixed = functional.scaled_dot_product_attention(q, keys, values, scale=self.head_dim**-0.5)
        return functional.linear(mixed.view(1, 1, -1), layer.o)

    def _rotation(self, position: int) -> tuple[torch.Tensor, torch.Tensor]:
        """cos and signed sin [D] of a position; computed for several positions at once."""
        if position not in self._rotations:
            cos, sin = self.rotations(position, position + AHEAD)
            pairs = zip(cos.unbind(), sin.unbind(), strict=True)
            self._rotations.update(enumerate(pairs, start=position))
        return self._rotations[position]

    def rotations(self, start: int, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        """cos and signed sin [end - start, D] of these positions, by the model's own module."""
        positions = torch.arange(start, end, device=self.embedding.device)[None]
        cos, sin = self.rotary(self.embedding[:1], positions)
        half = self.head_dim // 2
        return cos[0], torch.cat((-sin[0, :, :half], sin[0, :, half:]), dim=-1)


def rms_norm(hidden: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """As LlamaRMSNorm: computed in float32, converted back before the weight."""
    wide = hidden.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return weight * wide.to(hidden.dtype)


def rotate(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """As apply_rotary_pos_emb, but the sign is part of `sin`."""
    return heads * cos + heads.roll(heads.shape[-1] // 2, -1) * sin


def read(model: nn.Module) -> Llama | None:
    """The weights of a plain LLaMA; None if its forward() would run anything else."""
    if not isinstance(model, LlamaModel) or not _is_plain(model):
        return None
    return Llama(
        embedding=model.embed_tokens.weight,
        layers=tuple(
            Layer(*(layer.get_submodule(name).weight for name in _MODULES))
            for layer in model.layers
        ),
        norm=model.norm.weight,
        eps=model.norm.variance_epsilon,
        heads=model.config.num_attention_heads,
        head_dim=model.layers[0].self_attn.head_dim,
        rotary=model.rotary_emb,
    )


def _is_plain(model: Any) -> bool:
    config = model.config
    inner = [model.embed_tokens, model.norm, model.rotary_emb]
    inner += [part for layer in model.layers for part in layer.modules()]
    linear = [one for one in inner if hasattr(one, "in_features")]
    return (
        config._attn_implementation == "sdpa"
        and config.hidden_act == "silu"
        and config.num_key_value_heads == config.num_attention_heads
        and config.rope_parameters["rope_type"] not in _GROWS
        and all(type(layer) is LlamaDecoderLayer for layer in model.layers)
        and all(type(one) is nn.Linear and one.bias is None for one in linear)
        and not any(_is_changed(one) for one in (model, *inner))
        and not any(one._forward_pre_hooks for one in inner)
        and len({weight.device for one in inner for weight in one.parameters(recurse=False)}) == 1
    )


def _is_changed(module: nn.Module) -> bool:
    """Whether a module differs from its class: hooks, or another forward()."""
    return "forward" in vars(module) or any(
        getattr(hook, "__module__", "") != _NOTES_OUTPUTS for hook in module._forward_hooks.values()
    )
