"""The four stages for a batch of samples: stages 1 and 2 one by one, stages 3 and 4 together.  All
times belong to the batch, none to a sample.  Features are read from the cache but not written to
it: an entry holds the encoding time of its sample, which a batch does not measure."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from engine.decoding import batched, compiled
from engine.decoding.batched import BatchAnswer
from engine.errors import BadInput, Cancelled, StageScopeError
from engine.machine import device
from engine.models.adapter import Adapter
from engine.pipeline import Watcher, single_run
from engine.pipeline.run_stages import Asked, StagedRun
from engine.timing import Usage, total
from engine.types import Batch, RunRequest, RunResult, Span

if TYPE_CHECKING:
    from engine.pipeline.feature_cache import FeatureCache

log = logging.getLogger(__name__)
NOT_EXACT = (
    "In {dtype} an answer of a batch may differ from a single run of the sample, because sums are "
    "rounded in another order."
)
NOT_KEPT = "Features computed in a batch are not written to the cache."
CACHED = (
    "Features of {cached:,} of {size:,} samples were read from the cache; the batch's vision time "
    "covers only the others."
)
EAGER = "Batches use the eager backend; {backend} was requested."


def run(
    adapter: Adapter,
    requests: Sequence[RunRequest],
    cache: FeatureCache | None,
    watcher: Watcher | None = None,
) -> list[RunResult | str]:
    """For each request its result, or the reason why its sample could not be read or prepared.

    The requests may differ only in sample, prompt and limit of new tokens.  A sample that fails
    leaves the batch, and its time is not counted.  If a single sample is left, it gets a single
    run.  Raises OutOfMemory after freeing the memory, and Cancelled also between two tokens: a
    partial batch has no result.  BadInput if the model refuses batches.
    """
    if (why := adapter.refuses.get("batch")) and len(requests) > 1:
        raise BadInput(f"{adapter.info.name}: {why}")
    with device.guard(adapter.info.name, adapter.device):
        outcomes = _answer(adapter, requests, cache, watcher or Watcher())
    return [
        single_run.run(adapter, request, cache, watcher) if outcome is None else outcome
        for request, outcome in zip(requests, outcomes, strict=True)
    ]


@torch.inference_mode()
def _answer(
    adapter: Adapter, requests: Sequence[RunRequest], cache: FeatureCache | None, watcher: Watcher
) -> list[RunResult | str | None]:
    """A result or an error for each request; None for the only sample left."""
    single_run.prepare(cache)
    batch = _BatchRun(adapter, requests, cache, watcher)  # the clock starts here
    batch.read()
    if len(batch.remaining) > 1:
        batch.encode()
        batch.decode()
        batch.end()
    return [member.result or member.error or None for member in batch.members]


class _Member(Asked):
    answer: BatchAnswer  # after stage 4
    error: str = ""
    result: RunResult | None = None


class _BatchRun(StagedRun):
    def __init__(
        self,
        adapter: Adapter,
        requests: Sequence[RunRequest],
        cache: FeatureCache | None,
        watcher: Watcher,
    ) -> None:
        self.config, self.policy = requests[0].how.decode, requests[0].how.cache
        self.members = [_Member(adapter, request) for request in requests]
        self.cached = 0
        self.lost_ms = 0.0
        super().__init__(adapter, cache, watcher)

    @property
    def remaining(self) -> list[_Member]:
        return [member for member in self.members if not member.error]

    # stages 1 and 2, one sample at a time, so that memory holds one sample's raw pictures
    def read(self) -> None:
        for member in self.members:
            start, before = self.timeline.now(), len(self.timeline.spans)
            try:
                self.preprocess(member, self.load(member))
            except Cancelled:
                raise
            except StageScopeError as error:
                member.error = str(error)
            except Exception as error:  # an error of a model fails only this sample
                if device.is_out_of_memory(error):
                    raise
                name = self.adapter.info.name
                log.exception("%s failed on %s", name, member.request.sample.id)
                member.error = f"{name}: {type(error).__name__}: {error}"
            if member.error:
                del self.timeline.spans[before:]
                self.lost_ms += self.timeline.now() - start

    # stage 3: features that the cache lacks, in one pass
    def encode(self) -> None:
        self._enter("vision")
        missing, use = [], self.policy == "use"
        for member in self.remaining:
            stored = self._cached_features(member.prepared, member.notes) if use else None
            if stored is None:
                missing.append(member)
            else:
                member.features = stored.features
        self.cached = len(self.remaining) - len(missing)
        if missing:
            with self.timeline.span("vision"):
                encoded = self.adapter.encode_batch([member.prepared for member in missing])
            for member, features in zip(missing, encoded, strict=True):
                member.features = features
        for member in self.remaining:
            member.record_features()

    # stage 4
    def decode(self) -> None:
        with self._stage("decode"):
            start, before = self.timeline.mark()
            # embeddings [1, context, hidden]: families without them refuse batches
            prompts: list[Any] = [
                self.adapter.embed(member.prepared, member.features) for member in self.remaining
            ]
            answers = batched.generate(
                self.adapter.decoder,
                prompts,
                [member.rules for member in self.remaining],
                self._step,
                self.watcher.cancelled,
            )
        self._split_decode(start, before)
        padded = (len(prompts), max(prompt.shape[1] for prompt in prompts), prompts[0].shape[2])
        for member, answer in zip(self.remaining, answers, strict=True):
            member.answer = answer
            member.record("embeddings", prompts[0], padded)

    def _step(self, tokens: list[int]) -> None:
        ms = self._stepped()
        for token in tokens:
            self.watcher.token(token, ms)

    def end(self) -> None:
        """Sets the members' results; raises Cancelled if an answer was cut short."""
        if any(member.answer.stop == "cancelled" for member in self.remaining):
            raise Cancelled(f"{self.adapter.info.name} was cancelled between two tokens.")
        spent = self._stop_clock() - self.lost_ms
        batch = Batch(
            id=secrets.token_hex(6),
            size=len(self.remaining),
            spans=self._spans(),
            total_ms=spent,
            tokens=sum(len(member.answer.ids) for member in self.remaining),
            cached=self.cached,
        )
        notes = tuple(self._notes())
        for member in self.remaining:
            member.notes += notes
            ids, stop = member.answer.ids, member.answer.stop or "length"
            member.result = self._result(member, ids, stop, spans=(), total_ms=spent, batch=batch)

    def _spans(self) -> tuple[Span, ...]:
        """One span per name: its first start and the sum of all samples' times."""
        names = dict.fromkeys(span.name for span in self.timeline.spans)
        groups = [[span for span in self.timeline.spans if span.name == name] for name in names]
        return tuple(
            Span(
                group[0].name,
                group[0].start_ms,
                sum(span.ms for span in group),
                "measured",
                None,
                *total([Usage(span.cpu_ms, span.waited_ms) for span in group]),
            )
            for group in groups
        )

    def _notes(self) -> Iterator[str]:
        if self.adapter.dtype != torch.float32:
            yield NOT_EXACT.format(dtype=str(self.adapter.dtype).removeprefix("torch."))
        if compiled.wanted(self.config, self.adapter.device):
            yield EAGER.format(backend=self.config.backend)
        if self.cached:
            yield CACHED.format(cached=self.cached, size=len(self.remaining))
        if self.policy == "use" and self.cached < len(self.remaining):
            yield NOT_KEPT
