"""The process that uses Ray: connects, keeps an actor on each device, passes calls and answers.

    lines in   start, begin (the serialized run), accept or refuse a node, call a worker
    lines out  reached (something listens at the address), ready or refused; for a worker: starting,
               placed (its process runs), worker (it has begun), gone; done (a call); head (its
               problem), closed

With ray_connection.py the only module that imports Ray.  It ends at the end of its input, and
stops Ray if it started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from engine.benchmark.cluster import ray_connection
from engine.benchmark.cluster.cluster_options import AUTO, LOCAL
from engine.benchmark.cluster.ray_connection import LOCK, Refused, Say, sentence
from engine.benchmark.cluster.worker import Worker
from engine.storage.file_lock import FileLock

LOOK_S = 1.0  # between checks for new and lost nodes
RESTARTS = 3  # of a device's actor without an answer in between
# Limits for stopping Ray: a local one may be slow, a remote one may have lost its head.
END_OWN_S, END_S = 15.0, 5.0
HERE, BEGIN = -1, 0  # numbers of a worker's first calls; the driver's start at 1


class DeviceSlot(NamedTuple):
    """A device: a node and a number on it."""

    node: str
    number: int


@dataclass(eq=False)
class Actor:
    id: str
    slot: DeviceSlot
    handle: Any
    calls: set[int] = field(default_factory=set)


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # all other output goes to the log
    lock = threading.Lock()

    def say(event: str, **more: Any) -> None:
        with lock, contextlib.suppress(OSError):
            out.write(json.dumps({"event": event, **more}) + "\n")
            out.flush()

    start = json.loads(sys.stdin.readline() or "{}")
    if not start:
        return
    try:
        FileLock(Path(start["temp"]) / LOCK).acquire()  # held until this process ends
        ray_connection.prepare_environment(start["address"])
        if start["address"] not in (LOCAL, AUTO):
            ray_connection.probe(start["address"])
            say("reached")
        RayHub(start, ray_connection.connect(start), say).run()
    except Refused as error:
        say("refused", reason=str(error))
    finally:
        import ray

        ray.shutdown()
        shutil.rmtree(start["temp"], ignore_errors=True)


class RayHub:
    """Keeps actors on devices, as many as requested and possible."""

    def __init__(self, start: dict[str, Any], head: str, say: Say) -> None:
        self._say, self._queue = say, queue.SimpleQueue[tuple[Any, ...]]()
        self._head, self._temp = head, start["temp"]
        self._end_s = END_OWN_S if start["address"] == LOCAL else END_S
        self._cpus, self._gpus = int(start["cpus"]), _gpus(start["gpus"])
        self._actors: dict[str, Actor] = {}
        self._accepted: set[str] = set()
        self._refused: set[str] = set()
        self._failures: Counter[DeviceSlot] = Counter()
        self._run_data: Any = None
        devices = sum(self._fit(node) for node in _nodes())
        self._wanted = start["workers"]
        each = f"{self._cpus:,} CPU and {self._gpus:g} GPU each"
        if not devices:
            raise Refused(f"No node of the cluster can hold a worker ({each}): request less.")
        if self._wanted is not None and self._wanted > devices:
            raise Refused(
                f"{self._wanted:,} workers are more than the {devices:,} devices of the cluster "
                f"({each}): request at most {devices:,}, or less per worker."
            )

    def run(self) -> None:
        """Runs until the input ends."""
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(
            target=ray_connection.guard, args=(self._head, self._say), daemon=True
        ).start()
        nodes = [{"id": _short(node), "address": node["NodeManagerAddress"]} for node in _nodes()]
        self._say("ready", nodes=nodes, gpus=self._gpus, cpus=self._cpus)
        looked = time.monotonic()
        while True:
            if time.monotonic() - looked >= LOOK_S:
                self._look()
                looked = time.monotonic()
            with contextlib.suppress(queue.Empty):
                kind, *rest = self._queue.get(timeout=LOOK_S)
                if kind == "end":
                    return
                if kind == "order":
                    self._obey(rest[0])
                else:
                    self._answered(*rest)

    def _read(self) -> None:
        for line in sys.stdin:
            self._queue.put(("order", json.loads(line)))
        self._queue.put(("end",))
        time.sleep(self._end_s)
        shutil.rmtree(self._temp, ignore_errors=True)
        os._exit(1)

    def _obey(self, order: dict[str, Any]) -> None:
        import ray

        kind = order["order"]
        if kind == "call":
            if (actor := self._actors.get(order["worker"])) is not None:
                self._call(actor, order["number"], order["method"], order["arguments"])
            return
        if kind == "begin":
            self._run_data = ray.put(order["run_data"])
        elif kind == "accept":
            self._accepted.add(order["node"])
        elif kind == "refuse":
            self._refused.add(order["node"])
            for one in [one for one in self._actors.values() if one.slot.node == order["node"]]:
                self._end(one, order["reason"])
        self._fill()

    # Actors on devices.
    def _fill(self) -> None:
        """Starts actors on free devices; only one on a node that is not accepted yet."""
        if self._run_data is None:
            return
        nodes = {_short(node): node for node in _nodes()}
        for slot in self._free(nodes):
            if self._wanted is not None and len(self._actors) >= self._wanted:
                return
            there = any(actor.slot.node == slot.node for actor in self._actors.values())
            if slot.node in self._accepted or not there:
                self._start(slot, nodes[slot.node])

    def _free(self, nodes: dict[str, dict[str, Any]]) -> Iterable[DeviceSlot]:
        """Devices without an actor: first one of each node, then the second ones, and so on."""
        held = {actor.slot for actor in self._actors.values()}
        found = [
            DeviceSlot(name, number)
            for name, node in nodes.items()
            for number in range(self._fit(node))
            if name not in self._refused
        ]
        usable = [s for s in found if s not in held and self._failures[s] < RESTARTS]
        return sorted(usable, key=lambda slot: slot.number)

    def _start(self, slot: DeviceSlot, node: dict[str, Any]) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        name = uuid.uuid4().hex[:8]
        variables = {"STAGESCOPE_THREADS": str(self._cpus)}
        kind = ray.remote(Worker).options(
            name=f"stagescope-{name}",
            num_cpus=self._cpus,
            num_gpus=self._gpus,
            max_restarts=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        )
        actor = self._actors[name] = Actor(name, slot, kind.remote(variables))
        self._say("starting", worker=name, node=slot.node, address=node["NodeManagerAddress"])
        self._call(actor, HERE, "here", [])
        self._call(actor, BEGIN, "begin", [self._run_data, slot.node not in self._accepted])

    def _call(self, actor: Actor, number: int, method: str, arguments: list[Any]) -> None:
        actor.calls.add(number)
        future = getattr(actor.handle, method).remote(*arguments).future()
        future.add_done_callback(lambda done: self._queue.put(("answer", actor.id, number, done)))

    def _answered(self, name: str, number: int, done: Any) -> None:
        actor = self._actors.get(name)
        if actor is None or number not in actor.calls:
            return
        actor.calls.remove(number)
        if (error := done.exception()) is not None:
            self._failures[actor.slot] += 1
            self._end(actor, self._reason(actor, error))
        elif number == HERE:
            self._say("placed", worker=name, **done.result())
        elif number == BEGIN:
            self._say("worker", worker=name, about=done.result())
        else:
            self._failures[actor.slot] = 0
            self._say("done", worker=name, number=number, value=done.result())
        if error is not None:
            self._fill()

    def _end(self, actor: Actor, reason: str) -> None:
        """Ends an actor once; later answers of it are ignored."""
        import ray

        if self._actors.pop(actor.id, None) is None:
            return
        with contextlib.suppress(ray.exceptions.RayError, ValueError):
            ray.kill(actor.handle)
        self._say("gone", worker=actor.id, reason=reason)

    def _look(self) -> None:
        """Ends actors of lost nodes, and starts actors on new ones."""
        here = {_short(node) for node in _nodes()}
        for actor in [one for one in self._actors.values() if one.slot.node not in here]:
            self._end(actor, f"node {actor.slot.node} has left the cluster")
        self._fill()

    def _reason(self, actor: Actor, error: BaseException) -> str:
        import ray

        if actor.slot.node not in {_short(node) for node in _nodes()}:
            return f"node {actor.slot.node} has left the cluster"
        if isinstance(error, ray.exceptions.ActorUnavailableError):
            return f"its process on node {actor.slot.node} cannot be reached"
        if isinstance(error, ray.exceptions.RayActorError):
            return f"its process on node {actor.slot.node} has ended ({sentence(error)})"
        return sentence(error)

    def _fit(self, node: dict[str, Any]) -> int:
        """How many workers fit on a node."""
        has = node["Resources"]
        cpus = int(has.get("CPU", 0) // self._cpus)
        return min(cpus, int(has.get("GPU", 0) / self._gpus + 1e-9)) if self._gpus else cpus


def _nodes() -> list[dict[str, Any]]:
    """The live nodes, in a fixed order."""
    import ray

    alive = [node for node in ray.nodes() if node["Alive"]]
    return sorted(alive, key=lambda node: str(node["NodeID"]))


def _gpus(asked: float | None) -> float:
    """GPUs per worker: as requested, else 1 if the cluster has any."""
    if asked is not None:
        return float(asked)
    return 1.0 if any(node["Resources"].get("GPU", 0) >= 1 for node in _nodes()) else 0.0


def _short(node: dict[str, Any]) -> str:
    return str(node["NodeID"])[:8]


if __name__ == "__main__":
    main()
