"""Faults of stages and times: work in the wrong stage, wrong figures, wrong clocks."""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch

from engine import media, timing
from engine.models.llava import LlavaAdapter
from engine.pipeline import single_run
from engine.timing import Timeline, VisionProbe
from engine.types import RunResult
from tests.faults.fault import LONG_S, Patch, fault, replaces
from tests.faults.models import slow_tower


def loads_from_memory(patch: Patch) -> None:
    load = media.load
    kept: dict[Any, Any] = {}

    def cached(sample: Any, kind: Any, *more: Any) -> Any:
        files = (*sample.event_images, *sample.frames, *sample.images, sample.mp4, sample.events)
        key = (files, kind, *(how.media for how in more))
        if key not in kept:
            kept[key] = load(sample, kind, *more)
        return kept[key]

    patch.setattr(media, "load", cached)


def reads_before_the_clock(patch: Patch) -> None:
    init, load = single_run._Run.__init__, single_run._Run.load

    def early(self: Any, adapter: Any, request: Any, cache: Any, watcher: Any, *more: Any) -> None:
        self.early = watcher.load(request.sample, adapter.kind, request.how)
        init(self, adapter, request, cache, watcher, *more)

    def late(self: Any, asked: Any) -> Any:
        self.watcher.load = lambda *_: self.early
        try:
            return load(self, asked)
        finally:
            del self.watcher.load

    patch.setattr(single_run._Run, "__init__", early)
    patch.setattr(single_run._Run, "load", late)


def preprocesses_inside_load(patch: Patch) -> None:
    preprocess = single_run._Run.preprocess

    def load(self: Any, asked: Any) -> Any:
        with self._stage("load"):
            request = asked.request
            found = self.watcher.load(request.sample, self.adapter.kind, request.how)
            self.ahead = self.adapter.preprocess(found, request.prompt)
        asked.shown = found.source
        return found

    def later(self: Any, asked: Any, found: Any) -> Any:
        adapter, ahead = self.adapter, self.ahead
        adapter.preprocess = lambda *_: ahead
        try:
            return preprocess(self, asked, found)
        finally:
            del adapter.preprocess

    patch.setattr(single_run._Run, "load", load)
    patch.setattr(single_run._Run, "preprocess", later)


def encodes_inside_preprocess(patch: Patch) -> None:
    preprocess, encode = single_run._Run.preprocess, LlavaAdapter.encode
    kept: dict[int, Any] = {}

    def early(self: Any, asked: Any, found: Any) -> Any:
        adapter = self.adapter
        made = type(adapter).preprocess

        def both(*given: Any) -> Any:
            prepared = made(adapter, *given)
            kept[id(prepared)] = (prepared, encode(adapter, prepared))
            return prepared

        adapter.preprocess = both
        try:
            return preprocess(self, asked, found)
        finally:
            del adapter.preprocess

    def late(self: Any, prepared: Any) -> Any:
        known = kept.pop(id(prepared), None)
        return known[1] if known else encode(self, prepared)

    patch.setattr(single_run._Run, "preprocess", early)
    patch.setattr(LlavaAdapter, "encode", late)


@replaces(single_run._Run, "load")
def work_between_the_stages(load: Any, self: Any, asked: Any) -> Any:
    found = load(self, asked)
    time.sleep(LONG_S)
    return found


def never_synchronised(patch: Patch) -> None:
    patch.setattr(timing, "synchronizer", lambda *_: lambda: None)


@replaces(Timeline, "span")
@contextmanager
def not_synchronised_at_the_end(_: Any, self: Any, name: str) -> Iterator[None]:
    self._sync()
    start = self.now()
    yield
    self.add(name, start, self.now() - start)


@replaces(VisionProbe, "__init__")
def probe_not_synchronised(init: Any, self: Any, *given: Any) -> None:
    init(self, *given)
    self._sync = lambda: None


def result_figure(name: str, figure: Callable[[RunResult], Any]) -> Callable[[Patch], None]:
    def plant(patch: Patch) -> None:
        patch.setattr(RunResult, name, property(figure))

    return plant


def _decode_start(result: RunResult) -> float:
    span = result.span("decode")
    return span.start_ms if span else 0.0


def _ttft_without_stages(result: RunResult) -> float | None:
    times = result.generation.token_ms
    return times[0] - _decode_start(result) if times else None


def _tpot_by_n(result: RunResult) -> float | None:
    times = result.generation.token_ms
    return (result.total_ms - times[0]) / len(times) if len(times) > 1 else None


@replaces(Timeline, "add")
def cached_shown_as_measured(
    add: Any, self: Any, name: str, start: float, ms: float, *_: Any, **__: Any
) -> None:
    add(self, name, start, ms)


def probe_overwrites(patch: Patch) -> None:
    """The last module's time replaces all others'; the tower is slow, so that it must count."""
    slow_tower(patch)
    leave = VisionProbe._leave

    def overwrite(self: VisionProbe, index: int, *given: Any) -> None:
        self.ms = 0.0
        leave(self, index, *given)

    patch.setattr(VisionProbe, "_leave", overwrite)


