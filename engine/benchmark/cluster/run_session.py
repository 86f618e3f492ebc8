"""A sitting of a dataset run on a cluster: tasks go out to workers, rows come back and are kept.

Boundary: between benchmark.py's sitting and a pool of workers.  The driver alone writes; a row that
is not here when its worker ends is asked for again elsewhere, and one that is here never is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from engine.benchmark.cluster import serialization
from engine.benchmark.cluster.cluster_options import ClusterOptions
from engine.benchmark.cluster.dispatch import MOST_DEATHS, Dispatcher, Order, Stuck
from engine.benchmark.cluster.node_check import Finding, Inspector
from engine.benchmark.cluster.ray_link import Event, Link, Pool
from engine.benchmark.cluster.task_list import Agenda
from engine.benchmark.cluster.worker import machine, versions
from engine.benchmark.cluster.workers import WAITING, Crew
from engine.benchmark.execute import Sitting
from engine.errors import ClusterError
from engine.storage.plan import Task
from engine.storage.result_rows import AnswerRow

TICK_S = 0.2  # how soon a Cancel is seen
PATIENCE_S = 30.0  # without a single worker
INSPECT_S = 300.0  # for a node to say what it holds: it may hash its checkpoints for the first time
SHOWN_S = 0.5  # between two views of the workers
WAITED_S = 10.0  # for a device, until that is said


class ClusterExecutor:
    """Connected when it is made, so that what can be refused is refused before a run begins."""

    def __init__(
        self,
        options: ClusterOptions,
        connect: Callable[[ClusterOptions, Callable[[], bool]], Pool] | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self.options = options
        self._pool = (connect or Link)(options, cancelled)

    def __enter__(self) -> ClusterExecutor:
        return self

    def __exit__(self, *exc: object) -> None:
        self._pool.close()

    def work(self, sitting: Sitting) -> None:
        """Every task that has no row yet; ClusterError when nobody is left to answer."""
        self.options.check(sitting.plan)
        _Work(sitting, self._pool).run()


@dataclass
class _Work:
    sitting: Sitting
    pool: Pool
    crew: Crew = field(default_factory=Crew)
    calls: dict[int, Order] = field(default_factory=dict)
    number: int = 0
    lent: dict[Task, float] = field(default_factory=dict)
    judged: dict[str, Finding] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=versions)
    lonely_since: float | None = None
    head: str = ""  # what is wrong with the cluster's head node
    told_waiting: set[str] = field(default_factory=set)
    shown: float = 0.0
    last_reason: str = ""

    def __post_init__(self) -> None:
        self.root, self.agenda = self.sitting.ready.root, Agenda(self.sitting)
        self.inspector = Inspector(self.sitting.ready, self.root)
        self.tasks = Dispatcher(
            self.sitting.plan.models,
            self.agenda.tasks_of,
            self.agenda.sequence_of,
            self.agenda.warm_ups,
        )

    def run(self) -> None:
        """The whole of it."""
        self.agenda.answer_what_nobody_can()
        if self.tasks.finished():
            return
        samples = list(self.sitting.ready.samples.values())
        self.pool.send("begin", parcel=serialization.pack(self.sitting.plan, self.root, samples))
        try:
            self._inspect()
            while not self.tasks.finished():
                self._step()
        finally:
            self.crew.release()
            self._show()

    def _step(self) -> None:
        self._between()
        for order in self.tasks.orders():
            self._call(order)
        self._stop_if_nobody_can()
        self._listen()

    def _listen(self) -> None:
        for event in self.pool.events(TICK_S):
            self._take(event)
        self._say_who_waits()
        if time.monotonic() - self.shown > SHOWN_S:
            self._show()

    def _call(self, order: Order) -> None:
        self.number += 1
        self.calls[self.number] = order
        method: str = "load"
        arguments: list[Any] = [order.model]
        self.crew[order.worker].state = f"loading {order.model}"
        if order.task is not None:
            method, arguments = "ask", list(order.task)
            self.crew[order.worker].state = f"{order.model}, sample {order.task.sample}"
        where = {"worker": order.worker, "number": self.number}
        self.pool.send("call", **where, method=method, arguments=arguments)

    # What comes back.
    def _take(self, event: Event) -> None:
        kind = event["event"]
        if kind == "starting":
            self.crew.add(event["worker"], event["node"], event["address"])
        elif kind == "placed":
            self.crew.place(event["worker"], event["machine"], event["host"])
        elif kind == "head":
            self.head = event["trouble"]
        elif kind == "worker":
            self._begun(event["worker"], event["about"])
        elif kind == "done":
            self._done(event["number"], event["value"])
        elif kind == "gone":
            self._gone(event["worker"], event["reason"])
        elif kind == "closed":
            raise ClusterError(f"{event['reason']} What is answered is kept; --resume goes on.")

    def _begun(self, worker: str, about: dict[str, Any]) -> None:
        """A worker has told what it is; the first one of a node also what the node holds."""
        member = self.crew[worker]
        member.device, member.state = about["device"], WAITING
        name = f"Node {member.node} ({member.host}, {member.address})"
        if "holds" in about:
            self.judged[member.node] = self.inspector.look(name, about["holds"], self.versions)
        finding = self.judged[member.node]
        if reason := finding.refused or finding.useless:
            self.last_reason = reason
            if finding.useless:
                self.sitting.note("elsewhere", f"{reason[:1].upper()}{reason[1:]}.")
            self.pool.send("refuse", node=member.node, reason=reason)
            return
        self.pool.send("accept", node=member.node)
        self.tasks.join(worker, member.node, finding.lacks)
        text = f"Worker {worker} on {name}: {member.device['type']}, {member.device['name']}."
        self.sitting.note("worker", text, worker=worker, node=member.node)
        if "holds" in about:
            self._say_what_lacks(name, finding)
        for model, reason in finding.unloadable.items():
            self._refused(worker, model, f"{name}: {reason}")

    def _say_what_lacks(self, name: str, finding: Finding) -> None:
        if finding.lacks:
            lacking = len(finding.lacks)
            many = "1 sample, which runs" if lacking == 1 else f"{lacking:,} samples, which run"
            text = f"{name} lacks files of {many} elsewhere."
            self.sitting.note("elsewhere", text)
        for reason in finding.unloadable.values():
            self.sitting.note("elsewhere", f"{name}: {reason}")

    def _done(self, number: int, value: dict[str, Any]) -> None:
        order = self.calls.pop(number, None)
        if order is None:  # of a worker that has ended: others have got its tasks
            return
        if order.task is None:
            self._loaded(order, value["error"])
        elif "absent" in value:
            reason = f"Node {self.crew[order.worker].node}: {value['absent']}"
            self.tasks.absent(order.worker, order.task, reason)
            self.sitting.note("elsewhere", f"{reason}; it runs elsewhere.")
        else:
            self._keep(order.worker, order.task, value)

    def _loaded(self, order: Order, error: str | None) -> None:
        member = self.crew[order.worker]
        if error is None:
            self.tasks.loaded(order.worker)
            member.state = f"{order.model} is loaded"
            return
        reason = f"Node {member.node}: {error}"
        member.state = WAITING
        self._refused(order.worker, order.model, reason)
        self.sitting.note("elsewhere", f"{order.model} runs elsewhere. {reason}")

    def _refused(self, worker: str, model: str, reason: str) -> None:
        """One that can load none of the models has nothing to share a device for."""
        self.tasks.refused(worker, model, reason)
        if self.tasks.useless(worker):
            self.crew.set_aside(worker)

    def _keep(self, worker: str, task: Task, value: dict[str, Any]) -> None:
        self.tasks.done(worker, task)
        where = self.crew.where(worker, time.monotonic() - value["busy_s"])
        row = AnswerRow.parse(value["row"])
        self.sitting.keep([task], [row], self.lent.pop(task, 0.0), where)
        if not self.tasks.in_flight(worker):
            self.crew[worker].state = WAITING
        if task.phase == "measured":
            self.crew.count(worker)
        self._drop_given_up()

    def _drop_given_up(self) -> None:
        for model in self.sitting.given_up:
            self.tasks.drop(model)

    def _gone(self, worker: str, reason: str) -> None:
        """Its tasks run elsewhere, and the journal says why."""
        self.crew.end(worker, reason)
        self.last_reason = reason
        again, fatal = self.tasks.leave(worker)
        self.calls = {n: one for n, one in self.calls.items() if one.worker != worker}
        many = f"{len(again):,} of its tasks run elsewhere" if again else "it had no task"
        text = f"Worker {worker} has ended: {reason}; {many}."
        given = [task._asdict() for task in again]
        self.sitting.note("worker ended", text, worker=worker, tasks=given)
        for task in fatal:
            self.agenda.fail(
                task, f"{MOST_DEATHS} workers have ended on this sample, the last: {reason}"
            )
        self._drop_given_up()

    # Before, between and after.
    def _inspect(self) -> None:
        """Waits until every node has said what it holds; refuses the run where one differs.

        One whose devices others hold is looked at when it has a worker.
        """
        end = time.monotonic() + INSPECT_S
        while self._unheard() and time.monotonic() < end:
            self._between()
            self._listen()
        if refused := [one.refused for one in self.judged.values() if one.refused]:
            raise ClusterError(f"{refused[0]}.")

    def _unheard(self) -> bool:
        """Whether some node's first worker has not told what the node holds."""
        unknown = [one for one in self.crew if one.node not in self.judged and not one.ended]
        waiting = self.crew.waiting(WAITED_S)
        return not list(self.crew) or any(one not in waiting for one in unknown)

    def _between(self) -> None:
        """Cancel, and work for which this machine's devices are lent: what runs there says so."""
        self.sitting.between()
        lent, self.sitting.paused_ms = self.sitting.paused_ms, 0.0
        if lent:
            for member in self.crew.on(machine()):
                for task in self.tasks.in_flight(member.id):
                    self.lent[task] = self.lent.get(task, 0.0) + lent

    def _stop_if_nobody_can(self) -> None:
        """Called when nothing could be handed out."""
        if self.tasks.busy or self.crew.starting():
            self.lonely_since = None
        elif not self.tasks.workers:
            self.lonely_since = self.lonely_since or time.monotonic()
            if time.monotonic() - self.lonely_since > (PATIENCE_S if self._may_come() else 0):
                raise ClusterError(
                    f"No worker is left: {self.last_reason}. What is answered is kept; --resume "
                    "goes on, here or on a cluster."
                )
        else:
            for stuck in self.tasks.stuck():
                self._give_up(stuck)

    def _may_come(self) -> bool:
        """Whether some node is known that could have a worker again."""
        found = (self.judged.get(member.node, Finding()) for member in self.crew)
        return any(not (one.refused or one.useless) for one in found)

    def _give_up(self, stuck: Stuck) -> None:
        if stuck.loaded:
            raise ClusterError(
                f"{stuck.tasks:,} results of {stuck.model} cannot be had from any worker that is "
                f"left ({stuck.reason or 'their files are not there'}): mend that and go on with "
                "--resume, or resume the run on this machine."
            )
        self.sitting.give_up(stuck.model, stuck.reason)
        self._drop_given_up()

    # What people see meanwhile.
    def _show(self) -> None:
        self.shown = time.monotonic()
        self.sitting.tracker.doing("; ".join(filter(None, [self.crew.words(), self.head])))
        self.sitting.tracker.crew(self.crew.views())

    def _say_who_waits(self) -> None:
        """Once per node: others may hold its devices for as long as they like."""
        for member in self.crew.waiting(WAITED_S):
            if member.node not in self.told_waiting:
                self.told_waiting.add(member.node)
                text = (
                    f"A worker has waited {WAITED_S:g} s for a device of node {member.node} "
                    f"({member.address}): other work may hold it, or the node is lost. It goes on "
                    "waiting."
                )
                self.sitting.note("waiting", text, node=member.node)
