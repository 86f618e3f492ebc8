"""Progress: what is counted, what enters a median, and clocks that jump."""

import time
from typing import Any

import pytest

from engine.benchmark import run_progress
from engine.benchmark.run_progress import Tracker
from tests import fabricate
from tests.fabricate import parsed


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Its only value is the time."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def add(tracker: Tracker, *rows: dict[str, Any]) -> None:
    """Rows that ended together."""
    tracker.rows(parsed(list(rows)))


def test_counts_medians_and_failures() -> None:
    tracker = Tracker(10, ["ev", "vl"])
    tracker.begin()
    add(tracker, fabricate.row(phase="warmup", stages={"load": 900, "vision": 900}))
    add(tracker, fabricate.row(cold=True, stages={"load": 900, "vision": 900}))
    for load in (1.0, 2.0, 30.0):
        add(tracker, fabricate.row(stages={"load": load, "preprocess": 2, "vision": 10}))
    add(tracker, fabricate.failed("vl", "s7", "It broke."))
    tracker.current = "something"
    view = tracker.view()
    assert (view.planned, view.done, view.failed, view.current) == (10, 5, 1, "something")
    ev, vl = view.models
    assert ev.medians["load"] == 2.0 and ev.medians["new_tokens"] == 4 and ev.done == 4
    assert vl.medians == {} and vl.failed == 1
    assert (view.failures[0].sample, view.failures[0].error) == ("s7", "It broke.")
    assert view.per_s and view.left_s is not None


def test_types_of_devices_never_meet_in_a_median() -> None:
    tracker = Tracker(10, ["ev"])
    slow, fast = {"device": "cpu", "processor": "EPYC"}, {"device": "cuda:0", "hardware": "H200"}
    for load in (1.0, 3.0):
        add(tracker, fabricate.row(stages={"load": load, "vision": 1.0}, environment=fast))
    assert tracker.view().models[0].device == ""
    add(tracker, fabricate.row(stages={"load": 900.0, "vision": 1.0}, environment=slow))
    (live,) = tracker.view().models
    assert (live.medians["load"], live.device, live.done) == (2.0, "H200", 3)


def test_backends_never_meet_in_a_median_and_the_compiled_one_is_said() -> None:
    tracker = Tracker(10, ["ev"])
    for load in (1.0, 3.0):
        ran = {"backend": {"asked": "auto", "ran": "compiled"}}
        add(tracker, fabricate.row(stages={"load": load, "vision": 1.0}, **ran))
    assert tracker.view().models[0].device == "compiled"
    add(tracker, fabricate.row(stages={"load": 900.0, "vision": 1.0}))
    (live,) = tracker.view().models
    assert (live.medians["load"], live.device) == (2.0, "compiled")
    alone = Tracker(10, ["ev"])
    add(alone, fabricate.row())
    assert alone.view().models[0].device == ""


def test_new_tokens_of_batches_and_of_single_runs_are_two_medians() -> None:
    tracker = Tracker(10, ["ev"], batch=2)
    add(tracker, *fabricate.batch(["a", "b"], tokens=9))
    add(tracker, fabricate.row(sample="c"))
    medians = tracker.view().models[0].medians
    assert (medians["batch_new_tokens"], medians["new_tokens"]) == (9, 4)


def test_nothing_grows_with_the_run() -> None:
    tracker = Tracker(10**6, ["ev"])
    for index in range(1000):
        add(tracker, fabricate.row(sample=f"s{index}"))
        add(tracker, fabricate.failed(sample=f"s{index}"))
        tracker.note("x")
    view = tracker.view()
    assert view.models[0].done == 2000 and len(view.failures) == len(view.notes) == 50
    (values,) = tracker._models["ev"].values.values()
    assert all(len(kept) <= run_progress.WINDOW for kept in values.values())


def test_the_rate_leaves_earlier_sessions_and_pauses_out(clock: list[float]) -> None:
    tracker = Tracker(10, ["ev"])
    for index in range(4):
        tracker.earlier(*parsed([fabricate.row(sample=f"s{index}")]))
    tracker.begin()
    assert tracker.view().per_s is None
    clock[0] += 12
    tracker.paused_ms += 10_000
    add(tracker, fabricate.row(sample="s5"))
    view = tracker.view()
    assert view.done == 5 and view.per_s == 0.5 and view.left_s == 10.0
    clock[0] += 0.25
    add(tracker, fabricate.row(sample="s6"))
    assert tracker.view().per_s == 4.0  # the first took long: a model was loaded before it
