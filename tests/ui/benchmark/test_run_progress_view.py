from collections import deque
from typing import Any

import pytest

from engine.benchmark.cluster.workers import WorkerState
from engine.benchmark.run_progress import ModelProgress, Progress
from ui.benchmark import run_progress_view


def progress(**more: Any) -> Progress:
    live = (ModelProgress("a", 2, 1, {"load": 1.234, "total": 100.4}), ModelProgress("b", 0, 0, {}))
    given: dict[str, Any] = {
        "planned": 10, "done": 2, "failed": 1, "per_s": 0.5, "left_s": 130.0, "paused_ms": 0.0,
        "current": "a, measured, sample s1", "models": live, "failures": (), "notes": (),
    }  # fmt: skip
    return Progress(**given | more)


def test_a_pause_is_said_when_there_was_one() -> None:
    paused = run_progress_view.numbers(progress(paused_ms=61_000.0), False)
    assert ("Paused", "1 min 1 s") in [(name, value) for name, value, _ in paused]


def test_batches_have_columns_of_their_own() -> None:
    medians = {"batch": 4, "batch_ms": 120.0, "batch_tokens_per_s": 66.6}
    models = (ModelProgress("a", 4, 0, medians), ModelProgress("b", 0, 0, {}))
    first, second = run_progress_view.table(progress(models=models))
    assert first["samples at once"] == "4" and first["new tokens/s"] == "66.6"
    assert first["samples/s"] == second["time of a batch (ms)"] == "–"
    assert "total (ms)" not in first
    assert "samples at once" not in run_progress_view.table(progress())[0]


def worker(**more: Any) -> WorkerState:
    given: dict[str, Any] = {
        "id": "x", "node": "n1", "address": "::1", "host": "host", "state": "waiting", "done": 3,
        "device": {"name": "cpu", "type": "A *fast* one"}, "shared": ("device",),
        "ends": deque([0.0, 1 / 0.51234]),
    }  # fmt: skip
    return WorkerState(**given | more)


LIVE = worker()
STARTING = worker(id="y", device={}, shared=(), state="starting", done=0, ends=())
GONE = worker(id="z", node="n2", ended=True, state="released", shared=())
NEVER = worker(id="v", node="n3", ended=True, state="ended: no room", device={}, done=0)


@pytest.mark.parametrize(
    ("workers", "ended", "words"),
    [
        ((LIVE,), False, "1 worker on 1 node"),
        ((LIVE, STARTING, GONE), False, "2 workers on 1 node"),
        ((GONE,), True, "1 worker on 1 node took part"),
        ((GONE, worker(ended=True), NEVER), True, "2 workers on 2 nodes took part"),
        ((NEVER,), True, "0 workers on 0 nodes took part"),
    ],
)
def test_who_is_there_and_who_took_part(
    workers: tuple[WorkerState, ...], ended: bool, words: str
) -> None:
    assert run_progress_view.heading(workers, ended) == words


def test_a_row_says_what_is_so_now_only_while_it_is() -> None:
    live, ended = run_progress_view.row(LIVE, ended=False), run_progress_view.row(GONE, ended=True)
    assert live["shared"] == "device" and live["rate (/s)"] == "0.512"
    assert live["device"] == "A *fast* one, cpu" and live["node"] == "host ::1 (n1)"
    assert set(live) - set(ended) == {"shared", "rate (/s)"} and live["state"] == "waiting"
    assert ended["results"] == "3" and ended["state"] == "released"
    assert run_progress_view.row(NEVER, ended=True)["state"] == "ended: no room"
