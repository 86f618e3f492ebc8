"""The link to Ray: a separate process that uses Ray, and JSON lines to and from it.

Ray ends its driver's process when the cluster is lost, needs environment variables before its
import, and prints freely.  The separate process keeps all of that away from the app and the command
line.  When this side ends, the other one finds its input closed and stops everything it started.
Both use one folder: it has the log, the lock that the process holds for its whole life, and the
files of a temporary local Ray on 127.0.0.1.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.benchmark.cluster.cluster_options import AUTO, LOCAL, ClusterOptions
from engine.errors import Cancelled, ClusterError
from engine.settings import PROJECT
from engine.storage.file_lock import held

Event = dict[str, Any]
ANSWER_S = 10.0  # a running cluster answers within this time
START_S = 90.0  # for a local Ray on a busy machine
STOP_S = 20.0
LOOK_S = 0.2  # delay until a Cancel is noticed
PREFIX = "stagescope-ray-"
LOCK = "lock"
STALE_S = 300.0  # Ray's processes may outlive a killed process by up to two minutes
# A base path of this length leaves enough of a socket path's 107 characters for Ray.
_ROOM = 18
# Time, process and position at the beginning of a line of Ray's log.
_LOGGED = re.compile(r"^\[[^\]]*\]\s*(\([^)]*\)\s*)?\S+:\d+:\s*")


class Link:
    """Workers on Ray: takes orders and returns events, both JSON objects."""

    def __init__(
        self, options: ClusterOptions, cancelled: Callable[[], bool] = lambda: False
    ) -> None:
        """Connects; ClusterError if that fails, Cancelled if requested."""
        if importlib.util.find_spec("ray") is None:
            raise ClusterError(
                "Ray is not installed: pip install -r requirements-ray.txt (the same on each "
                "machine)."
            )
        self.folder = make_folder()
        self._log = (self.folder / "ray.log").open("w+b")
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._stop_s = 1.0
        path = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH", "")]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "engine.benchmark.cluster.ray_process"],
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,  # only the driver gets Ctrl-C, and then closes its input
        )
        self._listener = threading.Thread(target=self._listen, name="ray link", daemon=True)
        self._listener.start()
        start = {"workers": options.workers, "cpus": options.cpus, "gpus": options.gpus}
        try:
            self.send("start", address=options.address, temp=str(self.folder), **start)
            self._wait_until_ready(options.address, cancelled)
        except BaseException:
            self.close()
            raise
        self._stop_s = STOP_S

    def _wait_until_ready(self, address: str, cancelled: Callable[[], bool]) -> None:
        reached, patience = False, START_S if address == LOCAL else ANSWER_S
        end = time.monotonic() + patience
        while (left := end - time.monotonic()) > 0:
            if cancelled():
                raise Cancelled("The run was cancelled before it was connected to Ray.")
            for event in self.events(min(left, LOOK_S)):
                if event["event"] == "ready":
                    return
                if event["event"] in ("refused", "closed"):
                    raise ClusterError(str(event["reason"]))
                reached = reached or event["event"] == "reached"
        if address == LOCAL:
            raise ClusterError(f"Ray did not start on this machine within {patience:g} s.")
        if address != AUTO and not reached:
            raise ClusterError(
                f"No Ray cluster answers at {address} within {patience:g} s: check the address, "
                "and that `ray start` runs there and on this machine."
            )
        where = f"Something listens at {address}, but no" if reached else "No"
        here = "that `ray start` runs on this machine" if address == AUTO else "the port"
        raise ClusterError(
            f"{where} Ray cluster accepts this run within {patience:g} s: check {here}, and that "
            "RAY_AUTH_MODE and the token (~/.ray/auth_token or RAY_AUTH_TOKEN) match the cluster's."
        )

    def send(self, order: str, **more: Any) -> None:
        """Sends an order; if the process has ended, its last event says so."""
        line = json.dumps({"order": order, **more}) + "\n"
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
        """Stops and removes everything that was started for the run."""
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
            lines = self._log.read().decode(errors="replace").splitlines()
            last_line = next((line.strip() for line in reversed(lines) if line.strip()), "")
            reason = f" ({unlogged(last_line).rstrip('.')})" if last_line else ""
        closed = f"The connection to Ray has ended{reason}."
        self._events.put({"event": "closed", "reason": closed})


def unlogged(line: str) -> str:
    """The first sentence of a line of Ray's log or of its errors."""
    return _LOGGED.sub("", line).partition(". ")[0].strip()


def make_folder() -> Path:
    """Creates a folder, short enough for Ray's socket paths, and removes abandoned ones."""
    usual = tempfile.gettempdir()
    base = Path("/tmp" if len(usual) > _ROOM and Path("/tmp").is_dir() else usual)
    sweep_folders(base)
    return Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))


def sweep_folders(base: Path) -> None:
    """Removes this user's folders whose process was killed."""
    latest = time.time() - STALE_S
    for folder in base.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            about = folder.lstat()
            mine = sys.platform == "win32" or about.st_uid == os.getuid()
            if mine and about.st_mtime < latest and not held(folder / LOCK):
                shutil.rmtree(folder, ignore_errors=True)
