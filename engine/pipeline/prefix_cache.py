"""Prompt prefixes kept in memory, so that a second question about a sample need not repeat them.

A prefix is the part of a prompt up to and including its last visual row; it does not depend on the
question.  The store keeps its keys and values for each layer of the language model.  A second
question about the same sample continues from them and needs neither pixels nor visual rows.  A
prefix is found by the key of its content, and is removed when its model is unloaded.

A reused stage is never shown as measured: its span's source is "cached".  Preprocess and vision do
not depend on the question, so their spans have the original times.  The full prefill was not run,
so its original time is None.
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
from engine.quoting import gib
from engine.types import Media, Pixels, PrefixUse, Prepared

if TYPE_CHECKING:
    import torch
    from transformers import DynamicCache

    from engine.models.adapter import Adapter
    from engine.timing import Timeline

FIRST_PREFILL = (
    "The first question's prefill took {:.1f} ms; a full prefill of this question was not measured."
)
COLD = "The reused prefix was computed in a model's first (cold) run."
TOO_LARGE = "The prompt's prefix takes {} and was not kept: raise STAGESCOPE_PREFIX_LIMIT_MB."


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
    """Hex digest of everything that a prefix depends on; the question is not part of it."""
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


class PrefixReuse:
    """The state of one run; without a store every method does nothing and returns None."""

    def __init__(self, adapter: Adapter, store: Prefixes | None) -> None:
        self.prefix: Prefix | None = None  # the reused prefix
        self.use: PrefixUse | None = None
        self.notes: list[str] = []
        self._adapter, self._store = adapter, store
        self._key, self._tokens = "", 0
        self._past: DynamicCache | None = None

    def prompt_only(self, shown: Media, question: str, setting: Pixels) -> Prepared | None:
        """The prompt if its prefix is in the store, or if it has its pixels; otherwise None."""
        if self._store is None:
            return None
        prepared = self._adapter.words(shown, question, setting)
        self._key = key(self._adapter, prepared)
        length = self._adapter.question_ids(prepared).shape[1]
        self._tokens = prepared.context_tokens - int(length)
        self.prefix = self._store.find(self._key)
        return prepared if self.prefix or prepared.pixels.numel() else None

    def begin(self) -> DynamicCache | None:
        """The KV cache that the run continues from and fills; None for the decoder's own."""
        if self._store is None:
            return None
        from engine.decoding import llama

        config = self._adapter.text_config
        self._past = self.prefix.begin(config) if self.prefix else llama.cache(config)
        return self._past

    def finish(self, timeline: Timeline, cold: bool) -> None:
        """After the answer: marks the reused spans, or keeps the new prefix."""
        if self._store is None:
            return
        if self.prefix is None:
            self._keep(self._store, timeline, cold)
            return
        self.use = PrefixUse("reused", self.prefix.tokens)
        for name in ("preprocess", "vision"):
            timeline.recalled(name, self.prefix.stage_ms[name])
        for name in ("decode", "decode.prefill"):  # these depend on the question
            timeline.recalled(name, None)
        self.notes.append(FIRST_PREFILL.format(self.prefix.stage_ms["decode.prefill"]))
        if self.prefix.cold:
            self.notes.append(COLD)

    def _keep(self, store: Prefixes, timeline: Timeline, cold: bool) -> None:
        past, self._past = self._past, None
        assert past is not None  # begin() was called in the decode stage
        stage_ms = {  # of the computation, also for features that were read from the cache
            span.name: span.ms if span.original_ms is None else span.original_ms
            for span in timeline.spans
            if span.name in ("preprocess", "vision", "decode.prefill")
        }
        try:
            prefix = cut(past, self._tokens, stage_ms, cold)
        except (RuntimeError, MemoryError) as error:
            if not memory.is_out_of_memory(error):
                raise
            self.notes.append("No memory was left to keep the prompt's prefix.")
            return
        if store.keep(self._key, prefix, self._adapter):
            self.use = PrefixUse("kept", prefix.tokens)
        else:
            self.notes.append(TOO_LARGE.format(gib(prefix.bytes)))
