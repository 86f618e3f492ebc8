"""The four stages for a batch of samples: stages 1 and 2 one by one, stages 3 and 4 together.

All times belong to the batch, none to a sample.  Features are read from the cache but not written
to it: an entry holds the encoding time of its sample, which a batch does not measure.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from engine.decoding import batched, compiled
from engine.decoding.batched import BatchAnswer
from engine.decoding.generation_rules import AnswerRules
from engine.errors import BadInput, Cancelled, StageScopeError
from engine.machine import device, memory
from engine.machine.load_meter import Meter
from engine.models.adapter import Adapter
from engine.pipeline import letter_scores, single_run
from engine.pipeline.run_stages import (
    StagedRun,
    answer_rules,
    feature_specs,
    picture_specs,
    pixel_notes,
    tensor_spec,
)
from engine.pipeline.watcher import Watcher
from engine.timing import Timeline, Usage, total
from engine.types import (
    Batch,
    Extent,
    Features,
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
    with memory.guard(adapter.info.name, adapter.device):
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


@dataclass(eq=False)
class _Member:
    """The state of one sample of the batch."""

    request: RunRequest
    notes: list[str]
    tensors: list[TensorSpec] = field(default_factory=list)
    shown: str = ""
    extent: Extent | None = None
    rules: AnswerRules | None = None
    prepared: Prepared | None = None
    features: Features | None = None
    answer: BatchAnswer = field(default_factory=BatchAnswer)
    error: str = ""
    result: RunResult | None = None

    def record(self, name: str, tensor: torch.Tensor, shape: tuple[int, ...] = ()) -> None:
        self.tensors.append(tensor_spec(name, tensor, shape))


class _BatchRun(StagedRun):
    """The state of one batch: its clock, its members, and the time of failed members."""

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
    def remaining(self) -> list[_Member]:
        """The members without an error."""
        return [member for member in self.members if not member.error]

    # stages 1 and 2, one sample at a time, so that memory holds one sample's raw pictures
    def read(self) -> None:
        for member in self.members:
            start, before = self.timeline.now(), len(self.timeline.spans)
            member.error = self._reason(member)
            if member.error:
                del self.timeline.spans[before:]
                self.lost_ms += self.timeline.now() - start

    def _reason(self, member: _Member) -> str:
        """Reads and prepares one sample; returns the reason of a failure, or ""."""
        try:
            self._preprocess(member, self._load(member))
        except Cancelled:
            raise
        except StageScopeError as error:
            return str(error)
        except Exception as error:  # an error of a model fails only this sample
            if memory.is_out_of_memory(error):
                raise
            log.exception("%s failed on %s", self.adapter.info.name, member.request.sample.id)
            return f"{self.adapter.info.name}: {type(error).__name__}: {error}"
        return ""

    def _load(self, member: _Member) -> Media:
        loaded = self._load_media(member.request)
        member.notes += loaded.notes
        member.shown, member.extent = self.adapter.shown(loaded), loaded.extent
        member.tensors += picture_specs(loaded.images)
        return loaded

    def _preprocess(self, member: _Member, loaded: Media) -> None:
        with self._stage("preprocess"):
            request = member.request
            prepared = self.adapter.preprocess(loaded, request.prompt, request.pixels)
            member.notes += pixel_notes(self.adapter, request)
            member.rules, limited = answer_rules(self.adapter, prepared, request.decode)
            member.notes += limited
        member.prepared = prepared
        member.record("pixels", prepared.pixels)
        member.record("input_ids", prepared.input_ids)

    # stage 3: features that the cache lacks, in one pass
    def encode(self) -> None:
        self._enter("vision")
        for member in self.remaining:
            member.features = self._stored(member) if self.policy == "use" else None
        missing = [member for member in self.remaining if member.features is None]
        self.cached = len(self.remaining) - len(missing)
        if missing:
            with self.timeline.span("vision"):
                found = self.adapter.encode_batch([_prepared(member) for member in missing])
            for member, features in zip(missing, found, strict=True):
                member.features = features
        for member in self.remaining:
            member.tensors += feature_specs(_features(member))

    def _stored(self, member: _Member) -> Features | None:
        stored = self._cached_features(_prepared(member), member.notes)
        device = self.adapter.device
        return None if stored is None else stored.features.changed(lambda one: one.to(device))

    # stage 4
    def decode(self) -> None:
        with self._stage("decode"):
            start, before = self.timeline.mark()
            prompts = [_embeddings(self.adapter, member) for member in self.remaining]
            answers = batched.generate(
                self.adapter.decoder,
                prompts,
                [_rules(member) for member in self.remaining],
                self._step,
                self.watcher.cancelled,
            )
        first, last = self.step_ms[0], self.step_ms[-1]
        prefill = self.step_usage[0].since(before)
        steps = self.step_usage[-1].since(self.step_usage[0])
        self.timeline.add("decode.prefill", start, first - start, used=prefill)
        self.timeline.add("decode.steps", first, last - first, used=steps)
        longest = max(prompt.shape[1] for prompt in prompts)
        padded = (len(prompts), longest, prompts[0].shape[2])
        for member, answer in zip(self.remaining, answers, strict=True):
            member.answer = answer
            member.record("embeddings", prompts[0], padded)

    def _step(self, tokens: list[int]) -> None:
        ms = self.timeline.now()
        self.step_ms.append(ms)
        self.step_usage.append(self.timeline.usage())
        for token in tokens:
            self.watcher.token(token, ms)

    def end(self) -> None:
        """Sets the members' results; raises Cancelled if an answer was cut short."""
        if any(member.answer.stop == "cancelled" for member in self.remaining):
            raise Cancelled(f"{self.adapter.info.name} was cancelled between two tokens.")
        total_ms = self.timeline.end() - self.lost_ms
        load = self.meter.read()
        self.adapter.runs += 1
        batch = Batch(
            id=secrets.token_hex(6),
            size=len(self.remaining),
            spans=self._spans(),
            total_ms=total_ms,
            tokens=sum(len(member.answer.ids) for member in self.remaining),
            cached=self.cached,
        )
        environment, notes = device.environment(self.adapter.device), tuple(self._notes())
        for member in self.remaining:
            result = self._result(member, batch, notes, environment)
            member.result = replace(result, machine_load=load)

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
        """Notes for every result of the batch."""
        if self.adapter.dtype != torch.float32:
            yield NOT_EXACT.format(dtype=str(self.adapter.dtype).removeprefix("torch."))
        if compiled.wanted(self.config, self.adapter.device):
            yield EAGER.format(backend=self.config.backend)
        if self.cached:
            yield CACHED.format(cached=self.cached, size=len(self.remaining))
        if self.policy == "use" and self.cached < len(self.remaining):
            yield NOT_KEPT

    def _result(
        self,
        member: _Member,
        batch: Batch,
        notes: tuple[str, ...],
        environment: Mapping[str, str],
    ) -> RunResult:
        answer, request = member.answer, member.request
        letters = letter_scores.read(
            self.adapter,
            request,
            lambda: letter_scores.prefill(self.adapter, _embeddings(self.adapter, member)),
        )
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
            notes=(*member.notes, *notes, *letters.notes),
            environment=environment,
            batch=batch,
            extent=member.extent,
            token_limit=_rules(member).config.max_new_tokens,
            letter_logprobs=letters.values,
        )


def _prepared(member: _Member) -> Prepared:
    assert member.prepared is not None
    return member.prepared


def _rules(member: _Member) -> AnswerRules:
    assert member.rules is not None
    return member.rules


def _features(member: _Member) -> Features:
    assert member.features is not None
    return member.features


def _embeddings(adapter: Adapter, member: _Member) -> torch.Tensor:
    """The prompt's embeddings [1, context, hidden]; families without them refuse batches."""
    prompt = adapter.embed(_prepared(member), _features(member))
    assert isinstance(prompt, torch.Tensor)
    return prompt
