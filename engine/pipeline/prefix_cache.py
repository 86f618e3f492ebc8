"""Prompt prefixes kept in memory, so that a second question about a sample need not repeat them.

A prefix is the part of a prompt up to and including its last visual row; it does not depend on the
question.  The store keeps its keys and values for each layer of the language model.  A second
question about the same sample continues from them and needs neither pixels nor visual rows.

A prefix is found by the key of its content, and is removed when its model is unloaded.
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
    """Keys and values [1, heads, P, width] of each layer, and the time to compute them.

    `stage_ms` maps "preprocess", "vision" and "decode.prefill" to milliseconds of the computing
    run; the prefill is that of its whole prompt.  `cold`: computed in the model's first run.
    """

    layers: tuple[tuple[torch.Tensor, torch.Tensor], ...]
    stage_ms: Mapping[str, float]
    cold: bool

    @property
    def tokens(self) -> int:
        return int(self.layers[0][0].shape[-2])

    @property
    def bytes(self) -> int:
        return sum(int(part.nbytes) for layer in self.layers for part in layer)

    def begin(self, config: Any) -> DynamicCache:
        """A new KV cache that starts with a copy of the prefix; the stored prefix never changes."""
        from engine.decoding import llama

        cache = llama.cache(config)
        for index, (keys, values) in enumerate(self.layers):
            cache.update(keys, values, index)  # copies them
        return cache


def cut(cache: DynamicCache, tokens: int, stage_ms: Mapping[str, float], cold: bool) -> Prefix:
    """The first tokens of a longer KV cache, copied so that the rest can be freed."""
    layers = tuple(
        (layer.keys[..., :tokens, :].clone(), layer.values[..., :tokens, :].clone())
        for layer in cache.layers
    )
    return Prefix(layers, stage_ms, cold)


def key(adapter: Adapter, prepared: Prepared) -> str:
    """Hex digest of everything that a prefix depends on; the question is not part of it.

    It covers the FeatureSpec of the visual rows, the ids before and between them, and the device.
    """
    from engine.pipeline import feature_cache as cache

    ids = prepared.input_ids[0].tolist()
    ids = ids[: len(ids) - adapter.question_ids(prepared).shape[1]]
    parts = [cache.key(adapter.feature_spec(prepared)), str(adapter.device), ids]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=20).hexdigest()


class Prefixes:
    """A store of prefixes with a limit in bytes; the least recently used are removed first."""

    def __init__(self, limit_mb: int) -> None:
        self.limit_bytes = limit_mb * 2**20
        self._entries: OrderedDict[str, tuple[Prefix, weakref.ref[Any]]] = OrderedDict()
        self._lock = threading.RLock()  # _drop may run in a thread that holds it

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def bytes(self) -> int:
        with self._lock:
            return sum(prefix.bytes for prefix, _ in self._entries.values())

    def find(self, name: str) -> Prefix | None:
        """The prefix with this key, which becomes the most recently used."""
        with self._lock:
            if name not in self._entries:
                return None
            self._entries.move_to_end(name)
            return self._entries[name][0]

    def keep(self, name: str, prefix: Prefix, owner: object) -> bool:
        """Stores it until its owner is deleted or room is needed; False if it is too large."""
        if prefix.bytes > self.limit_bytes:
            return False
        with self._lock:
            self._entries.pop(name, None)
            self._entries[name] = prefix, weakref.ref(owner, lambda _: self._drop(name))
            while self.bytes > self.limit_bytes:
                self._entries.popitem(last=False)
        return True

    def clear(self) -> int:
        """Removes all prefixes and returns their number."""
        with self._lock:
            count = len(self._entries)
            self._entries.clear()
            return count

    def _drop(self, name: str) -> None:
        """Removes a deleted owner's entry, unless another owner has replaced it."""
        with self._lock:
            if name in self._entries and self._entries[name][1]() is None:
                del self._entries[name]


@lru_cache(maxsize=1)
def store() -> Prefixes:
    prefixes = Prefixes(settings.load().prefix_limit_mb)
    memory.add_reserve(prefixes)
    return prefixes
