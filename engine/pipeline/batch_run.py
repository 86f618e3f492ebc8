"""The four stages of several samples at once: stages 1 and 2 one by one, 3 and 4 together.

Boundary: like pipeline.py for one model and one batch; it knows the order of the stages, starts no
threads and decides nothing about the batch's size.  Its times are the batch's: no sample of it has
a time of its own.  Features are read from the cache as in single runs, but not written to it: the
cache says how long a sample's own encoding took, and nobody knows that here.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING

import torch

from engine import media
from engine.decoding import batched, compiled
from engine.decoding.batched import BatchAnswer
from engine.errors import CacheError, Cancelled, StageScopeError
from engine.machine import device, memory
from engine.machine.load_meter import Meter
from engine.models.adapter import Adapter
from engine.pipeline import single_run
from engine.pipeline.watcher import Watcher
from engine.timing import Timeline, Usage, total
from engine.types import (
    Batch,
    Extent,
    Generation,
    Media,
    Prepared,
    RunRequest,
    RunResult,
    Span,
    TensorSpec,
)

if TYPE_CHECKING:
    from engine.pipeline.feature_cache import FeatureCache

log = logging.getLogger(__name__)
NOT_EXACT = (
    "In {dtype} an answer of a batch may differ from the sample's own single run: sums are "
    "rounded in another order."
)
NOT_KEPT = "Features that are computed in a batch are not kept in the cache."
CACHED = (
    "Features of {cached:,} of {size:,} samples were read from the cache; the batch's vision time "
    "covers the others alone."
)
EAGER = "Batches decode with the eager backend; {backend} was asked for."


def run(
    adapter: Adapter,
    requests: Sequence[RunRequest],
    cache: FeatureCache | None,
    watcher: Watcher | None = None,
) -> list[RunResult | str]:
    """A result for each request, or the reason why its sample could not be read or prepared.

    The requests differ in sample and prompt alone.  Samples that fail so leave the batch, and
    their time with them; one that is left over runs alone.  OutOfMemory with all of it freed;
    Cancelled, also between two tokens: a batch that is cut short is no result.
    """
    with memory.guard(adapter.info.name, adapter.device):
        found = _answer(adapter, requests, cache, watcher or Watcher())
    return [
        single_run.run(adapter, request, cache, watcher) if one is None else one
        for request, one in zip(requests, found, strict=True)
    ]


@torch.inference_mode()
def _answer(
    adapter: Adapter, requests: Sequence[RunRequest], cache: FeatureCache | None, watcher: Watcher
) -> list[RunResult | str | None]:
    """None for a sample that is left over."""
    single_run.prepare(cache)
    batch = _Batch(adapter, requests, cache, watcher)  # the clock starts here
    batch.read()
    if len(batch.here) > 1:
        batch.encode()
        batch.decode()
        batch.end()
    return [member.result or member.error or None for member in batch.members]


@dataclass(eq=False)
class _Member:
    """One sample on its way through the stages."""

    request: RunRequest
    notes: list[str]
    tensors: list[TensorSpec] = field(default_factory=list)
    shown: str = ""
    extent: Extent | None = None
    prepared: Prepared | None = None
    rows: torch.Tensor | None = None
    answer: BatchAnswer = field(default_factory=BatchAnswer)
    error: str = ""
    result: RunResult | None = None

    def record(self, name: str, tensor: torch.Tensor, shape: tuple[int, ...] = ()) -> None:
        """Notes a tensor; a batch's is given by its whole shape."""
        dtype, found = str(tensor.dtype).removeprefix("torch."), shape or tuple(tensor.shape)
        size = prod(found) * tensor.element_size()
        self.tensors.append(TensorSpec(name, found, dtype, size))