def probe_changes_what_it_sees(patch: Patch) -> None:
    def negate(self: VisionProbe, index: int, module: Any, given: Any, out: Any) -> Any:
        return -out if isinstance(out, torch.Tensor) else None

    patch.setattr(VisionProbe, "_enter", lambda *_: None)
    patch.setattr(VisionProbe, "_leave", negate)


def probe_is_slow(patch: Patch) -> None:
    from engine.verify import runner

    patch.setattr(runner, "PAIRS", 20)
    patch.setattr(runner, "PAIRS_S", 60.0)
    enter = VisionProbe.__enter__

    def slow(self: VisionProbe) -> VisionProbe:
        time.sleep(LONG_S)
        return enter(self)

    patch.setattr(VisionProbe, "__enter__", slow)


def probe_stays(patch: Patch) -> None:
    patch.setattr(VisionProbe, "__exit__", lambda self, *_: None)


@replaces(single_run._Run, "generate")
def weights_drift(generate: Any, self: Any, prepared: Any) -> None:
    """By a way that torch does not count as a change."""
    generate(self, prepared)
    self.adapter.decoder.head.weight.data.mul_(1.001)


def clock_jumps_back(patch: Patch) -> None:
    ticks = itertools.cycle((0.0, 5.0, 1.0))
    fake = SimpleNamespace(**vars(time) | {"perf_counter": lambda: next(ticks)})
    patch.setattr(timing, "time", fake)


def clock_runs_slow(patch: Patch) -> None:
    real = time.perf_counter
    fake = SimpleNamespace(**vars(time) | {"perf_counter": lambda: real() / 10})
    patch.setattr(timing, "time", fake)
    slow_tower(patch)


RUN = "pipeline/test_stage_work pipeline/test_single_run"
TIMES = f"test_timing {RUN}"
FAULTS = (
    fault("loads from memory", "llava", "", loads_from_memory, f"{RUN} media/test_load",
          "A sample's pictures are kept in memory, and later loads do not read files.", "stages"),
    fault("reads before the clock", "llava", "", reads_before_the_clock, RUN,
          "Files are read before the run's clock starts.", "stages"),
    fault("preprocesses inside load", "llava", "", preprocesses_inside_load, RUN,
          "Pixels and ids are made in the load stage.", "stages"),
    fault("encodes inside preprocess", "llava", "", encodes_inside_preprocess, RUN,
          "Visual rows are computed in the preprocess stage.", "stages"),
    fault("work between the stages", "llava", "accounted", work_between_the_stages, RUN,
          "A run waits between two stages.", "stages", 5),
    fault("never synchronised", "llava", "", never_synchronised, TIMES,
          "The clock never waits for the device.", "device"),
    fault("not synchronised at the end", "llava", "", not_synchronised_at_the_end,
          TIMES, "A span does not wait for the device at its end.", "device"),
    fault("probe not synchronised", "llava", "", probe_not_synchronised, TIMES,
          "The probe does not wait for the device.", "device"),
    fault("TTFT without the first stages", "llava", "",
          result_figure("ttft_ms", _ttft_without_stages), f"test_types {RUN}",
          "TTFT is counted from the decode stage.", "figures"),
    fault("TPOT by N", "llava", "", result_figure("tpot_ms", _tpot_by_n),
          f"test_types {RUN}", "TPOT divides by N, not by N - 1.", "figures"),
    fault("cached total", "llava", "",
          result_figure("uncached_total_ms", lambda result: result.total_ms),
          f"test_types {RUN}", "The cold total of a cached run is its own total.",
          "figures"),
    fault("nothing unaccounted", "llava", "",
          result_figure("unaccounted_ms", lambda result: 0.0), f"test_types {RUN}",
          "The unaccounted time is always 0.", "figures"),
    fault("cached shown as measured", "llava", "", cached_shown_as_measured, TIMES,
          "A cached stage is shown as measured.", "figures"),
    fault("probe overwrites", "llava", "stage3", probe_overwrites, TIMES,
          "The probe keeps the last module's time alone.", "stages", 5),
    fault("probe changes what it sees", "eventgpt", "equal_hooked", probe_changes_what_it_sees,
          f"{TIMES} models/test_equality", "The probe negates what a module returns."),
    fault("probe is slow", "llava", "observer", probe_is_slow, TIMES,
          "The probe waits before each call of generate().", "stages"),
    fault("probe stays", "llava", "left_as_found", probe_stays, TIMES,
          "The probe leaves its hooks on the model.", "stages"),
    fault("weights drift", "llava", "left_as_found", weights_drift, TIMES,
          "Each hooked run changes the head's weights a little."),
    fault("clock jumps back", "llava", "clock", clock_jumps_back, TIMES,
          "The run's clock goes back in time.", "device"),
    fault("clock runs slow", "llava", "clock", clock_runs_slow, TIMES,
          "The run's clock runs at a tenth of the speed.", "device"),
)  # fmt: skip
