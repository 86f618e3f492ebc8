"""Which Ray cluster a dataset run uses, and the link to it: a separate process that uses Ray, and
JSON lines to and from it.

Ray ends its driver's process when the cluster is lost, needs environment variables before its
import, and prints freely.  The separate process keeps all of that away from the app and the command
line.  When this side ends, the other one finds its input closed and stops everything it started.
"""

import contextlib
import importlib.util
import json
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from engine import settings
from engine.errors import BadInput, Cancelled, ClusterError
from engine.media_options import check_range
from engine.quoting import count, quoted, whole
from engine.storage.plan import Plan

LOCAL, AUTO = "local", "auto"
MOST = 10_000
LEAST_GPU = 0.01  # Ray counts in steps of 0.0001, but no model runs on so little
PER_WORKER = "cpus=N,gpus=N"
Event = dict[str, Any]
PROBE_S = 3.0
ANSWER_S = 10.0  # a running cluster answers within this time
START_S = 90.0  # for a local Ray on a busy machine
STOP_S = 20.0
LOOK_S = 0.2  # delay until a Cancel is noticed
# A base path of this length leaves enough of a socket path's 107 characters for Ray.
_ROOM = 18
# Time, process and position at the beginning of a line of Ray's log.
_LOGGED = re.compile(r"^\[[^\]]*\]\s*(\([^)]*\)\s*)?\S+:\d+:\s*")


@dataclass(frozen=True)
class ClusterOptions:
    """`address`: HOST:PORT, "auto" for the cluster that this machine belongs to, "local" for a
    temporary one on this machine.  `workers` None: one per device.  A device is `gpus` GPUs with
    `cpus` cores; `gpus` None: 1 if the cluster has GPUs, else 0."""

    address: str = LOCAL
    workers: int | None = None
    cpus: int = 1
    gpus: float | None = None

    def __post_init__(self) -> None:
        if self.address not in (LOCAL, AUTO):
            host_and_port(self.address)
        check_range("workers", 1 if self.workers is None else self.workers, 1, MOST)
        check_range("cpus", self.cpus, 1, MOST)
        gpus = self.gpus or 0.0
        if not (0 <= gpus <= MOST and (float(gpus).is_integer() or LEAST_GPU <= gpus < 1)):
            allowed = f"0, a part of 1 that is no less than {LEAST_GPU:g}, or whole GPUs"
            raise BadInput(f"gpus is {self.gpus}: a worker takes {allowed}.")

    @property
    def flags(self) -> list[str]:
        found = ["--executor", "ray", "--address", self.address]
        if self.workers is not None:
            found += ["--workers", str(self.workers)]
        if self.cpus != ClusterOptions.cpus or self.gpus is not None:
            gpus = "" if self.gpus is None else f",gpus={self.gpus:g}"
            found += ["--per-worker", f"cpus={self.cpus}{gpus}"]
        return found

    def on(self, nodes: Mapping[str, Mapping[str, Any]]) -> Self:
        """These options for a cluster of these nodes; ClusterError if it has too few devices."""
        gpus = float(any(node["gpus"] >= 1 for node in nodes.values()))
        options = replace(self, gpus=gpus if self.gpus is None else self.gpus)
        there = len(options.devices(nodes))
        each = count(self.cpus, "core") + (f" and {options.gpus:g} GPU" if options.gpus else "")
        if not there:
            raise ClusterError(
                f"No node of the cluster has {each} for a worker: give --per-worker less."
            )
        if self.workers and self.workers > there:
            raise ClusterError(
                f"{count(self.workers, 'worker')} are more than the cluster's "
                f"{count(there, 'device')} of {each}: request at most {there:,}, or less for each."
            )
        return options

    def devices(self, nodes: Mapping[str, Mapping[str, Any]]) -> list[tuple[int, str]]:
        """(number, node) of each device: the first of each node, then the second ones, ..."""
        found = []
        for name, node in nodes.items():
            most = int(node["cpus"] // self.cpus)
            if self.gpus:
                most = min(most, int(node["gpus"] / self.gpus + 1e-9))
            found += [(number, name) for number in range(most)]
        return sorted(found)

    def check(self, plan: Plan) -> None:
        """As refuse(); an automatically chosen order is ignored."""
        self.refuse("auto" if plan.order_why else plan.order, plan.batch)

    def refuse(self, order: str, batch: int) -> None:
        """BadInput for settings that cannot run on several workers."""
        if order == "interleaved":
            raise BadInput(
                "Models cannot take turns on a cluster, where each worker holds one model: choose "
                "order sequential (Model by model), or run on this machine alone."
            )
        if batch > 1:
            given = f"batch is {whole(batch)}, but on a cluster each sample runs by itself"
            raise BadInput(f"{given}: choose 1, or run on this machine alone.")


class Link:
    """Starts workers on Ray and calls them; what happens there is told by events().  `nodes`: those
    at the start, by name, with "id", "address", "cpus" and "gpus"."""

    def __init__(self, options: ClusterOptions, cancelled: Callable[[], bool]) -> None:
        """Connects; ClusterError if that fails, Cancelled if requested."""
        if importlib.util.find_spec("ray") is None:
            raise ClusterError("Ray is not installed: pip install ray (the same on each machine).")
        address = options.address
        if address not in (LOCAL, AUTO) and (problem := unreachable(address)):
            raise ClusterError(
                f"No Ray cluster answers at {address} ({problem}): check the address, and that "
                "`ray start` runs there and on this machine."
            )
        self.folder = make_folder()
        self._log = (self.folder / "ray.log").open("w+b")
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._stop_s = 1.0
        models = str(settings.load().models_file)
        folders = str(settings.PROJECT), os.environ.get("PYTHONPATH", "")
        path = os.pathsep.join(filter(None, folders))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "engine.benchmark.cluster.ray_process"],
            cwd=settings.PROJECT,
            env={**os.environ, "PYTHONPATH": path, settings.VARIABLES["models_file"]: models},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,  # only the driver gets Ctrl-C, and then closes its input
        )
        self._listener = threading.Thread(target=self._listen, name="ray link", daemon=True)
        self._listener.start()
        try:
            self._send(address=address, temp=str(self.folder))
            self.nodes = self._wait_until_ready(address, cancelled)
        except BaseException:
            self.close()
            raise
        self._stop_s = STOP_S

    def _wait_until_ready(self, address: str, cancelled: Callable[[], bool]) -> Any:
        patience = START_S if address == LOCAL else ANSWER_S
        end = time.monotonic() + patience
        while (left := end - time.monotonic()) > 0:
            if cancelled():
                raise Cancelled("The run was cancelled before it was connected to Ray.")
            for event in self.events(min(left, LOOK_S)):
                if event["event"] == "ready":
                    return event["nodes"]
                raise ClusterError(str(event["reason"]))  # refused or closed
        if address == LOCAL:
            raise ClusterError(f"Ray did not start on this machine within {patience:g} s.")
        raise ClusterError(
            f"No Ray cluster ({address}) accepts this run within {patience:g} s: check that `ray "
            "start` runs on this machine, the port, and that RAY_AUTH_MODE and the token "
            "(~/.ray/auth_token or RAY_AUTH_TOKEN) match the cluster's."
        )

    def start(self, node_id: str, cpus: int, gpus: float, run_data: Any) -> str:
        """Starts a worker on a node as soon as it has so many cores and GPUs free; its id."""
        worker = uuid.uuid4().hex[:8]
        self._send(start=worker, node=node_id, cpus=cpus, gpus=gpus, run_data=run_data)
        return worker

    def call(self, worker: str, method: str, arguments: Iterable[Any] = ()) -> None:
        """An "answer" event has the same three, and a "value", or an "error" and if it "ended"."""
        self._send(call=worker, method=method, arguments=list(arguments))

    def end(self, worker: str) -> None:
        self._send(end=worker)

    def _send(self, **order: Any) -> None:
        """Sends an order; if the process has ended, its last event says so."""
        line = json.dumps(order) + "\n"
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()

    def events(self, timeout_s: float) -> list[Event]:
        """The events since the last call; waits up to `timeout_s` for the first."""
        events = []
        with contextlib.suppress(queue.Empty):
            events.append(self._events.get(timeout=max(0.0, timeout_s)))
            while True:
                events.append(self._events.get_nowait())
        return events

    def close(self) -> None:
        process = self._process
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(self._stop_s)
        except subprocess.TimeoutExpired:
            if sys.platform == "win32":
                process.kill()
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._listener.join(1.0)
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _listen(self) -> None:
        stream, reason = self._process.stdout, ""
        assert stream is not None
        with stream, contextlib.suppress(ValueError, OSError):
            for line in stream:
                self._events.put(json.loads(line))
        with contextlib.suppress(ValueError, OSError):  # why the process has ended
            self._log.seek(0)
            lines = self._log.read().decode(errors="replace").split("\n")
            last_line = next(filter(None, map(str.strip, reversed(lines))), "")
            reason = f" ({unlogged(last_line).rstrip('.')})" if last_line else ""
        self._events.put({"event": "closed", "reason": f"The connection to Ray has ended{reason}."})


