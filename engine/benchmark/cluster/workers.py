"""The workers of a cluster as people and rows see them: node, device, state, rate, what is shared.

Boundary: keeps what it is told and computes views of it; it hands out nothing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.benchmark.run_progress import RATED, WorkerView
from engine.storage.result_rows import Place

WAITING, ASIDE = "waiting", "can load no model"
IDLE = (WAITING, ASIDE)
KEPT = 100  # workers that have ended and are still listed


@dataclass(eq=False)
class Member:
    """One worker.  `machine` is empty until its process is there, which it is not before its device
    is free; `device` is what worker.device_here() told, empty until it has.  Monotonic seconds."""

    id: str
    node: str
    address: str
    machine: str = ""
    host: str = ""
    device: Mapping[str, Any] = field(default_factory=dict)
    state: str = "waiting for its device"
    since: float = field(default_factory=time.monotonic)
    ended_at: float | None = None
    aside_at: float | None = None  # since when it can do nothing, though it is there
    done: int = 0
    ends: deque[float] = field(default_factory=lambda: deque(maxlen=RATED))

    @property
    def ended(self) -> bool:
        return self.ended_at is not None

    @property
    def at_work(self) -> bool:
        return bool(self.device) and not self.ended

    def was_there(self, since: float) -> bool:
        """Whether its process was there at some moment since then."""
        over = self.ended_at if self.aside_at is None else self.aside_at
        return bool(self.machine) and (over is None or over >= since)


class Crew:
    """All workers of a sitting."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}

    def __getitem__(self, worker: str) -> Member:
        return self._members[worker]

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def add(self, worker: str, node: str, address: str) -> Member:
        member = self._members[worker] = Member(worker, node, address)
        ended = [one.id for one in self if one.ended]
        for name in ended[:-KEPT]:
            del self._members[name]
        return member

    def place(self, worker: str, machine: str, host: str) -> None:
        """Its process is there."""
        member = self._members[worker]
        member.machine, member.host, member.state = machine, host, "starting"

    def starting(self) -> int:
        """Workers that have not told yet what they are."""
        return sum(not one.device and not one.ended for one in self)

    def waiting(self, longer_s: float = 0.0) -> list[Member]:
        """Those whose process has not come up for so long: something else has their device."""
        latest = time.monotonic() - longer_s
        return [one for one in self if not (one.machine or one.ended) and one.since <= latest]

    def end(self, worker: str, why: str) -> None:
        member = self._members[worker]
        member.ended_at, member.state = time.monotonic(), f"ended: {why}"

    def set_aside(self, worker: str) -> None:
        """It can load no model: it is there, and has no use for its device."""
        member = self._members[worker]
        member.aside_at, member.state = time.monotonic(), ASIDE

    def release(self) -> None:
        """The sitting has ended, and with it those that were still there."""
        for member in self:
            if not member.ended:
                member.ended_at, member.state = time.monotonic(), "released"

    def count(self, worker: str) -> None:
        """A measured result came back."""
        member = self._members[worker]
        member.done += 1
        member.ends.append(time.monotonic())

    def where(self, worker: str, since: float) -> Place:
        """What a row says of the place it comes from, whose work began at `since`."""
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

    def shares(self, member: Member, since: float) -> list[str]:
        """What others of this run had at some moment since then, at work or not: "device" (the
        same GPU, or a machine's one processor), "cores" (more threads than there are), or nothing.

        One that is still starting has the threads of the others, and no GPU yet.
        """
        near = [one for one in self if one.machine == member.machine and one.was_there(since)]
        mine = member.device
        starts = {"threads": mine["threads"], "unit": "cpu"}
        others = [one.device or starts for one in near if one is not member]
        found = ["device"] if any(one["unit"] == mine["unit"] for one in others) else []
        if mine["threads"] + sum(one["threads"] for one in others) > mine["cores"]:
            found.append("cores")
        return found

    def on(self, machine: str) -> list[Member]:
        """The workers of one machine."""
        return [one for one in self if one.at_work and one.machine == machine]

    def words(self) -> str:
        """How many there are, by what they do; those that have ended are not counted."""
        waiting, starting = len(self.waiting()), self.starting()
        counts = {
            "at work": sum(one.at_work and one.state not in IDLE for one in self),
            "idle": sum(one.at_work and one.state in IDLE for one in self),
            "starting": starting - waiting,
            "waiting for a device": waiting,
        }
        told = [f"{n:,} {'worker' if n == 1 else 'workers'} {do}" for do, n in counts.items() if n]
        return ", ".join(told) or ("no worker left" if self._members else "looking for devices")

    def views(self) -> tuple[WorkerView, ...]:
        return tuple(map(self._view, self))

    def _view(self, member: Member) -> WorkerView:
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
