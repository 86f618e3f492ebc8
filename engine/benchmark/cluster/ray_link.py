"""The link to Ray: a separate process that uses Ray, and JSON lines to and from it.

Ray ends its driver's process when the cluster is lost, needs environment variables before its
import, and prints freely.  The separate process keeps all of that away from the app and the command
line.  When this side ends, the other one finds its input closed and stops everything it started.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import IO, Any, Protocol

from engine.benchmark.cluster.cluster_options import AUTO, LOCAL, ClusterOptions
from engine.benchmark.cluster.ray_connection import make_folder, unlogged
from engine.errors import Cancelled, ClusterError
from engine.settings import PROJECT

Event = dict[str, Any]
ANSWER_S = 10.0  # a running cluster answers within this time
START_S = 90.0  # for a local Ray on a busy machine
STOP_S = 20.0
LOOK_S = 0.2  # delay until a Cancel is noticed
INSTALL = "pip install -r requirements-ray.txt"


class Pool(Protocol):
    """A set of workers: takes orders and returns events, both JSON objects."""

    def send(self, order: str, **more: Any) -> None: ...
    def events(self, timeout_s: float) -> list[Event]:
        """The events since the last call; waits up to `timeout_s` for the first."""
        ...

    def close(self) -> None: ...


class Link:
    """A Pool on Ray."""

    def __init__(
        self, options: ClusterOptions, cancelled: Callable[[], bool] = lambda: False
    ) -> None:
        """Connects; ClusterError if that fails, Cancelled if requested."""
        if importlib.util.find_spec("ray") is None:
            raise ClusterError(f"Ray is not installed: {INSTALL} (the same on each machine).")
        self.folder = make_folder()
        self._log = (self.folder / "ray.log").open("w+b")
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._process = _process(self._log)
        self._listener = threading.Thread(target=self._listen, name="ray link", daemon=True)
        self._listener.start()
        start = {"workers": options.workers, "cpus": options.cpus, "gpus": options.gpus}
        try:
            self.send("start", address=options.address, temp=str(self.folder), **start)
            self.ready = self._wait_until_ready(options.address, cancelled)
        except BaseException:
            self.close()
            raise

    def _wait_until_ready(self, address: str, cancelled: Callable[[], bool]) -> Event:
        reached, patience = False, START_S if address == LOCAL else ANSWER_S
        end = time.monotonic() + patience
        while (left := end - time.monotonic()) > 0:
            if cancelled():
                raise Cancelled("The run was cancelled before it was connected to Ray.")
            for event in self.events(min(left, LOOK_S)):
                if event["event"] == "ready":
                    return event
                if event["event"] in ("refused", "closed"):
                    raise ClusterError(str(event["reason"]))
                reached = reached or event["event"] == "reached"
        if address == LOCAL:
            raise ClusterError(f"Ray did not start on this machine within {patience:g} s.")
        raise ClusterError(_silent(address, reached, patience))

    def send(self, order: str, **more: Any) -> None:
        """Sends an order; if the process has ended, its last event says so."""
        line = json.dumps({"order": order, **more}) + "\n"
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()

    def events(self, timeout_s: float) -> list[Event]:
        found = []
        with contextlib.suppress(queue.Empty):
            found.append(self._events.get(timeout=max(0.0, timeout_s)))
            while True:
                found.append(self._events.get_nowait())
        return found

    def close(self) -> None:
        """Stops and removes everything that was started for the run."""
        process = self._process
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        try:
            process.wait(STOP_S if hasattr(self, "ready") else 1.0)
        except subprocess.TimeoutExpired:
            _kill(process)
        self._listener.join(1.0)
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _listen(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        with stream, contextlib.suppress(ValueError, OSError):
            for line in stream:
                self._events.put(json.loads(line))
        self._events.put({"event": "closed", "reason": self._closing_message()})

    def _closing_message(self) -> str:
        """Why the process has ended, from the last line of its log."""
        with contextlib.suppress(ValueError, OSError):
            self._log.seek(0)
            lines = self._log.read().decode(errors="replace").splitlines()
            last_line = next((line.strip() for line in reversed(lines) if line.strip()), "")
            reason = f" ({unlogged(last_line).rstrip('.')})" if last_line else ""
            return f"The connection to Ray has ended{reason}."
        return "The connection to Ray has ended."


def _silent(address: str, reached: bool, waited_s: float) -> str:
    """The message for a cluster that does not accept this process."""
    if address != AUTO and not reached:
        return (
            f"No Ray cluster answers at {address} within {waited_s:g} s: check the address, and "
            "that `ray start` runs there and on this machine."
        )
    where = f"Something listens at {address}, but no" if reached else "No"
    here = "that `ray start` runs on this machine" if address == AUTO else "the port"
    return (
        f"{where} Ray cluster accepts this run within {waited_s:g} s: check {here}, and that "
        "RAY_AUTH_MODE and the token (~/.ray/auth_token or RAY_AUTH_TOKEN) match the cluster's."
    )


def _process(log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Starts it in a new process session: only the driver gets Ctrl-C, and then closes its
    input."""
    path = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen(
        [sys.executable, "-m", "engine.benchmark.cluster.ray_process"],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
