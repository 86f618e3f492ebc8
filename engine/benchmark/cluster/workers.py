"""The workers of a cluster as shown to users and in rows."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from engine.quoting import count
from engine.storage.plan import Task
from engine.storage.result_rows import Place

RATED = 50  # number of last results in the rate, so that the time to load a model drops out
NO_DEVICE, STARTING, WAITING = "waiting for its device", "starting", "waiting"
NO_MODEL = "can load no model"
COUNTED = {NO_DEVICE: "waiting for a device", STARTING: "starting", WAITING: "idle",
           NO_MODEL: "idle"}  # fmt: skip


@dataclass(eq=False)
class WorkerState:
    """One worker, on the device with this number of its node.

    `machine` is empty until its process runs, which needs a free device; `device` is the report of
    worker.device_here(), empty before it; `over_at`: when it ended, or stopped using its device
    because it can load no model, in monotonic seconds; `shared`: what other workers use now.

    `model`: whose tasks it gets, after those of `warm_up`; `loaded`: the model of its last answer;
    `given`: its tasks, the running one first; `refused`: models that it cannot load.
    """

    id: str
    node: str
    address: str
    number: int = 0
    loaded: str = ""
    model: str = ""
    warm_up: deque[Task] = field(default_factory=deque)
    given: deque[Task] = field(default_factory=deque)
    refused: set[str] = field(default_factory=set)
    machine: str = ""
    host: str = ""
    device: Mapping[str, Any] = field(default_factory=dict)
    state: str = NO_DEVICE
    since: float = field(default_factory=time.monotonic)
    ended: bool = False
    over_at: float = inf
    done: int = 0
    ends: deque[float] = field(default_factory=lambda: deque(maxlen=RATED))
    shared: tuple[str, ...] = ()

    @property
    def per_s(self) -> float | None:
        """Recent measured results per second."""
        if self.ended or len(self.ends) < 2:
            return None
        return (len(self.ends) - 1) / (self.ends[-1] - self.ends[0])

    def end(self, state: str) -> None:
        self.set_aside(state)
        self.ended = True

    def set_aside(self, state: str = NO_MODEL) -> None:
        self.state, self.over_at = state, min(self.over_at, time.monotonic())

    def count(self) -> None:
        self.done += 1
        self.ends.append(time.monotonic())


class Workers(dict[str, WorkerState]):
    """All workers of a session by their ids."""

    @property
    def present(self) -> list[WorkerState]:
        return [member for member in self.values() if not member.ended]

    def waiting(self, longer_s: float = 0.0) -> list[WorkerState]:
        """Workers whose process has not started for `longer_s`: their device is in use."""
        latest = time.monotonic() - longer_s
        return [one for one in self.present if not one.machine and one.since <= latest]

    def where(self, member: WorkerState, since: float) -> Place:
        """Node, device and sharing for a row whose work began at `since`."""
        return Place(
            node=member.node,
            host=member.host,
            address=member.address,
            device=f"{member.device['name']} ({member.device['unit']})",
            type=member.device["type"],
            actor=member.id,
            pid=member.device["pid"],
            shares=self.shares(member, since),
        )

    def shares(self, member: WorkerState, since: float) -> tuple[str, ...]:
        """What other workers of this run used at any moment since then: "device" (the same GPU, or
        the machine's processor), "cores" (more threads than cores), or nothing.

        A starting worker counts with its threads, but without a GPU.
        """
        mine = member.device
        others = [
            other.device or {"threads": mine["threads"], "unit": "cpu"}
            for other in self.values()
            if other is not member and other.machine == member.machine and other.over_at >= since
        ]
        shares = ["device"] if any(other["unit"] == mine["unit"] for other in others) else []
        if mine["threads"] + sum(other["threads"] for other in others) > mine["cores"]:
            shares.append("cores")
        return tuple(shares)

    def words(self) -> str:
        states = Counter(COUNTED.get(member.state, "at work") for member in self.present)
        order = ("at work", *dict.fromkeys(reversed(COUNTED.values())))
        parts = [f"{count(states[state], 'worker')} {state}" for state in order if states[state]]
        return ", ".join(parts) or ("no worker left" if self else "looking for devices")

    def seen(self) -> tuple[WorkerState, ...]:
        """All of them, with what they share now and the name of their node, which one has told."""
        now = time.monotonic()
        hosts = {member.node: member.host for member in self.values() if member.host}
        for member in self.values():
            member.host = hosts.get(member.node, "")
            working = member.device and not member.ended
            member.shared = self.shares(member, now) if working else ()
        return tuple(self.values())
