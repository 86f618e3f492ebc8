"""Stage times hold the work that was queued in them: the host waits before it reads the clock.

No real time is asserted.  On the device's virtual clock each operation takes 1 ms after it was
queued, and the host's time stands still until it waits, so a stage without a wait is too short.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine import timing
from engine.models.adapter import Adapter
from engine.pipeline import Watcher, batch_run, draft_loop, single_run
from engine.pipeline.drafts import DraftRequest
from engine.pipeline.feature_cache import FeatureCache
from engine.timing import Timeline
from engine.types import DecodeConfig, RunOptions, RunRequest, RunResult, Sample
from tests.faults import stages as faults
from tests.pretended.conftest import FAMILIES, GENERIC, Load
from tests.pretended.device import NAME, clock

QUESTION = "What is on the road?"
GREEDY = DecodeConfig(max_new_tokens=6, min_new_tokens=6)


@pytest.fixture(autouse=True)
def virtual_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's clock of stages and drafts is the device's."""
    fake = SimpleNamespace(**vars(time) | {"perf_counter": clock.perf_counter})
    for module in (timing, draft_loop):
        monkeypatch.setattr(module, "time", fake)


class Queued:
    """Counts the operations that are queued inside a method or module."""

    def __init__(self) -> None:
        self.operations = 0
        self._before: list[int] = []

    def enter(self, *_: object) -> None:
        self._before.append(clock.operations)

    def leave(self, *_: object) -> None:
        self.operations += clock.operations - self._before.pop()

    def inside(self, patch: pytest.MonkeyPatch, owner: Any, name: str) -> Queued:
        """Counts inside this function, which goes on as before."""
        function = getattr(owner, name)

        def counted(*args: Any, **options: Any) -> Any:
            self.enter()
            found = function(*args, **options)
            self.leave()
            return found

        patch.setattr(owner, name, counted)
        return self


def run(adapter: Adapter, sample: Sample, store: FeatureCache | None, **options: Any) -> RunResult:
    chosen = {"decode": GREEDY, "cache": "off", **options}
    return single_run.run(
        adapter, RunRequest(sample, adapter.info.name, QUESTION, RunOptions(**chosen)), store
    )


def ms(result: RunResult, stage: str) -> float:
    span = result.span(stage)
    assert span is not None
    return span.ms


def decoupled_times_are_right(adapter: Adapter, sample: Sample, patch: pytest.MonkeyPatch) -> bool:
    """Stage 2 has its copies, stage 3 the tower's work, stage 4 its own, and nothing is lost."""
    with patch.context() as patched:
        queued = {
            "preprocess": Queued().inside(patched, adapter, "preprocess"),
            "vision": Queued().inside(patched, adapter, "encode"),
            "decode": Queued().inside(patched, single_run._Run, "decode"),
        }
        result = run(adapter, sample, None)
    assert all(one.operations > 2 for one in queued.values())
    return all(ms(result, stage) == pytest.approx(one.operations) for stage, one in queued.items())


def hooked_times_are_right(adapter: Adapter, sample: Sample, patch: pytest.MonkeyPatch) -> bool:
    """The probe has the work of the vision modules, and stage 4 the rest of generate()."""
    tower, whole = Queued(), Queued()
    handles = [one.register_forward_pre_hook(tower.enter) for one in adapter.vision_modules()]
    with patch.context() as patched:
        whole.inside(patched, adapter, "generate")
        # the counter's last hook comes before the probe's, as it is registered before
        handles += [one.register_forward_hook(tower.leave) for one in adapter.vision_modules()]
        result = run(adapter, sample, None, mode="hooked")
    for handle in handles:
        handle.remove()
    assert 2 < tower.operations < whole.operations
    vision, rest = ms(result, "vision"), ms(result, "decode")
    return [vision, rest] == pytest.approx([tower.operations, whole.operations - tower.operations])


def cached_times_are_right(
    adapter: Adapter, sample: Sample, folder: Path, patch: pytest.MonkeyPatch
) -> bool:
    """Stage 3 from the cache has the copies of the features to the device; nothing is lost."""
    cache = FeatureCache(folder, 64)
    run(adapter, sample, cache, cache="use")
    with patch.context() as patched:
        copies = Queued().inside(patched, single_run._Run, "_read_features")
        before, result = clock.operations, run(adapter, sample, cache, cache="use")
    assert result.cached and copies.operations
    found = sum(ms(result, stage) for stage in ("load", "preprocess", "vision", "decode"))
    whole = clock.operations - before
    return [ms(result, "vision"), found] == pytest.approx([copies.operations, whole])


