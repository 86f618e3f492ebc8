"""Reuse again: the beginnings of prompts that a model has read, kept in memory.

A prefix is all of a prompt up to and including its last visual row: what a question cannot change.
Its keys and values, for each layer of the language model, are what a second question about the same
sample goes on from; neither pixels nor visual rows are needed then.

Boundary: holds tensors and counts their bytes; computes nothing and imports no torch by itself.
A prefix is found by its content's key alone and leaves when the model it came from does.
"""

from __future__ import annotations

import hashlib
import json
import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from engine import settings
from engine.machine import memory

if TYPE_CHECKING:
    import torch
    from transformers import DynamicCache

    from engine.models.adapter import Adapter
    from engine.types import Prepared


@dataclass(frozen=True, eq=False)
class Prefix:
    """Keys and values [1, heads, P, width] of each layer, and what reading them took.

    `took` maps "preprocess", "vision" and "decode.prefill" to milliseconds, when they were
    computed; the prefill is that of the whole prompt then asked, and of no
    other question.  `cold`: in a model's first run.
    """

    layers: tuple[tuple[torch.Tensor, torch.Tensor], ...]
    took: Mapping[str, float]
    cold: bool

    @property
    def tokens(self) -> int:
        return int(self.layers[0][0].shape[-2])

    @property
    def bytes(self) -> int:
        return sum(int(part.nbytes) for layer in self.layers for part in layer)

    def begin(self, config: Any) -> DynamicCache:
        """A cache of its own that has read the prefix; what is kept here is never written to."""
        cache = empty(config)
        for index, (keys, values) in enumerate(self.layers):
            cache.update(keys, values, index)  # which copies them
        return cache


def empty(config: Any) -> DynamicCache:
    """A cache that has read nothing yet."""
    from engine.decoding import llama

    return llama.cache(config)


def cut(cache: DynamicCache, tokens: int, took: Mapping[str, float], cold: bool) -> Prefix:
    """The first tokens of a cache that has read more; copied, so that the rest can be freed."""
    layers = tuple(
        (layer.keys[..., :tokens, :].clone(), layer.values[..., :tokens, :].clone())
        for layer in cache.layers
    )
    return Prefix(layers, took, cold)


def key(adapter: Adapter, prepared: Prepared) -> str:
    """Hex text that changes with all that a prefix depends on, and not with the question.

    That is what the visual rows depend on (FeatureSpec), the ids before and between them, and the
    device itself.
    """
    from engine.pipeline import feature_cache as cache

    ids = prepared.input_ids[0].tolist()
    ids = ids[: len(ids) - adapter.question_ids(prepared).shape[1]]
    parts = [cache.key(adapter.feature_spec(prepared)), str(adapter.device), ids]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=20).hexdigest()


def tokens(adapter: Adapter, prepared: Prepared) -> int:
    """Positions of the prefix in the context, visual rows in place."""
    return prepared.context_tokens - int(adapter.question_ids(prepared).shape[1])


@dataclass(frozen=True, eq=False)
class _Held:
    prefix: Prefix
    owner: weakref.ref[Any]


class Prefixes:
    """Prefixes up to a number of bytes, the least recently used leaving first."""

    def __init__(self, limit_mb: int) -> None:
        self.limit_bytes = limit_mb * 2**20
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._lock = threading.RLock()  # an owner may be collected while it is held

    def __len__(self) -> int:
        return len(self._held)

    @property
    def bytes(self) -> int:
        with self._lock:
            return sum(held.prefix.bytes for held in self._held.values())

    def find(self, name: str) -> Prefix | None:
        """The prefix of this key, now the most recently used one."""
        with self._lock:
            held = self._held.get(name)
            if held is not None:
                self._held.move_to_end(name)
            return held.prefix if held else None

    def keep(self, name: str, prefix: Prefix, owner: object) -> bool:
        """Keeps it for as long as its owner lives and there is room; False if it is too large."""
        if prefix.bytes > self.limit_bytes:
            return False
        with self._lock:
            self._held.pop(name, None)
            self._held[name] = _Held(prefix, weakref.ref(owner, lambda _: self._drop(name)))
            while self.bytes > self.limit_bytes:
                self._held.popitem(last=False)
        return True

    def clear(self) -> int:
        """Forgets all; how many there were."""
        with self._lock:
            count = len(self._held)
            self._held.clear()
            return count

    def _drop(self, name: str) -> None:
        """An owner has gone; its place may have been taken by another model's equal prefix."""
        with self._lock:
            held = self._held.get(name)
            if held is not None and held.owner() is None:
                del self._held[name]


@lru_cache(maxsize=1)
def store() -> Prefixes:
    """The one store of this process."""
    prefixes = Prefixes(settings.load().prefix_limit_mb)
    memory.add_reserve(prefixes)
    return prefixes
