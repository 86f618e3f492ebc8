"""Encodes changed inputs and scores the words on each: how far their log-probability falls.

Boundary: one loaded model and one question; the caller chooses the inputs.  Features never come
from the cache and are never written to it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from engine.attribution import cost
from engine.attribution.chance import Floats
from engine.attribution.explained import ExplainWatcher
from engine.attribution.words import ScoredWords
from engine.decoding import forced
from engine.errors import Cancelled, ContextTooLong, NotFinite
from engine.models.adapter import Adapter
from engine.types import Media, Prepared, RunRequest

NOT_FINITE = (
    "{}: the words' log-probability is not finite (NaN or infinity): copy the checkpoint again, or "
    "choose a dtype with a wider range, such as bfloat16 or float32."
)
TOO_LONG = (
    "{} has a context of {:,} tokens; the prompt has {:,} and the words end {:,} tokens later: "
    "choose earlier or shorter words."
)


@dataclass(eq=False)
class Forcing:
    """Scores the words on one input after another; `spent` is in milliseconds.

    `wanted` [N, 1 + R]: the words' tokens, and R others that are scored in their places.

    The prompt before the first visual row is the same for all inputs.  Its share of the work is
    small, and the pass over the words would need a copy of its cache per input, so it is not kept.
    """

    adapter: Adapter
    run: RunRequest
    words: ScoredWords
    wanted: torch.Tensor
    batch: int
    watcher: ExplainWatcher
    of: int = 0  # planned encodings
    encodings: int = 0
    prefills: int = 0
    spent: float = 0.0

    @property
    def batched(self) -> bool:
        return "batch" not in self.adapter.refuses

    def tokens(self, inputs: Iterable[Media]) -> Iterator[Floats]:
        """The log-probabilities [N, 1 + R] of the wanted tokens on each input, in nats.

        Up to `batch` inputs are encoded and scored together if the model takes batches.  Cancelled
        between two batches; NotFinite if a score of the words is no number.
        """
        rest = iter(inputs)
        while group := list(islice(rest, self.batch if self.batched else 1)):
            if self.watcher.cancelled():
                raise Cancelled("The explanation was cancelled.")
            start = time.perf_counter()
            found = self._scored(group)
            self.encodings, self.prefills = self.encodings + len(group), self.prefills + 1
            self.spent += (time.perf_counter() - start) * 1000
            cost.remember(self.adapter.info.name, self.spent / self.encodings)
            self.watcher.done(self.encodings, self.of)
            if not all(np.isfinite(values[:, 0]).all() for values in found):
                raise NotFinite(NOT_FINITE.format(self.adapter.info.name))
            yield from found

    def _prepared(self, media: Media) -> Prepared:
        adapter, run = self.adapter, self.run
        prepared = adapter.preprocess(media, run.prompt, run.pixels)
        context, after = prepared.context_tokens, self.words.scored[1]
        if context + after > adapter.context_limit:
            limit = adapter.context_limit
            raise ContextTooLong(TOO_LONG.format(adapter.info.name, limit, context, after))
        return prepared

    def _scored(self, group: list[Media]) -> list[Floats]:
        """[N, 1 + R] of each input of a batch; of a model without batches it has one input."""
        prepared = [self._prepared(media) for media in group]
        encode = self.adapter.encode
        features = self.adapter.encode_batch(prepared) if self.batched else [encode(prepared[0])]
        ids = self.words.token_ids[: self.words.scored[1]]
        prompts = [self.adapter.embed(*pair) for pair in zip(prepared, features, strict=True)]
        logs = forced.of_tokens(self.adapter.decoder, prompts, ids, self.wanted)
        return list(logs.double().cpu().numpy())