def unreachable(address: str) -> str:
    """Why nothing at HOST:PORT can be reached now; "" if something listens there."""
    try:
        socket.create_connection(host_and_port(address), PROBE_S).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def unlogged(line: str) -> str:
    """The first sentence of a line of Ray's log or of its errors."""
    return _LOGGED.sub("", line).partition(". ")[0].strip()


def make_folder() -> Path:
    """A new folder for the log and a local Ray, short enough for Ray's socket paths."""
    usual = tempfile.gettempdir()
    base = "/tmp" if len(usual) > _ROOM and Path("/tmp").is_dir() else usual
    return Path(tempfile.mkdtemp(prefix="stagescope-ray-", dir=base))


def host_and_port(address: str) -> tuple[str, int]:
    """The parts of HOST:PORT (an IPv6 host is in brackets), or BadInput."""
    host, _, port = address.rpartition(":")
    known = port.isdecimal() and len(port) <= 5
    if not host or "/" in host or not known or not 1 <= int(port) <= 65535:
        given = f"The Ray address is {quoted(address)}"
        raise BadInput(f"{given}: write HOST:PORT as in 192.168.0.5:6379, auto or local.")
    return host.removeprefix("[").removesuffix("]"), int(port)


def per_worker(text: str) -> tuple[int, float | None]:
    """(cpus, gpus) of "cpus=4,gpus=1"; either may be left out."""
    parts = [part.strip().partition("=") for part in text.split(",")]
    wanted = {name: amount for name, _, amount in parts}
    try:
        gpus = float(wanted.pop("gpus")) if "gpus" in wanted else None
        cpus = int(wanted.pop("cpus", "1"))
        if wanted or len(parts) > len({name for name, _, _ in parts}):
            raise ValueError
    except ValueError as error:
        raise BadInput(
            f"--per-worker is {quoted(text)}: write it as {PER_WORKER}, each a number, once."
        ) from error
    return cpus, gpus