@pytest.mark.parametrize("family", [*FAMILIES, *GENERIC])
def test_stages_hold_the_work_that_is_queued_in_them(
    family: str, load: Load, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert decoupled_times_are_right(load(family, NAME), sample, monkeypatch)


@pytest.mark.parametrize("family", [*FAMILIES, *GENERIC])
def test_the_probe_holds_the_towers_work_and_stage_4_the_rest(
    family: str, load: Load, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hooked_times_are_right(load(family, NAME), sample, monkeypatch)


@pytest.mark.parametrize("family", [*FAMILIES, *GENERIC])
def test_stage_3_from_the_cache_holds_the_copies(
    family: str, load: Load, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cached_times_are_right(load(family, NAME), sample, tmp_path / "features", monkeypatch)


def test_control_copies_of_features_that_are_not_waited_for_are_noticed(
    load: Load, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = load("llava", NAME)
    monkeypatch.setattr(Timeline, "settled", Timeline.mark)
    assert not cached_times_are_right(adapter, sample, tmp_path / "features", monkeypatch)


@pytest.mark.parametrize(
    ("times_are_right", "plant"),
    [
        (decoupled_times_are_right, faults.never_synchronised),
        (decoupled_times_are_right, faults.not_synchronised_at_the_end),
        (hooked_times_are_right, faults.never_synchronised),
        (hooked_times_are_right, faults.probe_not_synchronised),
    ],
    ids=lambda one: one.__name__,
)
def test_control_a_clock_that_does_not_wait_is_noticed(
    times_are_right: Callable[[Adapter, Sample, pytest.MonkeyPatch], bool],
    plant: Callable[[pytest.MonkeyPatch], None],
    load: Load,
    sample: Sample,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    adapter = load("llava", NAME)
    plant(monkeypatch)
    assert not times_are_right(adapter, sample, monkeypatch)


def batch_times_are_right(
    adapter: Adapter, samples: list[Sample], patch: pytest.MonkeyPatch
) -> bool:
    with patch.context() as patched:
        queued = {
            "preprocess": Queued().inside(patched, adapter, "preprocess"),
            "vision": Queued().inside(patched, adapter, "encode_batch"),
            "decode": Queued().inside(patched, batch_run._BatchRun, "decode"),
        }
        asked = [
            RunRequest(one, adapter.info.name, QUESTION, RunOptions(decode=GREEDY, cache="off"))
            for one in samples
        ]
        found = batch_run.run(adapter, asked, None)[0]
    assert isinstance(found, RunResult) and found.batch is not None
    times = {span.name: span.ms for span in found.batch.spans}
    return {name: times[name] for name in queued} == pytest.approx(
        {name: one.operations for name, one in queued.items()}
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batchs_stages_hold_their_work(
    family: str, load: Load, samples: list[Sample], monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = load(family, NAME)
    assert batch_times_are_right(adapter, samples, monkeypatch)
    faults.not_synchronised_at_the_end(monkeypatch)
    assert not batch_times_are_right(adapter, samples, monkeypatch)


def draft_times_are_right(
    target: Adapter, draft: Adapter, sample: Sample, patch: pytest.MonkeyPatch
) -> bool:
    """The drafts' time and the target's time hold what is queued in them, and nothing is lost."""
    with patch.context() as patched:
        cycles = Queued().inside(patched, draft_loop._Loop, "cycle")
        drafts = Queued().inside(patched, draft_loop._Loop, "_draft")
        names = target.info.name, draft.info.name
        request = DraftRequest((sample,), *names, prompt=QUESTION, decode=GREEDY, runs=1)
        trial = draft_loop.try_sample(sample, request, target, draft, Watcher())
    (timed,) = trial.drafted
    assert 0 < drafts.operations < cycles.operations
    both = [timed.draft_ms, timed.draft_ms + timed.passes_ms]
    return both == pytest.approx([drafts.operations / 2, cycles.operations / 2])  # with a warm-up


def test_drafting_times_hold_their_work(
    load: Load, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The draft is often wrong, so that what the target kept of it is removed after each pass."""
    target, draft = load("video_llava", NAME), load("llava", NAME)
    assert draft_times_are_right(target, draft, sample, monkeypatch)
    monkeypatch.setattr(draft_loop, "synchronizer", lambda device: lambda: None)
    assert not draft_times_are_right(target, draft, sample, monkeypatch)
