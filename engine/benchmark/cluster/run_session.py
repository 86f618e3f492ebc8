"""Runs a session of a dataset run on a cluster: a worker on each device, tasks out, rows in.  Only
the driver writes.  If a worker ends, its tasks without a row run on another worker; saved rows are
never computed again."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from engine.benchmark.cluster.ray_link import ClusterOptions, Event, Link
from engine.benchmark.cluster.worker import machine, pack, versions
from engine.benchmark.cluster.workers import (
    MOST_DEATHS,
    STARTING,
    WAITING,
    Dispatcher,
    Workers,
    WorkerState,
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
RESTARTS = 3  # of a device's worker without an answer in between


class ClusterExecutor(AbstractContextManager["ClusterExecutor"]):
    """Connects on creation, so that connection errors appear before a run begins."""

    def __init__(
        self, options: ClusterOptions, cancelled: Callable[[], bool] = lambda: False
    ) -> None:
        self._link = Link(options, cancelled)
        try:
            self.options = options.on(self._link.nodes)
        except ClusterError:
            self._link.close()
            raise

    def __exit__(self, *exc: object) -> None:
        self._link.close()

    def __call__(self, session: RunSession) -> None:
        """Runs every task without a row; ClusterError if no worker is left."""
        self.options.check(session.plan)
        _ClusterRun(session, self._link, self.options).run()


@dataclass
class _ClusterRun:
    session: RunSession
    link: Link
    options: ClusterOptions
    workers: Workers = field(default_factory=Workers)  # with the ended ones
    lent: dict[Task, float] = field(default_factory=dict)
    differs: dict[str, str] = field(default_factory=dict)  # how each node does, "" if it does not
    inspected: bool = False
    begun: float = field(default_factory=time.monotonic)
    failures: Counter[tuple[str, int]] = field(default_factory=Counter)  # in a row, by device
    lonely_since: float | None = None
    head: str = ""  # the problem of the cluster's head node, if any
    reported_waiting: set[str] = field(default_factory=set)
    shown: float = 0.0
    last_reason: str = ""

    def __post_init__(self) -> None:
        plan, root, samples = self.session.plan, self.session.root, self.session.samples.values()
        self.digests = provenance.describe_samples(root, list(samples))
        self.run_data, self.nodes = pack(plan, root, list(samples)), self.link.nodes
        tasks = {model: self._tasks_of(model) for model in plan.models}
        self.tasks = Dispatcher(tasks, self.workers, self.session.warm_ups)

    def _tasks_of(self, model: str) -> Iterator[Task]:
        """The tasks of a model without a row; those whose sample lacks the model's media fail."""
        for task in self.session.plan.tasks((model,)):
            if task in self.session.done or model in self.session.given_up:
                continue
            if reason := self.session.task_executor.missing(task):
                self._fail(task, reason)
            else:
                yield task

    def _fail(self, task: Task, reason: str) -> None:
        self.session.keep([task], [self.session.task_executor.failed(task, reason)])

    def run(self) -> None:
        try:
            self._start_workers()
            while not self.tasks.finished:
                self.session.between()  # rows record how long this machine's devices were lent
                lent, self.session.paused_ms = self.session.paused_ms, 0.0
                for member in self.workers.present if lent else ():
                    for task in member.given if member.machine == machine() else ():
                        self.lent[task] = self.lent.get(task, 0.0) + lent
                for model in self.session.given_up:
                    self.tasks.drop(model)
                if self._inspected():
                    for member, task in self.tasks.orders():
                        self.link.call(member.id, "ask", task)
                        self._say_task(member)
                    self._stop_if_no_worker_can()
                self._listen()
        finally:
            for member in self.workers.present:
                member.end("released")
            self._show()
            self.session.tracker.current = ""

    def _start_workers(self) -> None:
        """Starts workers on free devices: only one on a node that is not accepted yet."""
        for number, node in self.options.devices(self.nodes) if not self.tasks.finished else ():
            there = [member for member in self.workers.present if member.node == node]
            usable = not self.differs[node] if node in self.differs else not there
            free = all(member.number != number for member in there)
            if usable and free and self.failures[node, number] < RESTARTS:
                if len(self.workers.present) == self.options.workers:
                    return
                about, gpus = self.nodes[node], self.options.gpus or 0.0
                worker = self.link.start(about["id"], self.options.cpus, gpus, self.run_data)
                self.workers[worker] = WorkerState(worker, node, about["address"], number)
                self.link.call(worker, "here")
                self.link.call(worker, "begin", [node not in self.differs])

    def _say_task(self, member: WorkerState) -> None:
        member.state = WAITING
        if member.given:
            task = member.given[0]
            label = self.session.entries[task.model].label
            loaded = member.loaded == task.model
            member.state = f"{label}, sample {task.sample}" if loaded else f"loading {label}"

    def _end(self, member: WorkerState, reason: str) -> None:
        self.link.end(member.id)
        again, fatal = self.tasks.leave(member)
        member.end(f"ended: {reason}")
        self.last_reason = reason
        many = f"{len(again):,} of its tasks run elsewhere" if again else "it had no task"
        text = f"Worker {member.id} has ended: {reason}; {many}."
        given = [task._asdict() for task in again]
        self.session.note("worker ended", text, worker=member.id, tasks=given)
        for task in fatal:  # the sample is the cause, not the device
            self.failures[member.node, member.number] = 0
            self._fail(task, f"{MOST_DEATHS} workers have ended on this sample, the last: {reason}")

    def _listen(self) -> None:
        for event in self.link.events(TICK_S):
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
        self.shown = time.monotonic()
        tracker = self.session.tracker
        tracker.current = "; ".join(filter(None, [self.workers.words(), self.head]))
        tracker.workers = self.workers.seen()

    def _take(self, event: Event) -> None:
        if event["event"] == "closed":
            raise ClusterError(f"{event['reason']} All answers are saved; continue with --resume.")
        if event["event"] == "head":
            self.head = event["trouble"]
        elif event["event"] == "nodes":
            self.nodes = event["nodes"]
            for member in self.workers.present:
                if member.node not in self.nodes:
                    self._end(member, f"node {member.node} has left the cluster")
            self._start_workers()
        elif not (member := self.workers[event["worker"]]).ended:
            if "error" in event:
                self.failures[member.node, member.number] += 1
                ended = f"its process on node {member.node} has ended ({event['error']})"
                self._end(member, ended if event["ended"] else event["error"])
                self._start_workers()
            elif event["method"] == "here":
                member.machine, member.host = event["value"]["machine"], event["value"]["host"]
                member.state = STARTING
            elif event["method"] == "begin":
                self._begun(member, event["value"])
            else:
                self.failures[member.node, member.number] = 0
                self._answered(member, Task(*event["arguments"]), event["value"])

    def _begun(self, member: WorkerState, about: Mapping[str, Any]) -> None:
        """A worker reports its device; the first one of a node also reports the node's files."""
        member.device, member.state = about["device"], WAITING
        name = f"Node {member.node} ({member.host}, {member.address})"
        if "holds" in about:
            self.differs[member.node] = reason = self._difference(name, about["holds"])
            if reason:
                self._end(member, reason)
                return
            self.tasks.lacks[member.node] = set()
            self._start_workers()
        text = f"Worker {member.id} on {name}: {member.device['type']}, {member.device['name']}."
        self.session.note("worker", text, worker=member.id, node=member.node)

    def _answered(self, member: WorkerState, task: Task, value: Mapping[str, Any]) -> None:
        if task not in member.given:  # it was returned when its model could not be loaded
            return
        node = f"Node {member.node}:"
        if reason := value.get("absent"):
            if not self.tasks.lacks[member.node]:  # the first one stands for all
                self.session.note("elsewhere", f"{node} {reason}. What it lacks runs elsewhere.")
            self.tasks.absent(member, task, f"{node} {reason}")
        elif row := value.get("row"):
            self.tasks.done(member, task)
            where = self.workers.where(member, time.monotonic() - value["busy_s"])
            self.session.keep([task], [ResultRow.parse(row)], self.lent.pop(task, 0.0), where)
            if task.phase == "measured":
                member.count()
        self._say_task(member)
        if reason := value.get("unloadable"):
            label = self.session.entries[task.model].label
            text = f"{label} runs elsewhere. {node} {reason}"
            self.session.note("elsewhere", text, model=task.model)
            if self.tasks.unloadable(member, task.model, f"{node} {reason}"):
                member.set_aside()

    def _inspected(self) -> bool:
        """Whether every node has reported, or has had its time; ClusterError if one differs.  A
        node whose devices are in use by others is checked when it gets a worker."""
        if not self.inspected:
            waiting = self.workers.waiting(WAITED_S)
            left = [one for one in self.workers.present if one.node not in self.differs]
            late = time.monotonic() - self.begun > INSPECT_S
            self.inspected = late or all(member in waiting for member in left)
            if self.inspected and any(self.differs.values()):
                raise ClusterError(f"{next(filter(None, self.differs.values()))}.")
        return self.inspected

    def _stop_if_no_worker_can(self) -> None:
        """Raises or gives models up if no task can be given out."""
        if self.tasks.busy or not all(member.device for member in self.workers.present):
            self.lonely_since = None
        elif not self.tasks.able:
            self.lonely_since = self.lonely_since or time.monotonic()
            if time.monotonic() - self.lonely_since > PATIENCE_S:  # a node may come back
                kept = f"No worker is left: {self.last_reason}. All answers are saved"
                raise ClusterError(f"{kept}; continue with --resume, here or on a cluster.")
        else:
            for model, reason, loaded, tasks in self.tasks.stuck():
                if loaded:
                    raise ClusterError(
                        f"No remaining worker can compute {tasks:,} results of {model} "
                        f"({reason or 'their files are missing'}): correct this and continue "
                        "with --resume, or resume the run on this machine."
                    )
                self.session.give_up(model, reason)

    def _difference(self, node: str, holds: Mapping[str, Any]) -> str:
        """What would change results on a node, by the report of Worker.begin(): other code,
        libraries, checkpoints or samples; or "".  What the node lacks is no difference."""
        header = self.session.writer.header
        if holds["code"] != header.code:
            there, here = holds["versions"], versions().items()
            other = [f"{k} {there.get(k)} not {v}" for k, v in here if there.get(k) != v]
            which = f"its libraries ({', '.join(other)})" if other else "the engine's code"
            return f"{node} has another digest of {which}: install the same on each node"
        for model in header.models:
            there = holds["models"][model.name]
            if there and (there["digest"], there["dtype"]) != (model.digest, model.dtype):
                return (
                    f"{node} has another checkpoint or dtype of {model.name} (digest "
                    f"{there['digest'][:12]} not {model.digest[:12]}): put the same on each node"
                )
        root = self.session.root
        pairs = list(zip(self.session.samples, self.digests, holds["samples"], strict=True))
        if other := [sample for sample, here, there in pairs if there not in (here, None)]:
            return (
                f"{node} has other samples in {root}, {len(other):,} of {len(pairs):,}, the "
                f"first is {other[0]!r}: put the same dataset on each node"
            )
        return ""
