"""The prompt prefix of one run: find it, continue from it, or keep it for the next run.

A reused stage is never shown as measured: its span's source is "cached".  Preprocess and vision do
not depend on the question, so their spans have the original times.  The full prefill was not run,
so its original time is None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.decoding import llama
from engine.machine import memory
from engine.models.adapter import Adapter
from engine.pipeline import prefix_cache
from engine.pipeline.prefix_cache import Prefix, Prefixes
from engine.quoting import gib
from engine.timing import Timeline
from engine.types import Media, Pixels, PrefixUse, Prepared

if TYPE_CHECKING:
    from transformers import DynamicCache

FIRST_PREFILL = (
    "The first question's prefill took {:.1f} ms; a full prefill of this question was not measured."
)
COLD = "The reused prefix was computed in a model's first (cold) run."


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
        self._key = prefix_cache.key(self._adapter, prepared)
        length = self._adapter.question_ids(prepared).shape[1]
        self._tokens = prepared.context_tokens - int(length)
        self.prefix = self._store.find(self._key)
        return prepared if self.prefix or prepared.pixels.numel() else None

    def begin(self) -> DynamicCache | None:
        """The KV cache that the run continues from and fills; None for the decoder's own."""
        if self._store is None:
            return None
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
            prefix = prefix_cache.cut(past, self._tokens, stage_ms, cold)
        except (RuntimeError, MemoryError) as error:
            if not memory.is_out_of_memory(error):
                raise
            self.notes.append("No memory was left to keep the prompt's prefix.")
            return
        if store.keep(self._key, prefix, self._adapter):
            self.use = PrefixUse("kept", prefix.tokens)
        else:
            self.notes.append(
                f"The prompt's prefix takes {gib(prefix.bytes)} and was not kept: "
                "raise STAGESCOPE_PREFIX_LIMIT_MB."
            )
