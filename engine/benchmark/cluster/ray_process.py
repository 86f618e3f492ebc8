"""The process that uses Ray: connects, keeps an actor on each device, passes calls and answers.

    lines in   start, begin (the serialized run), accept or refuse a node, call a worker
    lines out  reached (something listens at the address), ready or refused; for a worker: starting,
               placed (its process runs), worker (it has begun), gone; done (a call); head (its
               problem), closed

The only module that imports Ray.  It ends at the end of its input, and stops Ray if it started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import shutil
import socket
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from engine.benchmark.cluster.cluster_options import AUTO, LOCAL, host_and_port
from engine.benchmark.cluster.ray_link import LOCK, unlogged
from engine.benchmark.cluster.worker import Worker
from engine.storage.file_lock import FileLock

STORE_BYTES = 80 * 2**20  # for Ray's objects: rows and one serialized run
PROBE_S = 3.0
LOOK_S = 1.0  # between checks of the head node, and for new and lost nodes
LOST_S = 15.0  # the cluster is lost if its head is silent for so long
RESTARTS = 3  # of a device's actor without an answer in between
# Limits for stopping Ray: a local one may be slow, a remote one may have lost its head.
END_OWN_S, END_S = 15.0, 5.0
HERE, BEGIN = -1, 0  # numbers of a worker's first calls; the driver's start at 1
Say = Callable[..., None]
_DETAIL, _ADVICE = "Worker exit detail:", "Some common causes"  # Ray's reason is between them


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
    address = start["address"]
    try:
        FileLock(Path(start["temp"]) / LOCK).acquire()  # held until this process ends
        prepare_environment(address)
        if address not in (LOCAL, AUTO):
            if problem := unreachable(address):
                raise Refused(
                    f"No Ray cluster answers at {address} ({problem}): check the address, and "
                    "that `ray start` runs there and on this machine."
                )
            say("reached")
        RayHub(start, connect(start), say).run()
    except Refused as error:
        say("refused", reason=str(error))
    finally:
        import ray

        ray.shutdown()
        shutil.rmtree(start["temp"], ignore_errors=True)


def prepare_environment(address: str) -> None:
    """Sets the environment variables that Ray reads on import."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "1"  # workers without GPUs see none
    if address == LOCAL or _on_loopback_alone(address):
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # binds to 127.0.0.1 only
    if address == LOCAL:
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def _on_loopback_alone(address: str) -> bool:
    """Whether the machine's own address is unusable, so a local cluster needs 127.0.0.1."""
    host, _, port = address.rpartition(":")
    if host not in ("127.0.0.1", "localhost"):
        return False
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; the system only chooses a local address
        return bool(unreachable(f"{probe.getsockname()[0]}:{port}"))
    return True


def unreachable(address: str) -> str:
    """Why nothing at HOST:PORT can be reached now; "" if something listens there."""
    try:
        socket.create_connection(host_and_port(address), PROBE_S).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def connect(start: dict[str, Any]) -> str:
    """Joins or starts a cluster; returns HOST:PORT of its head; Refused with Ray's reason."""
    import ray

    address = start["address"]
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    try:
        if address == LOCAL:
            local = {"include_dashboard": False, "object_store_memory": STORE_BYTES}
            ray.init(_temp_dir=start["temp"], **local, **quiet)
        else:
            ray.init(address=address, **quiet)
    except (OSError, RuntimeError, ValueError, AssertionError, ray.exceptions.RayError) as error:
        raise Refused(f"Ray cannot be used at {address}: {sentence(error)}.") from error
    return str(ray.get_runtime_context().gcs_address)


def guard(head: str, say: Say) -> None:
    """Reports a lost head node.  Ray itself would hang for a minute, then end its driver's process
    without a message."""
    lost_at: float | None = None
    while lost_at is None or time.monotonic() - lost_at < LOST_S:
        time.sleep(LOOK_S)
        if not unreachable(head):
            if lost_at is not None:
                say("head", trouble="")
            lost_at = None
        elif lost_at is None:
            lost_at = time.monotonic()
            say("head", trouble=f"the head node {head} does not answer")
    say("closed", reason=f"The head node {head} of the Ray cluster has been lost.")


