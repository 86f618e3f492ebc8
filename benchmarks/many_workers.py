"""A dataset run on 1 to 256 simulated workers, with the limit named and a chart.

The real Dispatcher works through a plan on a simulated clock.  Service times, restart times and the
costs of driver and Ray process (processor time per result) come from scaling.py.  Draws
benchmarks/results/scaling.svg.
"""

from __future__ import annotations

import heapq
import random
import statistics
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.machine import RESULTS
from engine.benchmark.cluster.dispatch import Dispatcher
from engine.storage.plan import Task

WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
DEATHS = (0.0, 0.001, 0.01)  # workers that end, per result
SEQUENCES, CLIPS = 400, 13  # 5,200 samples, as the published dataset has them
STRETCH = (1, 10)  # service times as measured, and of ten times slower models


def simulated(measured: dict[str, Any]) -> dict[str, Any]:
    """The driver and the hub each handle one result after another: the slower one is the limit."""
    cost = 0.001 * max(
        measured["driver_cpu_ms_per_result"]["median"], measured["hub_cpu_ms_per_result"]["median"]
    )
    start = measured["worker_start_s"]["median"]
    points = []
    for stretch in STRETCH:
        service = [stretch * one for one in measured["service_s"]]
        alone = Simulation(1, service, cost, start, 0.0).rate()
        for deaths in DEATHS:
            for workers in WORKERS:
                rate = Simulation(workers, service, cost, start, deaths).rate()
                points.append(
                    {
                        "service": f"{statistics.median(service):.2g} s a result",
                        "workers": workers,
                        "ended_workers_per_result": deaths,
                        "results_a_second": round(rate, 3),
                        "efficiency": round(rate / (workers * alone), 4),
                    }
                )
    most = 1 / cost
    limits = {
        f"{stretch} x measured": round(most * stretch * statistics.mean(measured["service_s"]))
        for stretch in STRETCH
    }
    return {
        "results": SEQUENCES * CLIPS,
        "limit": "the driver's process and the hub's: each handles one result after another",
        "limit_results_a_second": round(most, 1),
        "limit_workers_by_service_time": limits,
        "points": points,
    }


class Simulation:
    """A plan of one model on workers that take `service` seconds, on a simulated clock."""

    def __init__(
        self, workers: int, service: Sequence[float], cost: float, start: float, deaths: float
    ) -> None:
        self._service, self._cost, self._start, self._deaths = service, cost, start, deaths
        self._chance = random.Random(workers)
        samples = [f"q{q}/{clip}" for q in range(SEQUENCES) for clip in range(CLIPS)]
        self._tasks = Dispatcher(
            ["m"],
            lambda model: [Task(model, sample, 0, "measured") for sample in samples],
            lambda model, lacks: [],
        )
        self._events: list[tuple[float, int, str, Task | None]] = []
        self._free: dict[str, float] = {}  # when a worker has done what it was given
        self._driver = 0.0  # when the driver has handled what came so far
        self._count = 0
        for number in range(workers):
            self._join(f"w{number}", 0.0)

    def rate(self) -> float:
        """Results per second from the first to the last, after the workers have started."""
        done = 0
        while not self._tasks.finished():
            self._hand_out()
            at, _, worker, task = heapq.heappop(self._events)
            self._driver = max(self._driver, at)
            if task is None:
                self._join(worker, self._driver)
            elif worker not in self._free:
                continue  # it ended before this one was done
            elif self._chance.random() < self._deaths:
                self._leave(worker)
            else:
                self._driver += self._cost
                self._tasks.done(worker, task)
                done += 1
        return done / self._driver

    def _join(self, worker: str, at: float) -> None:
        self._tasks.join(worker, "n")
        self._free[worker] = at

    def _leave(self, worker: str) -> None:
        """Gives its tasks to others; a replacement joins after its start time."""
        self._tasks.leave(worker)
        del self._free[worker]
        self._count += 1
        self._push(self._driver + self._start, f"w+{self._count}", None)

    def _hand_out(self) -> None:
        """Adds the dispatcher's time, which grows with the workers, to the driver's."""
        begin = time.process_time()
        orders = list(self._tasks.orders())
        self._driver += time.process_time() - begin
        for order in orders:
            if order.task is not None:
                self._give(order.worker, order.task)
            else:
                self._tasks.loaded(order.worker)
        if any(order.task is None for order in orders):
            self._hand_out()

    def _give(self, worker: str, task: Task) -> None:
        begin = max(self._free[worker], self._driver)
        self._free[worker] = begin + self._chance.choice(self._service)
        self._push(self._free[worker], worker, task)

    def _push(self, at: float, worker: str, task: Task | None) -> None:
        self._count += 1
        heapq.heappush(self._events, (at, self._count, worker, task))


def chart(found: dict[str, Any]) -> None:
    """Efficiency over workers, a panel for each service time, a line for each rate of failures."""
    import altair as alt
    import pandas as pd
    import vl_convert

    most = found["limit_results_a_second"]
    limit = alt.TitleParams(
        "Simulated workers", subtitle=f"Limit, {most:g} results a second: {found['limit']}"
    )
    drawn = (
        alt.Chart(pd.DataFrame(found["points"]), title=limit)
        .mark_line(point=True)
        .encode(
            x=alt.X("workers:Q", scale=alt.Scale(type="log", base=2), title="workers"),
            y=alt.Y("efficiency:Q", title="rate / (workers × rate of one)"),
            color=alt.Color("ended_workers_per_result:N", title="workers that end, per result"),
            column=alt.Column("service:N", title=None),
        )
        .properties(width=320, height=220)
    )
    (RESULTS / "scaling.svg").write_text(vl_convert.vegalite_to_svg(drawn.to_dict()))
