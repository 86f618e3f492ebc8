"""The workers of a cluster as people and rows see them: node, device, state, rate, what is shared.

Boundary: keeps what it is told and computes views of it; it hands out nothing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.progress import RATED, WorkerView

KEPT = 100  # workers that have ended and are still listed


@dataclass(eq=False)
class Member:
    """One worker.  `device` is what worker.device_here() told, empty until it has."""

    id: str
    node: str
    address: str
    device: Mapping[str, Any] = field(default_factory=dict)
    state: str = "starting"
    ended: bool = False
    done: int = 0
    ends: deque[float] = field(default_factory=lambda: deque(maxlen=RATED))

    @property
    def at_work(self) -> bool:
        return bool(self.device) and not self.ended


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

    def starting(self) -> int:
        """Workers that have not told yet what they are."""
        return sum(not one.device and not one.ended for one in self)

    def end(self, worker: str, why: str) -> None:
        member = self._members[worker]
        member.ended, member.state = True, f"ended: {why}"

    def count(self, worker: str) -> None:
        """A measured result came back."""
        member = self._members[worker]
        member.done += 1
        member.ends.append(time.monotonic())

    def where(self, worker: str) -> dict[str, Any]:
        """What a row says of the place it comes from."""
        member = self._members[worker]
        return {
            "node": member.node,
            "host": member.device["host"],
            "address": member.address,
            "device": f"{member.device['name']} ({member.device['unit']})",
            "type": member.device["type"],
            "actor": member.id,
            "pid": member.device["pid"],
            "shares": self.shares(member),
        }

    def shares(self, member: Member) -> list[str]:
        """What others of this run use at the same time: "device", "cores", or nothing."""
        machine = member.device["machine"]
        near = [one for one in self if one.at_work and one.device["machine"] == machine]
        same = [one for one in near if one.device["unit"] == member.device["unit"]]
        found = ["device"] if len(same) > 1 else []
        if sum(one.device["threads"] for one in near) > member.device["cores"]:
            found.append("cores")
        return found

    def on(self, machine: str) -> list[Member]:
        """The workers of one machine."""
        return [one for one in self if one.at_work and one.device["machine"] == machine]

    def views(self) -> tuple[WorkerView, ...]:
        return tuple(map(self._view, self))

    def _view(self, member: Member) -> WorkerView:
        ends = member.ends
        rate = (len(ends) - 1) / (ends[-1] - ends[0]) if len(ends) > 1 else None
        return WorkerView(
            id=member.id,
            node=f"{member.device.get('host', '')} {member.address} ({member.node})".strip(),
            device=str(member.device.get("name", "")),
            type=str(member.device.get("type", "")),
            shares=tuple(self.shares(member)) if member.at_work else (),
            state=member.state,
            ended=member.ended,
            done=member.done,
            per_s=None if member.ended else rate,
        )
