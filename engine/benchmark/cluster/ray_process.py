"""The process that uses Ray: connects, keeps an actor on each device, passes calls and answers.

    lines in   start, begin (the serialized run), accept or refuse a node, call a worker
    lines out  ready or refused; for a worker: starting, placed (its process runs), worker (it has
               begun), gone; done (a call); head (its problem), closed

The only module that imports Ray.  It ends at the end of its input, and stops Ray if it started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import shutil
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from engine.benchmark.cluster.cluster_options import LOCAL
from engine.benchmark.cluster.ray_link import unlogged, unreachable
from engine.benchmark.cluster.worker import Worker

STORE_BYTES = 80 * 2**20  # for Ray's objects: rows and one serialized run
LOOK_S = 1.0  # between checks of the head node, and for new and lost nodes
LOST_S = 15.0  # the cluster is lost if its head is silent for so long
RESTARTS = 3  # of a device's actor without an answer in between
END_S = 15.0  # limit for stopping Ray
HERE, BEGIN = -1, 0  # numbers of a worker's first calls; the driver's start at 1
Say = Callable[..., None]


class Refused(Exception):
    """A sentence for the user."""


@dataclass(eq=False)
class Actor:
    """A worker on the device with this number of a node."""

    id: str
    node: str
    number: int
    handle: Any


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
        RayHub(start, connect(start["address"], start["temp"]), say).run()
    except Refused as error:
        say("refused", reason=str(error))
    finally:
        import ray

        ray.shutdown()
        shutil.rmtree(start["temp"], ignore_errors=True)


def connect(address: str, temp: str) -> str:
    """Joins or starts a cluster; returns HOST:PORT of its head; Refused with Ray's reason."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reads these on import
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "1"  # workers without GPUs see none
    options: dict[str, Any] = {"address": address}
    if address == LOCAL:
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # binds to 127.0.0.1 only
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        store = {"object_store_memory": STORE_BYTES}
        options = {"include_dashboard": False, "_temp_dir": temp, **store}
    import ray

    try:
        ray.init(**options, log_to_driver=False, configure_logging=False)
    except (OSError, RuntimeError, ValueError, AssertionError, ray.exceptions.RayError) as error:
        raise Refused(f"Ray cannot be used at {address}: {sentence(error)}.") from error
    return str(ray.get_runtime_context().gcs_address)


def guard(head: str, say: Say) -> None:
    """Reports a lost head node.  Ray itself would hang for a minute, then end its driver's process
    without a message."""
    heard = time.monotonic()
    while time.monotonic() - heard < LOST_S:
        time.sleep(LOOK_S)
        silent = bool(unreachable(head))
        say("head", trouble=f"the head node {head} does not answer" if silent else "")
        heard = heard if silent else time.monotonic()
    say("closed", reason=f"The head node {head} of the Ray cluster has been lost.")


