"""run(): one model answers one question about one sample.

Boundary: the only file that knows the order of the stages.  It starts no threads and keeps no
state beside the adapter's count of runs; whoever calls it owns the device for that time.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import torch
from transformers.generation import BaseStreamer, StoppingCriteria, StoppingCriteriaList

from engine import media
from engine.decoding import decode
from engine.decoding.compiled import CompiledStep
from engine.errors import CacheError, Cancelled, OutOfMemory
from engine.machine import device, memory
from engine.machine.load_meter import Meter
from engine.models.adapter import Adapter, generate_options
from engine.pipeline.prefix_reuse import Reuse
from engine.pipeline.watcher import Watcher
from engine.timing import UNKNOWN, Timeline, Usage, VisionProbe, profiler_range
from engine.types import (
    Extent,
    Generation,
    Image,
    Media,
    Prepared,
    Ran,
    RunRequest,
    RunResult,
    StageName,
    Stop,
    TensorSpec,
)

if TYPE_CHECKING:
    from engine.pipeline.feature_cache import FeatureCache
    from engine.pipeline.prefix_cache import Prefixes


COMPILED_BEFORE = (
    "The compiled decode step was made ready in {:.1f} s, before this run's clock started."
)
NO_FEATURES = (
    "An entry of the feature cache has another shape than this model's features. The features "
    "were computed."
)
COMPILED_WITHIN = (
    "The compiled decode step was made ready in {:.1f} s, between stages 3 and 4 of this run."
)
NOT_COMPILED = "The tokens were decoded eagerly, since compiling the step failed: {}."


def run(
    adapter: Adapter,
    request: RunRequest,
    cache: FeatureCache | None,
    watcher: Watcher | None = None,
    kept: Prefixes | None = None,
) -> RunResult:
    """The four stages, one after another, on the adapter's device; without a cache if it is None.

    `kept` is where a request that asks for it finds and keeps its prompt's prefix.

    BadInput for what the user can mend, OutOfMemory with figures and all of it freed, Cancelled
    between stages; a run cancelled between two tokens is a result with the tokens so far.
    """
    try:
        with memory.guard(adapter.info.name, adapter.device):
            return _answer(adapter, request, cache, watcher, kept)
    except OutOfMemory:
        if kept is not None:
            kept.clear()  # what the next run may need more
        raise


@torch.inference_mode()
def _answer(
    adapter: Adapter,
    request: RunRequest,
    cache: FeatureCache | None,
    watcher: Watcher | None,
    kept: Prefixes | None,
) -> RunResult:
    prepare(cache)
    watcher = watcher or Watcher()
    if adapter.step_for(request) is not None:
        watcher.stage("compile")
    compiling = adapter.compile_ahead(request)
    with seeded(request.decode.seed, adapter.device):
        reuse = Reuse(adapter, kept if request.prefix else None)
        run_ = _Run(adapter, request, cache, watcher, reuse)  # the clock starts here
        if compiling:
            run_.notes.append(COMPILED_BEFORE.format(compiling))
        media_ = run_.load()
        prepared = run_.preprocess(media_)
        if request.mode == "hooked":
            run_.generate(prepared)
        else:
            rows = run_.encode(prepared)
            run_.decode(prepared, rows)
        return run_.result()


def prepare(cache: FeatureCache | None) -> None:
    """What only a process's first run would pay for: readers imported, the cache opened."""
    media.prepare()
    if cache is None:
        return
    with contextlib.suppress(CacheError):  # the run meets the same trouble and notes it
        cache.prepare()


def pixel_notes(adapter: Adapter, request: RunRequest) -> tuple[str, ...]:
    """What a result says where pixels were not made as it was asked."""
    if request.pixels == "exact" or adapter.has_fast_pixels:
        return ()
    return ("Fast pixels do not know this image processor: its own are used.",)


def picture_specs(images: Sequence[Image]) -> list[TensorSpec]:
    """Stage 1's pictures [N, H, W, 3]; one entry for each size there is."""
    counts = Counter(image.shape for image in images)
    return [
        TensorSpec("images", (n, *shape), "uint8", n * prod(shape)) for shape, n in counts.items()
    ]


class Staged:
    """What goes through the stages, one run or a batch of them: each is announced, timed, and not
    begun once somebody has cancelled."""

    adapter: Adapter
    watcher: Watcher
    timeline: Timeline

    @contextmanager
    def _stage(self, name: StageName) -> Iterator[None]:
        self._enter(name)
        with self.timeline.span(name):
            yield

    def _enter(self, name: StageName) -> None:
        if self.watcher.cancelled():
            raise Cancelled(f"{self.adapter.info.name} was cancelled before its {name} stage.")
        self.watcher.stage(name)


