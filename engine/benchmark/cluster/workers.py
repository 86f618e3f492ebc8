"""The workers of a cluster as shown to users and in rows, and what a node lacks of the run."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.benchmark.prepare import PreparedRun
from engine.benchmark.run_progress import RATED, WorkerView
from engine.storage.result_rows import Place

WAITING, NO_MODEL = "waiting", "can load no model"
IDLE = (WAITING, NO_MODEL)
KEPT = 100  # ended workers that are still listed


@dataclass(eq=False)
class WorkerState:
    """One worker.  `machine` is empty until its process runs, which needs a free device; `device`
    is the report of worker.device_here(), empty before it.  Monotonic seconds."""

    id: str
    node: str
    address: str
    machine: str = ""
    host: str = ""
    device: Mapping[str, Any] = field(default_factory=dict)
    state: str = "waiting for its device"
    since: float = field(default_factory=time.monotonic)
    ended_at: float | None = None
    aside_at: float | None = None  # since when it runs but can load no model
    done: int = 0
    ends: deque[float] = field(default_factory=lambda: deque(maxlen=RATED))

    @property
    def ended(self) -> bool:
        return self.ended_at is not None

    @property
    def at_work(self) -> bool:
        return bool(self.device) and not self.ended

    def was_there(self, since: float) -> bool:
        """Whether its process ran at any moment since then."""
        over = self.ended_at if self.aside_at is None else self.aside_at
        return bool(self.machine) and (over is None or over >= since)


class Workers:
    """All workers of a session."""

    def __init__(self) -> None:
        self._members: dict[str, WorkerState] = {}

    def __getitem__(self, worker: str) -> WorkerState:
        return self._members[worker]

    def __iter__(self) -> Iterator[WorkerState]:
        return iter(self._members.values())

    def add(self, worker: str, node: str, address: str) -> WorkerState:
        member = self._members[worker] = WorkerState(worker, node, address)
        ended = [one.id for one in self if one.ended]
        for name in ended[:-KEPT]:
            del self._members[name]
        return member

    def place(self, worker: str, machine: str, host: str) -> None:
        """Records that its process runs."""
        member = self._members[worker]
        member.machine, member.host, member.state = machine, host, "starting"

    def starting(self) -> int:
        """The number of workers that have not reported their device yet."""
        return sum(not one.device and not one.ended for one in self)

    def waiting(self, longer_s: float = 0.0) -> list[WorkerState]:
        """Workers whose process has not started for `longer_s`: their device is in use."""
        latest = time.monotonic() - longer_s
        return [one for one in self if not (one.machine or one.ended) and one.since <= latest]

    def end(self, worker: str, why: str) -> None:
        member = self._members[worker]
        member.ended_at, member.state = time.monotonic(), f"ended: {why}"

    def set_aside(self, worker: str) -> None:
        """Records that it can load no model, so it does not use its device."""
        member = self._members[worker]
        member.aside_at, member.state = time.monotonic(), NO_MODEL

    def release(self) -> None:
        """Ends all remaining workers at the end of the session."""
        for member in self:
            if not member.ended:
                member.ended_at, member.state = time.monotonic(), "released"

    def count(self, worker: str) -> None:
        """Counts a measured result."""
        member = self._members[worker]
        member.done += 1
        member.ends.append(time.monotonic())

    def where(self, worker: str, since: float) -> Place:
        """Node, device and sharing for a row whose work began at `since`."""
        member = self._members[worker]
        return Place(
            node=member.node,
            host=member.host,
            address=member.address,
            device=f"{member.device['name']} ({member.device['unit']})",
            type=member.device["type"],
            actor=member.id,
            pid=member.device["pid"],
            shares=tuple(self.shares(member, since)),
        )

    def shares(self, member: WorkerState, since: float) -> list[str]:
        """What other workers of this run used at any moment since then: "device" (the same GPU, or
        the machine's processor), "cores" (more threads than cores), or nothing.

        A starting worker counts with its threads, but without a GPU.
        """
        near = [one for one in self if one.machine == member.machine and one.was_there(since)]
        mine = member.device
        starts = {"threads": mine["threads"], "unit": "cpu"}
        others = [one.device or starts for one in near if one is not member]
        found = ["device"] if any(one["unit"] == mine["unit"] for one in others) else []
        if mine["threads"] + sum(one["threads"] for one in others) > mine["cores"]:
            found.append("cores")
        return found

    def on(self, machine: str) -> list[WorkerState]:
        """The workers of one machine."""
        return [one for one in self if one.at_work and one.machine == machine]

    def words(self) -> str:
        """The number of workers per state, without ended ones."""
        waiting, starting = len(self.waiting()), self.starting()
        counts = {
            "at work": sum(one.at_work and one.state not in IDLE for one in self),
            "idle": sum(one.at_work and one.state in IDLE for one in self),
            "starting": starting - waiting,
            "waiting for a device": waiting,
        }
        parts = [f"{n:,} {'worker' if n == 1 else 'workers'} {do}" for do, n in counts.items() if n]
        return ", ".join(parts) or ("no worker left" if self._members else "looking for devices")

    def views(self) -> tuple[WorkerView, ...]:
        return tuple(map(self._view, self))

    def _view(self, member: WorkerState) -> WorkerView:
        ends = member.ends
        rate = (len(ends) - 1) / (ends[-1] - ends[0]) if len(ends) > 1 else None
        return WorkerView(
            id=member.id,
            node=f"{member.host} {member.address} ({member.node})".strip(),
            device=str(member.device.get("name", "")),
            type=str(member.device.get("type", "")),
            shares=tuple(self.shares(member, time.monotonic())) if member.at_work else (),
            state=member.state,
            ended=member.ended,
            done=member.done,
            per_s=None if member.ended else rate,
        )


@dataclass(frozen=True)
class NodeFinding:
    """`refused`: a difference that would change results.  `useless`: why the node cannot do
    anything.  `lacks`: samples it does not have.  `unloadable`: models it does not have, with the
    reason."""

    refused: str = ""
    useless: str = ""
    lacks: frozenset[str] = frozenset()
    unloadable: Mapping[str, str] = field(default_factory=dict)


def judged(
    node: str,
    holds: Mapping[str, Any],
    ready: PreparedRun,
    digests: Sequence[str | None],
    versions: Mapping[str, str],
) -> NodeFinding:
    """Compares a node's code, libraries, checkpoints and samples with the run's.

    `holds`: the report of worker.begin() about the node; `digests` of the samples on this machine;
    `versions`: the libraries of this machine.
    """
    if holds["code"] != ready.writer.header.code:
        there = holds["versions"]
        other = [f"{k} {there.get(k)} not {v}" for k, v in versions.items() if there.get(k) != v]
        which = f"its libraries ({', '.join(other)})" if other else "the engine's code"
        return NodeFinding(f"{node} has another digest of {which}: install the same on each node")
    unloadable: dict[str, str] = {}  # models that it lacks run on other nodes
    for model in ready.writer.header.models:
        found = holds["models"][model.name]
        if "error" in found:
            unloadable[model.name] = str(found["error"])
        elif (found["digest"], found["dtype"]) != (model.digest, model.dtype):
            return NodeFinding(
                f"{node} has another checkpoint or dtype of {model.name} (digest "
                f"{found['digest'][:12]} not {model.digest[:12]}): put the same on each node"
            )
    if not holds["root"]:
        return NodeFinding(useless=f"the dataset {ready.root} is not on {node}")
    pairs = list(zip(ready.samples, digests, holds["samples"], strict=True))
    other = [sample for sample, here, there in pairs if there not in (here, None)]
    if other:
        return NodeFinding(
            f"{node} has other samples in {ready.root}, {len(other):,} of {len(pairs):,}, the "
            f"first is {other[0]!r}: put the same dataset on each node"
        )
    lacks = frozenset(sample for sample, here, there in pairs if there is None and here is not None)
    if len(lacks) == len(pairs):
        return NodeFinding(useless=f"none of the samples of {ready.root} is on {node}")
    return NodeFinding(lacks=lacks, unloadable=unloadable)