def sentence(error: BaseException) -> str:
    """The first sentence of an error's cause, without trace and advice."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, BaseException):
        return f"{type(cause).__name__}: {cause}"
    detail = (str(error).partition("Worker exit detail:")[2] or str(error)).strip()
    return unlogged(detail.partition("\n")[0]).rstrip(".") or type(error).__name__


class RayHub:
    """Keeps actors on devices, as many as requested and possible."""

    def __init__(self, start: dict[str, Any], head: str, say: Say) -> None:
        self._say, self._head = say, head
        self._queue = queue.SimpleQueue[Callable[[], None] | None]()
        self._cpus, self._gpus = int(start["cpus"]), start["gpus"]
        if self._gpus is None:
            self._gpus = float(any(n["Resources"].get("GPU", 0) >= 1 for n in _nodes().values()))
        self._actors: dict[str, Actor] = {}
        self._accepted: set[str] = set()
        self._refused: set[str] = set()
        self._failures: Counter[tuple[str, int]] = Counter()  # by node and number of a device
        self._run_data: Any = None
        devices, wanted = sum(map(self._fit, _nodes().values())), start["workers"]
        self._wanted = float("inf") if wanted is None else wanted
        if not devices or (wanted or 0) > devices:
            raise Refused(
                f"{wanted or 1:,} workers are more than the {devices:,} devices of the cluster "
                f"({self._cpus:,} CPU and {self._gpus:g} GPU each): request at most {devices:,}, "
                "or less per worker."
            )

    def run(self) -> None:
        """Runs until the input ends."""
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=guard, args=(self._head, self._say), daemon=True).start()
        self._say("ready")
        looked = time.monotonic()
        while True:
            if time.monotonic() - looked >= LOOK_S:
                self._look()
                looked = time.monotonic()
            with contextlib.suppress(queue.Empty):
                handle = self._queue.get(timeout=LOOK_S)
                if handle is None:
                    return
                handle()

    def _read(self) -> None:
        for line in sys.stdin:
            self._queue.put(partial(self._obey, **json.loads(line)))
        self._queue.put(None)
        time.sleep(END_S)
        os._exit(1)  # stopping Ray hangs, for instance because its head is lost

    def _obey(self, order: str, node: str = "", worker: str = "", **more: Any) -> None:
        import ray

        if order == "call":
            if (actor := self._actors.get(worker)) is not None:
                self._call(actor, more["number"], more["method"], more["arguments"])
            return
        if order == "begin":
            self._run_data = ray.put(more["run_data"])
        elif order == "accept":
            self._accepted.add(node)
        else:
            self._refused.add(node)
            for actor in [actor for actor in self._actors.values() if actor.node == node]:
                self._end(actor, more["reason"])
        self._look()

    def _look(self) -> None:
        """Ends actors of lost nodes, and starts actors on free devices; only one on a node that is
        not accepted yet.  First on one device of each node, then on the second ones, and so on."""
        nodes = _nodes()
        for actor in [actor for actor in self._actors.values() if actor.node not in nodes]:
            self._end(actor, f"node {actor.node} has left the cluster")
        if self._run_data is None:
            return
        held = {(actor.node, actor.number) for actor in self._actors.values()}
        free = [
            (number, name)
            for name, node in nodes.items()
            for number in range(self._fit(node))
            if name not in self._refused and (name, number) not in held
        ]
        for number, name in sorted(free):
            there = any(actor.node == name for actor in self._actors.values())
            usable = name in self._accepted or not there
            if usable and self._failures[name, number] < RESTARTS:
                if len(self._actors) >= self._wanted:
                    return
                self._start(name, number, nodes[name])

    def _start(self, node: str, number: int, about: dict[str, Any]) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        name = uuid.uuid4().hex[:8]
        kind = ray.remote(Worker).options(
            name=f"stagescope-{name}",
            num_cpus=self._cpus,
            num_gpus=self._gpus,
            max_restarts=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(about["NodeID"], soft=False),
        )
        handle = kind.remote({"STAGESCOPE_THREADS": str(self._cpus)})
        actor = self._actors[name] = Actor(name, node, number, handle)
        self._say("starting", worker=name, node=node, address=about["NodeManagerAddress"])
        self._call(actor, HERE, "here", [])
        self._call(actor, BEGIN, "begin", [self._run_data, node not in self._accepted])

    def _call(self, actor: Actor, number: int, method: str, arguments: list[Any]) -> None:
        future = getattr(actor.handle, method).remote(*arguments).future()
        future.add_done_callback(
            lambda done: self._queue.put(partial(self._answered, actor, number, done))
        )

    def _answered(self, actor: Actor, number: int, done: Any) -> None:
        if actor.id not in self._actors:
            return
        if (error := done.exception()) is not None:
            self._failures[actor.node, actor.number] += 1
            self._end(actor, self._reason(actor, error))
            self._look()
        elif number == HERE:
            self._say("placed", worker=actor.id, **done.result())
        elif number == BEGIN:
            self._say("worker", worker=actor.id, about=done.result())
        else:
            self._failures[actor.node, actor.number] = 0
            self._say("done", number=number, value=done.result())

    def _end(self, actor: Actor, reason: str) -> None:
        """Ends an actor once; later answers of it are ignored."""
        import ray

        del self._actors[actor.id]
        with contextlib.suppress(ray.exceptions.RayError, ValueError):
            ray.kill(actor.handle)
        self._say("gone", worker=actor.id, reason=reason)

    def _reason(self, actor: Actor, error: BaseException) -> str:
        import ray

        if actor.node not in _nodes():
            return f"node {actor.node} has left the cluster"
        if isinstance(error, ray.exceptions.RayActorError):
            return f"its process on node {actor.node} has ended ({sentence(error)})"
        return sentence(error)

    def _fit(self, node: dict[str, Any]) -> int:
        """How many workers fit on a node."""
        has = node["Resources"]
        cpus = int(has.get("CPU", 0) // self._cpus)
        return min(cpus, int(has.get("GPU", 0) / self._gpus + 1e-9)) if self._gpus else cpus


def _nodes() -> dict[str, dict[str, Any]]:
    """The live nodes by the beginnings of their ids, in a fixed order."""
    import ray

    alive = {str(node["NodeID"])[:8]: node for node in ray.nodes() if node["Alive"]}
    return dict(sorted(alive.items()))


if __name__ == "__main__":
    main()
