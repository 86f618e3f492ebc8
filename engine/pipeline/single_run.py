"""run(): one model answers one question about one sample, in four stages.  The caller owns the
device during the call.  In hooked mode stages 3 and 4 run inside the model's own generate(): the
vision probe measures stage 3, and stage 4 is the rest of the call."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from engine import media
from engine.decoding import decode
from engine.decoding.compiled import CompiledStep
from engine.errors import CacheError
from engine.machine import device
from engine.models.adapter import Adapter
from engine.pipeline import Watcher
from engine.pipeline.run_stages import Asked, StagedRun, first_scores
from engine.timing import VisionProbe, profiler_range, total
from engine.types import COLD_VISION, Features, Prepared, Ran, RunRequest, RunResult, Stop

if TYPE_CHECKING:
    from engine.pipeline.feature_cache import FeatureCache

COMPILED_BEFORE = (
    "The compiled decode step was prepared in {:.1f} s, before this run's clock started."
)
COMPILED_WITHIN = (
    "The compiled decode step was prepared in {:.1f} s, between stages 3 and 4 of this run."
)
ONLY_HOOKED = "It ran in hooked mode: {}"
MPS_NOTE = "On MPS generate() hands tokens on one step late: TTFT is too long."
NOT_COMPILED = "The tokens were decoded eagerly, because compiling the step failed: {}."


def run(
    adapter: Adapter,
    request: RunRequest,
    cache: FeatureCache | None,
    watcher: Watcher | None = None,
) -> RunResult:
    """Runs the four stages on the adapter's device; `cache` None computes the features.  Raises
    BadInput for a user error, OutOfMemory after freeing the run's memory, Cancelled between stages.
    A run that is cancelled between two tokens returns the tokens so far."""
    with device.guard(adapter.info.name, adapter.device):
        return _answer(adapter, request, cache, watcher)


@torch.inference_mode()
def _answer(
    adapter: Adapter, request: RunRequest, cache: FeatureCache | None, watcher: Watcher | None
) -> RunResult:
    prepare(cache)
    watcher = watcher or Watcher()
    request, refused = offered(adapter, request)
    step = adapter.step_for(request)
    if step is not None:
        watcher.stage("compile")
    compiling = adapter.compile_ahead(request)
    with seeded(request.how.decode.seed, adapter.device):
        state = _Run(adapter, request, cache, watcher, step)  # the clock starts here
        state.asked.notes += refused
        if compiling:
            state.asked.notes.append(COMPILED_BEFORE.format(compiling))
        prepared = state.preprocess(state.asked, state.load(state.asked))
        if request.how.mode == "hooked":
            state.generate(prepared)
        else:
            state.decode(prepared, state.encode(prepared))
        return state.result()


def offered(adapter: Adapter, request: RunRequest) -> tuple[RunRequest, tuple[str, ...]]:
    """The request without the ways that the model refuses, and a note for each of these."""
    notes = []
    if request.how.mode == "decoupled" and (why := adapter.refuses.get("decoupled")):
        request = replace(request, how=replace(request.how, mode="hooked"))
        notes.append(ONLY_HOOKED.format(why))
    explicit = request.how.mode == "decoupled" and request.how.decode.backend == "compiled"
    if explicit and (why := adapter.refuses.get("compiled")):
        notes.append(why)
    return request, tuple(notes)


def prepare(cache: FeatureCache | None) -> None:
    """Imports the readers and opens the cache before a process's first run starts its clock."""
    media.prepare()
    if cache is None:
        return
    with contextlib.suppress(CacheError):  # the run fails in the same way and notes it
        cache.prepare()


