"""How a dataset run grows with its workers: measured at 1 and 2, simulated to 256, the limit named.

`python -m benchmarks.scaling`: a local Ray, demo checkpoints, workers of one thread each, runs with
1 and 2 workers by turns: efficiency = rate of 2 / (2 x rate of 1), the rate that of the results
while every worker is at work.  Then the same Dispatcher works off a plan on 1 to 256 simulated
workers, on a clock of its own, with the service times, restart times and costs of driver and hub
(their processor time per result) that were measured before.  `--simulate` repeats the second part
with the figures that are kept.  Draws benchmarks/results/scaling.svg.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.machine import RESULTS, keep, spread
from engine.cluster.dispatch import Dispatcher
from engine.plan import Task

ROUNDS, REPEAT = 3, 12
WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
DEATHS = (0.0, 0.001, 0.01)  # workers that end, per result
SEQUENCES, CLIPS = 400, 13  # 5,200 samples, as the published dataset has them
STRETCH = (1, 10)  # service times as measured, and of models so many times slower


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulate", action="store_true", help="with the measured figures kept")
    if parser.parse_args().simulate:
        measured = json.loads((RESULTS / "scaling.json").read_text())["measured_here"]
    else:
        measured = _measured()
    rows, simulated = [_row(measured)], _simulated(measured)
    keep("scaling", {"rows": rows, "measured_here": measured, "simulated": simulated})
    _chart(json.loads((RESULTS / "scaling.json").read_text())["simulated"])


def _row(measured: dict[str, Any]) -> dict[str, Any]:
    """The line of benchmarks.table."""
    return {
        "what": "a dataset run on 2 workers of one thread",
        "against": "twice the rate of 1 worker",
        "ratio": measured["efficiency_at_2"]["median"],
        "target": 0.9,
        "repeat": "python -m benchmarks.scaling",
    }


# Measured, on a Ray of this machine.
def _measured() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        os.environ.setdefault("STAGESCOPE_DEVICE", "cpu")
        os.environ["STAGESCOPE_CACHE_DIR"] = str(Path(name) / "cache")
        rounds = [
            {workers: _run(Path(name) / f"{number}-{workers}", workers) for workers in (1, 2)}
            for number in range(ROUNDS)
        ]
    one, two = [r[1] for r in rounds], [r[2] for r in rounds]
    ratios = [b.rate / (2 * a.rate) for a, b in zip(one, two, strict=True)]
    everybody = [*one, *two]
    service = [round(s, 4) for run in one for s in run.service]
    return {
        "results_a_second_1_worker": spread([run.rate for run in one]),
        "results_a_second_2_workers": spread([run.rate for run in two]),
        "efficiency_at_2": spread(ratios),
        "driver_cpu_ms_per_result": spread([run.driver_ms for run in everybody]),
        "hub_cpu_ms_per_result": spread([run.hub_ms for run in everybody]),
        "worker_start_s": spread([s for run in everybody for s in run.starts]),
        "service_s": service,
    }


@dataclass
class Run:
    """rate: results a second while all workers were at work; service: seconds each."""

    rate: float = 0.0
    driver_ms: float = 0.0
    hub_ms: float = 0.0
    service: list[float] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)


def _run(folder: Path, workers: int) -> Run:
    from engine import benchmark, dataset, settings, store
    from engine.cluster.executor import ClusterExecutor
    from engine.cluster.options import ClusterOptions
    from engine.demo.dataset import ensure_dataset
    from engine.plan import Plan
    from engine.types import DecodeConfig

    found = dataset.read(ensure_dataset(settings.load().demo_dir))
    forced = DecodeConfig(max_new_tokens=64, min_new_tokens=64)
    plan = Plan(("llava-demo",), tuple(s.id for s in found.samples), repeat=REPEAT, decode=forced)
    with ClusterExecutor(ClusterOptions("local", workers, 1, 0.0)) as executor:
        ready = benchmark.prepare(plan, found, folder, elsewhere=True)
        watcher = _Watch(_hub(), ready, workers)
        with ready.writer:
            benchmark.run(ready, watcher, executor)
    rows = [row for _, row in store.read(folder).results() if row["phase"] == "measured"]
    service = [row["total_ms"] / 1000 for row in rows]
    return Run(watcher.rate(), *watcher.cost_ms(), service, watcher.starts)


def _hub() -> psutil.Process:
    """The process that talks to Ray."""
    return next(p for p in psutil.Process().children() if "engine.cluster.hub" in p.cmdline())


class _Watch:
    """Notes when results were there while all workers were at work, and what that cost."""

    def __init__(self, hub: psutil.Process, ready: Any, workers: int) -> None:
        self._hub, self._tracker, self._workers = hub, ready.tracker, workers
        self._begin = time.monotonic()
        self._points: list[tuple[float, int, float, float]] = []
        self.starts: list[float] = []

    def stage(self, name: str) -> None: ...
    def token(self, token: int, ms: float) -> None: ...
    def cancelled(self) -> bool:
        return False

    def give_way(self) -> float:
        view = self._tracker.view()
        busy = [one for one in view.workers if one.done and not one.ended]
        now = time.monotonic()
        while len(self.starts) < len(busy):
            self.starts.append(now - self._begin)
        left = view.planned - view.done
        if len(busy) == self._workers and left >= 2 * self._workers:
            cpu = self._hub.cpu_times()
            self._points.append((now, view.done, time.process_time(), cpu.user + cpu.system))
        return 0.0

    def rate(self) -> float:
        (start, first, *_), (end, last, *_) = self._points[0], self._points[-1]
        return (last - first) / (end - start)

    def cost_ms(self) -> tuple[float, float]:
        """Processor time of driver and hub per result."""
        (_, first, a, b), (_, last, c, d) = self._points[0], self._points[-1]
        return 1000 * (c - a) / (last - first), 1000 * (d - b) / (last - first)


# Simulated, with the dispatcher that hands out real tasks.
def _simulated(measured: dict[str, Any]) -> dict[str, Any]:
    """The driver and the hub each handle one result after another: the slower one is the limit."""
    cost = 0.001 * max(
        measured["driver_cpu_ms_per_result"]["median"], measured["hub_cpu_ms_per_result"]["median"]
    )
    start = measured["worker_start_s"]["median"]
    points = []
    for stretch in STRETCH:
        service = [stretch * one for one in measured["service_s"]]
        alone = _Simulation(1, service, cost, start, 0.0).rate()
        for deaths in DEATHS:
            for workers in WORKERS:
                rate = _Simulation(workers, service, cost, start, deaths).rate()
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


class _Simulation:
    """A plan of one model on workers that take `service` seconds, on a clock of its own."""

    def __init__(
        self, workers: int, service: Sequence[float], cost: float, start: float, deaths: float
    ) -> None:
        self._service, self._cost, self._start, self._deaths = service, cost, start, deaths
        self._chance = random.Random(workers)
        samples = [f"q{q}/{clip}" for q in range(SEQUENCES) for clip in range(CLIPS)]
        self._tasks = Dispatcher(
            ["m"],
            lambda model: [Task(model, sample, 0, "measured") for sample in samples],
            lambda sample: sample.split("/")[0],
            lambda model, lacks: [],
        )
        self._events: list[tuple[float, int, str, Task | None]] = []
        self._free: dict[str, float] = {}  # when a worker has done what it was given
        self._driver = 0.0  # when the driver has handled what came so far
        self._count = 0
        for number in range(workers):
            self._join(f"w{number}", 0.0)

    def rate(self) -> float:
        """Results a second from the first to the last, the workers having started."""
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
        """Its tasks go to others; a worker in its place is there when it has started."""
        self._tasks.leave(worker)
        del self._free[worker]
        self._count += 1
        self._push(self._driver + self._start, f"w+{self._count}", None)

    def _hand_out(self) -> None:
        """What the dispatcher itself takes grows with the workers: it is the driver's time too."""
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


def _chart(found: dict[str, Any]) -> None:
    """Efficiency over workers, a panel for each service time, a line for each rate of failures."""
    import altair as alt
    import pandas as pd
    import vl_convert

    most = found["limit_results_a_second"]
    limit = alt.TitleParams(
        "Simulated workers", subtitle=f"Limit, {most:g} results a second: {found['limit']}"
    )
    chart = (
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
    (RESULTS / "scaling.svg").write_text(vl_convert.vegalite_to_svg(chart.to_dict()))


if __name__ == "__main__":
    main()
