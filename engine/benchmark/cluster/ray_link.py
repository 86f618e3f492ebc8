"""The link to Ray: a separate process that uses Ray, and JSON lines to and from it.

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
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from engine import settings
from engine.benchmark.cluster.cluster_options import AUTO, LOCAL, ClusterOptions, host_and_port
from engine.errors import Cancelled, ClusterError

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