class _Batch(single_run.Staged):
    """The state of one batch: its clock, its members, what it lost with those that left."""

    def __init__(
        self,
        adapter: Adapter,
        requests: Sequence[RunRequest],
        cache: FeatureCache | None,
        watcher: Watcher,
    ) -> None:
        self.adapter, self.cache, self.watcher = adapter, cache, watcher
        self.config = requests[0].decode
        self.policy = requests[0].cache
        self.members = [_Member(request, list(adapter.notes)) for request in requests]
        self.cold = adapter.runs == 0
        self.cached = 0
        self.step_ms: list[float] = []
        self.lost_ms = 0.0
        self.step_usage: list[Usage] = []
        self.meter = Meter(torch.get_num_threads())
        self.timeline = Timeline(adapter.device)

    @property
    def here(self) -> list[_Member]:
        """Those that have not left."""
        return [member for member in self.members if not member.error]

    # stages 1 and 2, sample by sample: no two samples' raw pictures are held at once
    def read(self) -> None:
        for member in self.members:
            start, before = self.timeline.now(), len(self.timeline.spans)
            member.error = self._reason(member)
            if member.error:
                del self.timeline.spans[before:]
                self.lost_ms += self.timeline.now() - start

    def _reason(self, member: _Member) -> str:
        """Reads and prepares one sample; why that failed, or nothing."""
        try:
            self._preprocess(member, self._load(member))
        except Cancelled:
            raise
        except StageScopeError as error:
            return str(error)
        except Exception as error:  # whatever a model raises costs its own sample
            if memory.is_out_of_memory(error):
                raise
            log.exception("%s failed on %s", self.adapter.info.name, member.request.sample.id)
            return f"{self.adapter.info.name}: {type(error).__name__}: {error}"
        return ""

    def _load(self, member: _Member) -> Media:
        with self._stage("load"):
            request = member.request
            kind = self.adapter.kind
            found = media.load(request.sample, kind, request.frames, request.extent)
        member.notes += found.notes
        member.shown, member.extent = found.shown, found.extent
        member.tensors += single_run.picture_specs(found.images)
        return found

    def _preprocess(self, member: _Member, found: Media) -> None:
        with self._stage("preprocess"):
            asked = member.request
            prepared = self.adapter.preprocess(found, asked.prompt, asked.pixels)
            member.notes += single_run.pixel_notes(self.adapter, asked)
            self.adapter.check_context(prepared, self.config.max_new_tokens)
        member.prepared = prepared
        member.record("pixels", prepared.pixels)
        member.record("input_ids", prepared.input_ids)

    # stage 3: those that the cache does not hold, in one pass
    def encode(self) -> None:
        self._enter("vision")
        for member in self.here:
            member.rows = self._stored(member) if self.policy == "use" else None
        missing = [member for member in self.here if member.rows is None]
        self.cached = len(self.here) - len(missing)
        if missing:
            with self.timeline.span("vision"):
                rows = self.adapter.encode_batch([_prepared(member) for member in missing])
            for member, own in zip(missing, rows, strict=True):
                member.rows = own
        for member in self.here:
            member.record("features", _rows(member))

    def _stored(self, member: _Member) -> torch.Tensor | None:
        if self.cache is None:
            return None
        try:
            stored = self.cache.read(self.adapter.feature_spec(_prepared(member)))
        except CacheError as error:
            member.notes.append(f"{error} The features were computed.")
            return None
        if stored is None:
            return None
        if not self.adapter.takes(_prepared(member), stored.rows):
            member.notes.append(single_run.NO_FEATURES)
            return None
        return stored.rows.to(self.adapter.device)

    # stage 4
    def decode(self) -> None:
        with self._stage("decode"):
            start, before = self.timeline.mark()
            prompts = [self.adapter.embed(_prepared(one), _rows(one)) for one in self.here]
            answers = batched.generate(
                self.adapter.decoder,
                prompts,
                self.config,
                self._step,
                self.watcher.cancelled,
                [self.adapter.rules_for(_prepared(one), self.config) for one in self.here],
            )
        first, last = self.step_ms[0], self.step_ms[-1]
        prefill = self.step_usage[0].since(before)
        steps = self.step_usage[-1].since(self.step_usage[0])
        self.timeline.add("decode.prefill", start, first - start, used=prefill)
        self.timeline.add("decode.steps", first, last - first, used=steps)
        longest = max(prompt.shape[1] for prompt in prompts)
        padded = (len(prompts), longest, prompts[0].shape[2])
        for member, answer in zip(self.here, answers, strict=True):
            member.answer = answer
            member.record("embeddings", prompts[0], padded)

    def _step(self, tokens: list[int]) -> None:
        ms = self.timeline.now()
        self.step_ms.append(ms)
        self.step_usage.append(self.timeline.usage())
        for token in tokens:
            self.watcher.token(token, ms)

    def end(self) -> None:
        """The results, once all answers have ended; Cancelled if one was cut."""
        if any(member.answer.stop == "cancelled" for member in self.here):
            raise Cancelled(f"{self.adapter.info.name} was cancelled between two tokens.")
        total_ms = self.timeline.end() - self.lost_ms
        load = self.meter.read()
        self.adapter.runs += 1
        batch = Batch(
            id=secrets.token_hex(6),
            size=len(self.here),
            spans=self._spans(),
            total_ms=total_ms,
            tokens=sum(len(member.answer.ids) for member in self.here),
            cached=self.cached,
        )
        environment, notes = device.environment(self.adapter.device), tuple(self._notes())
        for member in self.here:
            result = self._result(member, batch, notes, environment)
            member.result = replace(result, machine_load=load)

    def _spans(self) -> tuple[Span, ...]:
        """A span per name: from its first start, the times of all samples added up."""
        names = dict.fromkeys(span.name for span in self.timeline.spans)
        parts = [[one for one in self.timeline.spans if one.name == name] for name in names]
        return tuple(
            Span(
                part[0].name,
                part[0].start_ms,
                sum(one.ms for one in part),
                "measured",
                None,
                *total([Usage(one.cpu_ms, one.waited_ms) for one in part]),
            )
            for part in parts
        )

    def _notes(self) -> Iterator[str]:
        """What is to be known of every row of the batch."""
        if self.adapter.dtype != torch.float32:
            yield NOT_EXACT.format(dtype=str(self.adapter.dtype).removeprefix("torch."))
        if compiled.wanted(self.config, self.adapter.device):
            yield EAGER.format(backend=self.config.backend)
        if self.cached:
            yield CACHED.format(cached=self.cached, size=len(self.here))
        if self.policy == "use" and self.cached < len(self.here):
            yield NOT_KEPT

    def _result(
        self,
        member: _Member,
        batch: Batch,
        notes: tuple[str, ...],
        environment: Mapping[str, str],
    ) -> RunResult:
        answer, request = member.answer, member.request
        generation = Generation(
            token_ids=tuple(answer.ids),
            text=self.adapter.text(answer.ids),
            stop=answer.stop or "length",
            prompt_tokens=_prepared(member).context_tokens,
            token_ms=(),
        )
        return RunResult(
            request=request,
            model=self.adapter.info,
            spans=(),
            generation=generation,
            total_ms=batch.total_ms,
            cold=self.cold,
            shown=member.shown,
            tensors=tuple(member.tensors),
            notes=(*member.notes, *notes),
            environment=environment,
            batch=batch,
            extent=member.extent,
        )


def _prepared(member: _Member) -> Prepared:
    assert member.prepared is not None
    return member.prepared


def _rows(member: _Member) -> torch.Tensor:
    assert member.rows is not None
    return member.rows
