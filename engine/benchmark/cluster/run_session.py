"""Runs a session of a dataset run on a cluster: sends tasks to workers and saves their rows.

Only the driver writes.  If a worker ends, its tasks without a row run on another worker; saved rows
are never computed again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from engine.benchmark.cluster.cluster_options import ClusterOptions
from engine.benchmark.cluster.dispatch import MOST_DEATHS, Dispatcher, Order
from engine.benchmark.cluster.ray_link import Event, Link
from engine.benchmark.cluster.worker import machine, pack, versions
from engine.benchmark.cluster.workers import (
    WAITING,
    NodeFinding,
    Workers,
    WorkerState,
    judged,
)
from engine.benchmark.execute import RunSession
from engine.errors import ClusterError
from engine.storage import provenance
from engine.storage.plan import Task
from engine.storage.result_rows import ResultRow

TICK_S = 0.2  # delay until a Cancel is noticed
PATIENCE_S = 30.0  # without any worker
INSPECT_S = 300.0  # for a node's report; it may have to hash its checkpoints first
SHOWN_S = 0.5  # between two updates of the workers' view
WAITED_S = 10.0  # for a device, before this is reported


class ClusterExecutor:
    """Connects on creation, so that connection errors appear before a run begins."""

    def __init__(
        self,
        options: ClusterOptions,
        connect: Callable[[ClusterOptions, Callable[[], bool]], Link] | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self.options = options
        self._pool = (connect or Link)(options, cancelled)

    def __enter__(self) -> ClusterExecutor:
        return self

    def __exit__(self, *exc: object) -> None:
        self._pool.close()

    def work(self, session: RunSession) -> None:
        """Runs every task without a row; ClusterError if no worker is left."""
        self.options.check(session.plan)
        _ClusterRun(session, self._pool).run()


@dataclass
class _ClusterRun:
    session: RunSession
    pool: Link
    workers: Workers = field(default_factory=Workers)  # with the ended ones
    calls: dict[int, Order] = field(default_factory=dict)
    number: int = 0
    lent: dict[Task, float] = field(default_factory=dict)
    judged: dict[str, NodeFinding] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=versions)
    lonely_since: float | None = None
    head: str = ""  # the problem of the cluster's head node, if any
    reported_waiting: set[str] = field(default_factory=set)
    shown: float = 0.0
    last_reason: str = ""

    def __post_init__(self) -> None:
        ready, plan = self.session.ready, self.session.plan
        self.digests = provenance.describe_samples(ready.root, list(ready.samples.values()))
        self.warmed = Counter(task.model for task in self.session.done if task.phase == "warmup")
        self.tasks = Dispatcher(plan.models, self._tasks_of, self._warm_ups)

    def run(self) -> None:
        """Runs all tasks; those whose sample lacks the model's media fail without a worker."""
        session, missing = self.session, self.session.task_executor.missing
        for model in session.plan.models:
            for task in session.plan.tasks((model,)):
                if task not in session.done and (reason := missing(task)):
                    self._fail(task, reason)
        if self.tasks.finished():
            return
        ready = session.ready
        data = pack(session.plan, ready.root, list(ready.samples.values()))
        self.pool.send("begin", run_data=data)
        try:
            self._inspect()
            while not self.tasks.finished():
                self._between()
                for model in session.given_up:
                    self.tasks.drop(model)
                for order in self.tasks.orders():
                    self._call(order)
                self._stop_if_no_worker_can()
                self._listen()
        finally:
            for member in self.workers.values():
                if not member.ended:
                    member.end("released")
            self._show()

    def _tasks_of(self, model: str) -> Iterable[Task]:
        """The tasks of a model that have no row yet, for workers."""
        session = self.session
        if model in session.given_up:
            return ()
        tasks = session.plan.tasks((model,))
        return (t for t in tasks if t not in session.done and not session.task_executor.missing(t))

    def _warm_ups(self, model: str, lacks: set[str]) -> list[Task]:
        """Warm-up tasks for one worker; numbers continue those of others and earlier sessions."""
        plan = self.session.plan
        tasks = (Task(model, name, 0, "warmup") for name in plan.samples if name not in lacks)
        able = [task for task in tasks if not self.session.task_executor.missing(task)]
        count = plan.warmup if able else 0
        begin, self.warmed[model] = self.warmed[model], self.warmed[model] + count
        return [able[n % len(able)]._replace(repeat=begin + n) for n in range(count)]

    def _fail(self, task: Task, reason: str) -> None:
        self.session.keep([task], [self.session.task_executor.failed(task, reason)])

    def _listen(self) -> None:
        for event in self.pool.events(TICK_S):
            self._take(event)
        for member in self.workers.waiting(WAITED_S):
            if member.node not in self.reported_waiting:
                self.reported_waiting.add(member.node)
                text = (
                    f"A worker has waited {WAITED_S:g} s for a device of node {member.node} "
                    f"({member.address}): other work may use it, or the node is lost. It keeps "
                    "waiting."
                )
                self.session.note("waiting", text, node=member.node)
        if time.monotonic() - self.shown > SHOWN_S:
            self._show()

    def _show(self) -> None:
        """Updates the view for users."""
        self.shown = time.monotonic()
        tracker = self.session.tracker
        tracker.current = "; ".join(filter(None, [self.workers.words(), self.head]))
        tracker.workers = self.workers.views()

    def _call(self, order: Order) -> None:
        self.number += 1
        self.calls[self.number] = order
        label = self.session.ready.entries[order.model].label
        method, state = "load", f"loading {label}"
        arguments: list[Any] = [order.model]
        if order.task is not None:
            method, arguments = "ask", list(order.task)
            state = f"{label}, sample {order.task.sample}"
        self.workers[order.worker].state = state
        where = {"worker": order.worker, "number": self.number}
        self.pool.send("call", **where, method=method, arguments=arguments)

    # Events from the workers.
    def _take(self, event: Event) -> None:
        kind = event["event"]
        if kind == "starting":
            name = event["worker"]
            self.workers[name] = WorkerState(name, event["node"], event["address"])
        elif kind == "placed":
            self.workers.place(event["worker"], event["machine"], event["host"])
        elif kind == "head":
            self.head = event["trouble"]
        elif kind == "worker":
            self._begun(event["worker"], event["about"])
        elif kind == "done":
            self._done(event["number"], event["value"])
        elif kind == "gone":
            self._gone(event["worker"], event["reason"])
        elif kind == "closed":
            raise ClusterError(f"{event['reason']} All answers are saved; continue with --resume.")

    def _begun(self, worker: str, about: dict[str, Any]) -> None:
        """A worker reports its device; the first one of a node also reports the node's files."""
        member = self.workers[worker]
        member.device, member.state = about["device"], WAITING
        name = f"Node {member.node} ({member.host}, {member.address})"
        if "holds" in about:
            ready, held = self.session.ready, about["holds"]
            self.judged[member.node] = judged(name, held, ready, self.digests, self.versions)
        finding = self.judged[member.node]
        if reason := finding.refused or finding.useless:
            self.last_reason = reason
            if finding.useless:
                self.session.note("elsewhere", f"{reason[:1].upper()}{reason[1:]}.")
            self.pool.send("refuse", node=member.node, reason=reason)
            return
        self.pool.send("accept", node=member.node)
        self.tasks.join(worker, member.node, finding.lacks)
        text = f"Worker {worker} on {name}: {member.device['type']}, {member.device['name']}."
        self.session.note("worker", text, worker=worker, node=member.node)
        if "holds" in about and finding.lacks:
            lacking = len(finding.lacks)
            many = "1 sample, which runs" if lacking == 1 else f"{lacking:,} samples, which run"
            self.session.note("elsewhere", f"{name} lacks files of {many} elsewhere.")
        for model, reason in finding.unloadable.items():
            if "holds" in about:
                self.session.note("elsewhere", f"{name}: {reason}")
            self._refused(worker, model, f"{name}: {reason}")

    def _done(self, number: int, value: dict[str, Any]) -> None:
        order = self.calls.pop(number, None)
        if order is None:  # its worker has ended, and others got its tasks
            return
        member, label = self.workers[order.worker], self.session.ready.entries[order.model].label
        if order.task is None and value["error"] is None:
            self.tasks.loaded(order.worker)
            member.state = f"{label} is loaded"
        elif order.task is None:
            reason = f"Node {member.node}: {value['error']}"
            member.state = WAITING
            self._refused(order.worker, order.model, reason)
            self.session.note("elsewhere", f"{label} runs elsewhere. {reason}", model=order.model)
        elif "absent" in value:
            reason = f"Node {member.node}: {value['absent']}"
            self.tasks.absent(order.worker, order.task, reason)
            self.session.note("elsewhere", f"{reason}; it runs elsewhere.")
        else:
            self.tasks.done(order.worker, order.task)
            where = self.workers.where(order.worker, time.monotonic() - value["busy_s"])
            row, lent = ResultRow.parse(value["row"]), self.lent.pop(order.task, 0.0)
            self.session.keep([order.task], [row], lent, where)
            if not self.tasks.in_flight(order.worker):
                member.state = WAITING
            if order.task.phase == "measured":
                member.count()

    def _refused(self, worker: str, model: str, reason: str) -> None:
        """Records the refusal; a worker that can load no model is set aside."""
        self.tasks.refused(worker, model, reason)
        if self.tasks.useless(worker):
            self.workers[worker].set_aside()

    def _gone(self, worker: str, reason: str) -> None:
        """Gives a lost worker's tasks to others, and writes the reason to the journal."""
        self.workers[worker].end(f"ended: {reason}")
        self.last_reason = reason
        again, fatal = self.tasks.leave(worker)
        self.calls = {n: order for n, order in self.calls.items() if order.worker != worker}
        many = f"{len(again):,} of its tasks run elsewhere" if again else "it had no task"
        text = f"Worker {worker} has ended: {reason}; {many}."
        given = [task._asdict() for task in again]
        self.session.note("worker ended", text, worker=worker, tasks=given)
        for task in fatal:
            self._fail(task, f"{MOST_DEATHS} workers have ended on this sample, the last: {reason}")

    # Checks before, during and after the run.
    def _inspect(self) -> None:
        """Waits for every node's report; refuses the run if a node differs.

        A node whose devices are in use by others is checked when it gets a worker.
        """
        end = time.monotonic() + INSPECT_S
        while time.monotonic() < end:
            waiting = self.workers.waiting(WAITED_S)
            if self.workers and all(
                member.ended or member.node in self.judged or member in waiting
                for member in self.workers.values()
            ):
                break
            self._between()
            self._listen()
        if refused := [finding.refused for finding in self.judged.values() if finding.refused]:
            raise ClusterError(f"{refused[0]}.")

    def _between(self) -> None:
        """Handles Cancel, and lends this machine's devices to other work; rows record that."""
        self.session.between()
        lent, self.session.paused_ms = self.session.paused_ms, 0.0
        if lent:
            for member in self.workers.values():
                for task in self.tasks.in_flight(member.id) if member.machine == machine() else ():
                    self.lent[task] = self.lent.get(task, 0.0) + lent

    def _stop_if_no_worker_can(self) -> None:
        """Raises or gives models up if no task can be sent out."""
        if self.tasks.busy or self.workers.starting():
            self.lonely_since = None
        elif not self.tasks.workers:
            self.lonely_since = self.lonely_since or time.monotonic()
            # A known node may get a worker again.
            findings = (self.judged.get(m.node, NodeFinding()) for m in self.workers.values())
            may_come = any(not (known.refused or known.useless) for known in findings)
            if time.monotonic() - self.lonely_since > (PATIENCE_S if may_come else 0):
                raise ClusterError(
                    f"No worker is left: {self.last_reason}. All answers are saved; continue with "
                    "--resume, here or on a cluster."
                )
        else:
            for stuck in self.tasks.stuck():
                if stuck.loaded:
                    raise ClusterError(
                        f"No remaining worker can compute {stuck.tasks:,} results of {stuck.model} "
                        f"({stuck.reason or 'their files are missing'}): correct this and continue "
                        "with --resume, or resume the run on this machine."
                    )
                self.session.give_up(stuck.model, stuck.reason)
