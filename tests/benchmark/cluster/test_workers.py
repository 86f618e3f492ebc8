"""Workers as people and rows see them: who shares what and when, who waits, how many there are."""

import time
from typing import Any

import pytest

from engine.benchmark.cluster.worker import device_here
from engine.benchmark.cluster.workers import STARTING, Workers, WorkerState
from tests.benchmark.cluster.pools import one_thread

__all__ = ["one_thread"]
pytestmark = pytest.mark.usefixtures("one_thread")


def workers(*devices: dict[str, Any]) -> Workers:
    """Workers that have told what they are, but for those without a unit, which are starting."""
    found = Workers()
    for number, device in enumerate(devices):
        name = str(number)
        found[name] = WorkerState(name, "n", "::1")
        place(found[name], device.pop("machine", "m"))
        if device.get("unit") != "":
            found[name].device = device_here() | {"cores": 4} | device
            found[name].state = "a, sample s"
    return found


def place(worker: WorkerState, machine: str = "m") -> None:
    worker.machine, worker.host, worker.state = machine, "host", STARTING


def shares(found: Workers, worker: str = "0", ago_s: float = 0.0) -> list[str]:
    return list(found.where(found[worker], time.monotonic() - ago_s).shares)


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ([{"unit": "GPU-a"}], []),
        ([{"unit": "GPU-a"}, {"unit": "GPU-b"}], []),
        ([{"unit": "GPU-a"}, {"unit": "GPU-a"}], ["device"]),
        ([{"unit": "GPU-a"}, {"unit": "GPU-a", "machine": "other"}], []),
        ([{"unit": "GPU-a", "threads": 3}, {"unit": "GPU-b", "threads": 2}], ["cores"]),
        ([{"threads": 3}, {"threads": 2}], ["device", "cores"]),
        ([{"threads": 1}, {"unit": ""}], ["device"]),  # torch is being imported there
        ([{"threads": 3}, {"unit": ""}], ["device", "cores"]),
        ([{"unit": "GPU-a", "threads": 1}, {"unit": ""}], []),
    ],
)
def test_who_shares_what(devices: list[dict[str, Any]], expected: list[str]) -> None:
    assert shares(workers(*devices)) == expected


def test_one_that_ended_while_a_sample_ran_counts_for_it_and_not_for_the_next() -> None:
    found = workers({}, {})
    found["1"].end("ended: killed")
    assert shares(found, ago_s=60.0) == ["device"]
    assert shares(found, ago_s=-0.001) == []


def test_after_a_session_no_worker_is_running() -> None:
    found = workers({}, {})
    for _ in range(3):
        found["1"].count()
    assert found.seen()[1].per_s is not None
    found["0"].end("ended: killed")
    found["1"].end("released")
    assert [one.state for one in found.seen()] == ["ended: killed", "released"]
    assert all(one.ended and one.per_s is None for one in found.seen())
    assert found.words() == "no worker left" and Workers().words() == "looking for devices"
