"""The simulation of many workers: its clock adds up, and what limits it limits it."""

from __future__ import annotations

import pytest

from benchmarks import many_workers


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_workers, "SEQUENCES", 20)
    monkeypatch.setattr(many_workers, "CLIPS", 5)


def rate(workers: int, cost: float = 0.0, deaths: float = 0.0) -> float:
    return many_workers.Simulation(workers, [2.0], cost, 10.0, deaths).rate()


def test_without_costs_workers_add_up() -> None:
    assert rate(1) == pytest.approx(0.5, rel=0.01)
    assert rate(4) == pytest.approx(2.0, rel=0.01)


def test_the_driver_is_the_limit_however_many_workers_there_are() -> None:
    assert rate(64, cost=0.5) == pytest.approx(2.0, rel=0.1)
    assert rate(2, cost=0.1) > 0.9 * rate(2)


def test_workers_that_end_cost_time_and_no_result() -> None:
    assert 0 < rate(4, deaths=0.05) < rate(4)


def test_the_limit_is_named() -> None:
    measured = {
        "driver_cpu_ms_per_result": {"median": 1.0},
        "hub_cpu_ms_per_result": {"median": 20.0},
        "worker_start_s": {"median": 5.0},
        "service_s": [1.0, 3.0],
    }
    found = many_workers.simulated(measured)
    assert found["limit_results_a_second"] == 50.0
    assert found["limit_workers_by_service_time"] == {"1 x measured": 100, "10 x measured": 1000}
    assert len(found["points"]) == len(many_workers.WORKERS) * len(many_workers.DEATHS) * 2
    alone = [p for p in found["points"] if p["workers"] == 1 and not p["ended_workers_per_result"]]
    assert [one["efficiency"] for one in alone] == pytest.approx([1.0, 1.0], rel=0.05)