class _Run(Staged):
    """The state of one run: its clock, its tokens, its notes."""

    def __init__(
        self,
        adapter: Adapter,
        request: RunRequest,
        cache: FeatureCache | None,
        watcher: Watcher,
        reuse: Reuse,
    ) -> None:
        self.adapter, self.request, self.cache, self.watcher = adapter, request, cache, watcher
        self.reuse = reuse
        self.notes = list(adapter.notes)
        self.tensors: list[TensorSpec] = []
        self.ids: list[int] = []
        self.token_ms: list[float] = []
        self.cold = adapter.runs == 0
        self.context = 0
        self.shown = ""
        self.extent: Extent | None = None
        self.stop: Stop = "eos"
        self.backend: Ran = "generate" if request.mode == "hooked" else "eager"
        self.to_store: Callable[[], None] | None = None
        self.first_usage = self.last_usage = UNKNOWN
        self.meter = Meter(torch.get_num_threads())
        self.timeline = Timeline(adapter.device)

    # stage 1
    def load(self) -> Media:
        with self._stage("load"):
            request = self.request
            kind = self.adapter.kind
            found = media.load(request.sample, kind, request.frames, request.extent)
        self.notes += found.notes
        self.shown, self.extent = found.shown, found.extent
        self.tensors += picture_specs(found.images)
        return found

    # stage 2
    def preprocess(self, found: Media) -> Prepared:
        with self._stage("preprocess"):
            setting, prompt = self.request.pixels, self.request.prompt
            prepared = self.reuse.words(found, prompt, setting)
            if prepared is None:
                prepared = self.adapter.preprocess(found, prompt, setting)
            self.adapter.check_context(prepared, self.request.decode.max_new_tokens)
        self.context = prepared.context_tokens
        self.notes += pixel_notes(self.adapter, self.request)
        if self.reuse.prefix is None:
            self._record("pixels", prepared.pixels)
        self._record("input_ids", prepared.input_ids)
        return prepared

    # stage 3
    def encode(self, prepared: Prepared) -> torch.Tensor | None:
        """Visual rows [V, hidden]; None where the model has read them before."""
        if self.reuse.prefix is not None:
            with self._stage("vision"):  # nothing is left to do, and the span says so
                return None
        self._enter("vision")
        rows = self._read(prepared) if self.request.cache == "use" else None
        if rows is None:
            with self.timeline.span("vision"):
                rows = self.adapter.encode(prepared)
            self._keep(prepared, rows)
        self._record("features", rows)
        return rows

    def _read(self, prepared: Prepared) -> torch.Tensor | None:
        if self.cache is None:
            return None
        start, before = self.timeline.mark()
        try:
            stored = self.cache.read(self.adapter.feature_spec(prepared))
        except CacheError as error:
            self.notes.append(f"{error} The features were computed.")
            return None
        if stored is None:
            return None
        if not self.adapter.takes(prepared, stored.rows):
            self.notes.append(NO_FEATURES)
            return None
        rows = stored.rows.to(self.adapter.device)
        end, after = self.timeline.mark()
        used = after.since(before)
        self.timeline.add("vision", start, end - start, "cached", stored.encode_ms, used)
        if stored.cold:
            self.notes.append("The cached features were computed in a model's first (cold) run.")
        return rows

    def _keep(self, prepared: Prepared, rows: torch.Tensor) -> None:
        """Writing waits until the answer is there: it belongs to no stage."""
        cache = self.cache
        if cache is None or self.request.cache == "off":
            return
        spec, ms = self.adapter.feature_spec(prepared), self.timeline.spans[-1].ms
        self.to_store = lambda: cache.write(spec, rows, ms, self.cold)

    # stage 4
    def decode(self, prepared: Prepared, rows: torch.Tensor | None) -> None:
        steps = self._steps()
        with self._stage("decode"):
            start, before = self.timeline.mark()
            read = self.reuse.embed if rows is None else partial(self.adapter.embed, rows=rows)
            embeds = read(prepared)
            self._record("embeddings", embeds)
            _, self.stop = decode.generate(
                self.adapter.decoder,
                embeds,
                self.request.decode,
                self._token,
                self.watcher.cancelled,
                steps,
                self.reuse.begin(),
                self.adapter.rules_for(prepared, self.request.decode),
            )
        self._split_decode(start, before)

    def _steps(self) -> CompiledStep | None:
        """The compiled step where it is asked for and can be had; None is the eager one."""
        step, config = self.adapter.step_for(self.request), self.request.decode
        if step is None:
            return None
        start = self.timeline.now()
        if seconds := step.ready(self.context + config.max_new_tokens):  # mostly done ahead
            self.timeline.add("compile", start, seconds * 1000)
            self.notes.append(COMPILED_WITHIN.format(seconds))
        if step.failure:
            self.notes.append(NOT_COMPILED.format(step.failure))
            return None
        self.backend = "compiled"
        return step

    # stages 3 and 4 inside the model's own generate()
    def generate(self, prepared: Prepared) -> None:
        self._enter("vision")
        adapter, asked = self.adapter, self.request.decode
        config = decode.generation_config(asked, adapter.eos_ids, adapter.rules, self.context)
        stopping = StoppingCriteriaList([CancelBetweenTokens(self.watcher.cancelled)])
        options = generate_options(config, _Streamer(self._token), stopping)
        options["logits_processor"] = [decode.FirstScores()]
        start, before = self.timeline.mark()
        with (
            profiler_range("generate", self.adapter.device),
            VisionProbe(self.adapter.vision_modules(), self.adapter.device) as probe,
        ):
            self.adapter.generate(prepared, **options)
        end, after = self.timeline.mark()
        total, rest = end - start, after.since(before).since(probe.used)
        self.timeline.add("vision", start, probe.ms, "hook", used=probe.used)
        self.timeline.add("decode", start + probe.ms, total - probe.ms, "derived", used=rest)
        self._split_decode(start + probe.ms, before.after(probe.used))
        self.stop = self._why_stopped()
        if self.adapter.device.type == "mps":
            self.notes.append("On MPS generate() hands tokens on one step late: TTFT is too long.")

    def _why_stopped(self) -> Stop:
        if self.ids and self.ids[-1] in self.adapter.eos_ids:
            return "eos"
        return "length" if len(self.ids) >= self.request.decode.max_new_tokens else "cancelled"

    def _token(self, token: int) -> None:
        ms = self.timeline.now()
        self.last_usage = self.timeline.usage()
        if not self.ids:
            self.first_usage = self.last_usage
        self.ids.append(token)
        self.token_ms.append(ms)
        self.watcher.token(token, ms)

    def _split_decode(self, start: float, before: Usage) -> None:
        """The parts of stage 4, which began at `start` when `before` had been used."""
        if self.token_ms:
            first, last = self.token_ms[0], self.token_ms[-1]
            source = self.timeline.spans[-1].source
            prefill = self.first_usage.since(before)
            steps = self.last_usage.since(self.first_usage)
            self.timeline.add("decode.prefill", start, first - start, source, used=prefill)
            self.timeline.add("decode.steps", first, last - first, source, used=steps)

    def _record(self, name: str, tensor: torch.Tensor) -> None:
        dtype = str(tensor.dtype).removeprefix("torch.")
        self.tensors.append(TensorSpec(name, tuple(tensor.shape), dtype, tensor.nbytes))

    def result(self) -> RunResult:
        total = self.timeline.end()
        load = self.meter.read()
        self.adapter.runs += 1
        if self.to_store is not None:
            self._store(self.to_store)
        self.reuse.finish(self.timeline, self.cold)
        generation = Generation(
            token_ids=tuple(self.ids),
            text=self.adapter.text(self.ids),
            stop=self.stop,
            prompt_tokens=self.context,
            token_ms=tuple(self.token_ms),
        )
        return RunResult(
            request=self.request,
            model=self.adapter.info,
            spans=tuple(self.timeline.spans),
            generation=generation,
            total_ms=total,
            cold=self.cold,
            backend=self.backend,
            shown=self.shown,
            tensors=tuple(self.tensors),
            notes=(*self.notes, *self.reuse.notes),
            environment=device.environment(self.adapter.device),
            prefix=self.reuse.use,
            extent=self.extent,
            clocks=(self.timeline.began, self.timeline.ended),
            machine_load=load,
        )

    def _store(self, write: Callable[[], None]) -> None:
        try:
            write()
        except CacheError as error:
            self.notes.append(f"{error} The features were not kept.")


class _Streamer(BaseStreamer):
    """Hands on the new tokens of generate(), which puts the prompt (if it has ids) first."""

    def __init__(self, on_token: Callable[[int], None]) -> None:
        self._on_token = on_token
        self._prompt_seen = False

    def put(self, value: torch.Tensor) -> None:
        if not self._prompt_seen:
            self._prompt_seen = True
            return
        for token in value.flatten().tolist():
            self._on_token(token)

    def end(self) -> None: ...


class CancelBetweenTokens(StoppingCriteria):
    """Ends a model's own generate() when `cancelled` says so."""

    def __init__(self, cancelled: Callable[[], bool]) -> None:
        self._cancelled = cancelled

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        size, device_ = input_ids.shape[0], input_ids.device
        return torch.full((size,), self._cancelled(), dtype=torch.bool, device=device_)


@contextmanager
def seeded(seed: int, on: torch.device) -> Iterator[None]:
    """torch's generators start from the seed and are put back afterwards."""
    devices = [] if on.type == "cpu" else [on]
    with torch.random.fork_rng(devices, device_type=on.type if devices else "cuda"):
        torch.manual_seed(seed)
        yield
