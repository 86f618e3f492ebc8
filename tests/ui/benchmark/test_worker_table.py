from __future__ import annotations

from typing import Any

import pytest

from engine.benchmark.run_progress import WorkerView
from ui.benchmark import worker_table


def worker(**more: Any) -> WorkerView:
    given: dict[str, Any] = {
        "id": "x", "node": "host ::1 (n1)", "device": "cpu", "type": "A *fast* one",
        "shares": ("device",), "state": "waiting", "ended": False, "done": 3, "per_s": 0.51234,
    }  # fmt: skip
    return WorkerView(**given | more)


LIVE = worker()
STARTING = worker(id="y", device="", type="", shares=(), state="starting", done=0, per_s=None)
GONE = worker(id="z", node="n2", ended=True, state="released", shares=(), per_s=None)
NEVER = worker(id="v", node="n3", ended=True, state="ended: no room", device="", done=0)


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
    workers: tuple[WorkerView, ...], ended: bool, words: str
) -> None:
    assert worker_table.heading(workers, ended) == words


def test_a_row_says_what_is_so_now_only_while_it_is() -> None:
    live, ended = worker_table.row(LIVE, ended=False), worker_table.row(GONE, ended=True)
    assert live["shared"] == "device" and live["rate (/s)"] == "0.512"
    assert live["device"] == r"A \*fast\* one\, cpu"
    assert set(live) - set(ended) == set(worker_table.LIVE_ONLY) and live["state"] == "waiting"
    assert ended["results"] == "3" and ended["state"] == "released"
    assert worker_table.row(NEVER, ended=True)["state"] == r"ended\: no room"