def sentence(error: BaseException) -> str:
    """The first sentence of an error's cause, without trace and advice."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, BaseException):
        return f"{type(cause).__name__}: {cause}"
    detail = str(error).partition(_DETAIL)[2].partition(_ADVICE)[0].strip().rstrip(".")
    lines = [line.strip() for line in (detail or str(error)).splitlines() if line.strip()]
    telling = [line for line in lines if "mismatch" in line.lower()]
    return unlogged((telling or lines[:1] or [type(error).__name__])[0]).rstrip(".")


class RayHub:
    """Keeps actors on devices, as many as requested and possible."""

    def __init__(self, start: dict[str, Any], head: str, say: Say) -> None:
        self._say, self._queue = say, queue.SimpleQueue[Callable[[], None] | None]()
        self._head, self._temp = head, start["temp"]
        self._end_s = END_OWN_S if start["address"] == LOCAL else END_S
        self._cpus, self._gpus = int(start["cpus"]), start["gpus"]
        if self._gpus is None:
            self._gpus = float(any(n["Resources"].get("GPU", 0) >= 1 for n in _nodes().values()))
        self._actors: dict[str, Actor] = {}
        self._accepted: set[str] = set()
        self._refused: set[str] = set()
        self._failures: Counter[tuple[str, int]] = Counter()  # by node and number of a device
        self._run_data: Any = None
        devices = sum(map(self._fit, _nodes().values()))
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
            self._queue.put(partial(self._obey, json.loads(line)))
        self._queue.put(None)
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
            for actor in [a for a in self._actors.values() if a.node == order["node"]]:
                self._end(actor, order["reason"])
        self._fill()

    # Actors on devices.
    def _fill(self) -> None:
        """Starts actors on free devices; only one on a node that is not accepted yet.

        First on one device of each node, then on the second ones, and so on.
        """
        if self._run_data is None:
            return
        nodes = _nodes()
        held = {(actor.node, actor.number) for actor in self._actors.values()}
        devices = [
            (name, number)
            for name, node in nodes.items()
            for number in range(self._fit(node))
            if name not in self._refused
        ]
        for name, number in sorted(devices, key=lambda device: device[1]):
            if self._wanted is not None and len(self._actors) >= self._wanted:
                return
            usable = (name, number) not in held and self._failures[name, number] < RESTARTS
            there = any(actor.node == name for actor in self._actors.values())
            if usable and (name in self._accepted or not there):
                self._start(name, number, nodes[name])

    def _start(self, node: str, number: int, about: dict[str, Any]) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        name = uuid.uuid4().hex[:8]
        variables = {"STAGESCOPE_THREADS": str(self._cpus)}
        kind = ray.remote(Worker).options(
            name=f"stagescope-{name}",
            num_cpus=self._cpus,
            num_gpus=self._gpus,
            max_restarts=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(about["NodeID"], soft=False),
        )
        actor = self._actors[name] = Actor(name, node, number, kind.remote(variables))
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
            self._fill()
        elif number == HERE:
            self._say("placed", worker=actor.id, **done.result())
        elif number == BEGIN:
            self._say("worker", worker=actor.id, about=done.result())
        else:
            self._failures[actor.node, actor.number] = 0
            self._say("done", worker=actor.id, number=number, value=done.result())

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
        here = _nodes()
        for actor in [actor for actor in self._actors.values() if actor.node not in here]:
            self._end(actor, f"node {actor.node} has left the cluster")
        self._fill()

    def _reason(self, actor: Actor, error: BaseException) -> str:
        import ray

        if actor.node not in _nodes():
            return f"node {actor.node} has left the cluster"
        if isinstance(error, ray.exceptions.ActorUnavailableError):
            return f"its process on node {actor.node} cannot be reached"
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