class _Run(StagedRun):
    def __init__(
        self,
        adapter: Adapter,
        request: RunRequest,
        cache: FeatureCache | None,
        watcher: Watcher,
        step: CompiledStep | None,
    ) -> None:
        self.asked = Asked(adapter, request)
        self.step = step
        self.ids: list[int] = []
        self.stop: Stop = "eos"
        self.backend: Ran = "generate" if request.how.mode == "hooked" else "eager"
        self.to_store: Callable[[], None] | None = None
        super().__init__(adapter, cache, watcher)  # the clock starts

    # stage 3
    def encode(self, prepared: Prepared) -> Features:
        self._enter("vision")
        found = self._read_features(prepared) if self.asked.request.how.cache == "use" else None
        if found is None:
            with self.timeline.span("vision"):
                found = self.adapter.encode(prepared)
            if (cache := self.cache) is not None and self.asked.request.how.cache != "off":
                spec, ms = self.adapter.feature_spec(prepared), self.timeline.spans[-1].ms
                # after the answer, because writing belongs to no stage
                self.to_store = lambda: cache.write(spec, found, ms, self.cold)
        self.asked.features = found
        self.asked.record_features()
        return found

    def _read_features(self, prepared: Prepared) -> Features | None:
        start, before = self.timeline.mark()
        stored = self._cached_features(prepared, self.asked.notes)
        if stored is None:
            return None
        end, after = self.timeline.settled()  # copies to the device may still be queued
        used = after.since(before)
        self.timeline.add("vision", start, end - start, "cached", stored.encode_ms, used)
        if stored.cold:
            self.asked.notes.append(COLD_VISION)
        return stored.features

    # stage 4
    def decode(self, prepared: Prepared, features: Features) -> None:
        compiled_step = self._compiled_step()
        with self._stage("decode"):
            start, before = self.timeline.mark()
            prompt = self.adapter.embed(prepared, features)
            if isinstance(prompt, dict):  # the model embeds its ids
                self.asked.record("prompt", prompt["input_ids"])
            else:
                self.asked.record("embeddings", prompt)
            _, self.stop = decode.generate(
                self.adapter.decoder,
                prompt,
                self.asked.rules,
                self._token,
                self.watcher.cancelled,
                compiled_step,
            )
        self._split_decode(start, before)

    def _compiled_step(self) -> CompiledStep | None:
        """The compiled step if it was requested and compiles; None for the eager step."""
        step = self.step
        if step is None:
            return None
        tokens = self.asked.prepared.context_tokens + self.asked.rules.config.max_new_tokens
        start = self.timeline.now()
        if seconds := step.ready(tokens):  # usually 0
            self.timeline.add("compile", start, seconds * 1000)
            self.asked.notes.append(COMPILED_WITHIN.format(seconds))
        if step.failure:
            self.asked.notes.append(NOT_COMPILED.format(step.failure))
            return None
        self.backend = "compiled"
        return step

    # stages 3 and 4 inside the model's own generate()
    def generate(self, prepared: Prepared) -> None:
        self._enter("vision")
        adapter, timeline = self.adapter, self.timeline
        options = decode.own_options(self.asked.rules, self._token, self.watcher.cancelled)
        modules = adapter.vision_modules()
        with first_scores(adapter.model, self.asked.request) as self.asked.own_scores:
            start, before = timeline.mark()
            with (
                profiler_range("generate", adapter.device),
                VisionProbe(modules, adapter.device) as probe,
            ):
                adapter.generate(prepared, **options)
            end, after = timeline.mark()
        rest, used = start + probe.ms, after.since(before).since(probe.used)
        timeline.add("vision", start, probe.ms, "hook", used=probe.used)
        timeline.add("decode", rest, end - rest, "derived", used=used)
        self._split_decode(rest, total([before, probe.used]))
        full = len(self.ids) >= self.asked.rules.config.max_new_tokens
        ended = bool(self.ids) and self.ids[-1] in self.asked.rules.eos_ids
        self.stop = "eos" if ended else "length" if full else "cancelled"
        if adapter.device.type == "mps":
            self.asked.notes.append(MPS_NOTE)

    def _token(self, token: int) -> None:
        ms = self._stepped()
        self.ids.append(token)
        self.watcher.token(token, ms)

    def result(self) -> RunResult:
        total_ms = self._stop_clock()
        try:
            if self.to_store is not None:
                self.to_store()
        except CacheError as error:
            self.asked.notes.append(f"{error} The features were not kept.")
        return self._result(
            self.asked,
            self.ids,
            self.stop,
            self.step_ms,
            spans=tuple(self.timeline.spans),
            total_ms=total_ms,
            backend=self.backend,
            clocks=(self.timeline.began, self.timeline.ended),
        )


@contextmanager
def seeded(seed: int, on: torch.device) -> Iterator[None]:
    """Seeds torch's generators and restores their state afterwards."""
    devices = [] if on.type == "cpu" else [on]
    with torch.random.fork_rng(devices, device_type=on.type if devices else "cuda"):
        torch.manual_seed(seed)
        yield
