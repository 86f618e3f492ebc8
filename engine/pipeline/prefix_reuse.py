"""What one run does about its prompt's prefix: find it, go on from it, or keep it for the next.

Boundary: between the pipeline's stages and the store of prefixes; it orders no stages.  What was
reused is never shown as measured: its spans say "cached", and of those that do not depend on the
question (preprocess, vision) what they took when computed.  What this question's whole prefill
would have taken nobody has measured: it stays unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.machine import memory
from engine.models.adapter import Adapter
from engine.pipeline import prefix_cache
from engine.pipeline.prefix_cache import Prefix, Prefixes
from engine.timing import Timeline
from engine.types import Media, Pixels, PrefixUse, Prepared, Span

if TYPE_CHECKING:
    from transformers import DynamicCache

FIRST_PREFILL = "The first question's prefill took {:.1f} ms; this question's was not measured."
COLD = "The reused prefix was computed in a model's first (cold) run."


class Reuse:
    """The state of one run; without a store it does nothing, and every answer is None."""

    def __init__(self, adapter: Adapter, store: Prefixes | None) -> None:
        self.prefix: Prefix | None = None  # what is reused
        self.use: PrefixUse | None = None
        self.notes: list[str] = []
        self._adapter, self._store = adapter, store
        self._key, self._tokens = "", 0
        self._past: DynamicCache | None = None

    def words(self, shown: Media, question: str, setting: Pixels) -> Prepared | None:
        """The prompt without pixels, if the model has read its prefix."""
        if self._store is None:
            return None
        prepared = self._adapter.words(shown, question, setting)
        self._key = prefix_cache.key(self._adapter, prepared)
        self._tokens = prefix_cache.tokens(self._adapter, prepared)
        self.prefix = self._store.find(self._key)
        return prepared if self.prefix else None

    def embed(self, prepared: Prepared) -> torch.Tensor:
        """What is left to read: embeddings [1, Q, hidden] of the question's ids."""
        return self._adapter.embed_ids(self._adapter.question_ids(prepared))

    def begin(self) -> DynamicCache | None:
        """The cache to go on from, which the run may fill; None for the decoder's own."""
        if self._store is None:
            return None
        config = self._adapter.text_config
        self._past = self.prefix.begin(config) if self.prefix else prefix_cache.empty(config)
        return self._past

    def finish(self, timeline: Timeline, cold: bool) -> None:
        """After the answer: marks what was reused, or keeps what was read."""
        if self._store is None:
            return
        if self.prefix is None:
            self._keep(self._store, timeline, cold)
            return
        self.use = PrefixUse("reused", self.prefix.tokens)
        self._mark(timeline, self.prefix)
        self.notes.append(FIRST_PREFILL.format(self.prefix.took["decode.prefill"]))
        if self.prefix.cold:
            self.notes.append(COLD)

    @staticmethod
    def _mark(timeline: Timeline, prefix: Prefix) -> None:
        for name in ("preprocess", "vision"):
            timeline.recalled(name, prefix.took[name])
        for name in ("decode", "decode.prefill"):  # they depend on the question's length
            timeline.recalled(name, None)

    def _keep(self, store: Prefixes, timeline: Timeline, cold: bool) -> None:
        past, self._past = self._past, None
        assert past is not None  # the decode stage came before
        spans = {span.name: span for span in timeline.spans}
        took = {name: _took(spans[name]) for name in ("preprocess", "vision", "decode.prefill")}
        try:
            prefix = prefix_cache.cut(past, self._tokens, took, cold)
        except (RuntimeError, MemoryError) as error:
            if not memory.is_out_of_memory(error):
                raise
            self.notes.append("No memory was left to keep the prompt's prefix.")
            return
        if store.keep(self._key, prefix, self._adapter):
            self.use = PrefixUse("kept", prefix.tokens)
        else:
            self.notes.append(
                f"The prompt's prefix takes {memory.gib(prefix.bytes)} and was not kept: "
                "raise STAGESCOPE_PREFIX_LIMIT_MB."
            )


def _took(span: Span) -> float:
    """Features read from the disk took what their computation did."""
    return span.ms if span.original_ms is None else span.original_ms
