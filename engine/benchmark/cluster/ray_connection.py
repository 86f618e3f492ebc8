"""Connects to Ray: the environment variables before its import, the connection, and its folder.

The folder has the log, and the files of a temporary local Ray on 127.0.0.1.  The process that uses
Ray holds the lock in it for its whole life.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.benchmark.cluster.cluster_options import AUTO, LOCAL, host_and_port
from engine.storage.file_lock import held

STORE_BYTES = 80 * 2**20  # for Ray's objects: rows and one serialized run
PROBE_S = 3.0
LOOK_S = 1.0  # between checks of the head node
LOST_S = 15.0  # the cluster is lost if its head is silent for so long
PREFIX = "stagescope-ray-"
LOCK = "lock"
STALE_S = 300.0  # Ray's processes may outlive a killed process by up to two minutes
# A base path of this length leaves enough of a socket path's 107 characters for Ray.
_ROOM = 18
Say = Callable[..., None]
# Time, process and position at the beginning of a line of Ray's log.
_LOGGED = re.compile(r"^\[[^\]]*\]\s*(\([^)]*\)\s*)?\S+:\d+:\s*")
_DETAIL, _ADVICE = "Worker exit detail:", "Some common causes"  # Ray's reason is between them


class Refused(Exception):
    """A sentence for the user."""


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
    if address == AUTO:
        return False
    host, port = host_and_port(address)
    if host not in ("127.0.0.1", "localhost"):
        return False
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; the system only chooses a local address
        own = probe.getsockname()[0]
        with contextlib.suppress(OSError), socket.create_connection((own, port), PROBE_S):
            return False
    return True


def probe(address: str) -> None:
    """Refused unless something listens at the address."""
    try:
        socket.create_connection(host_and_port(address), PROBE_S).close()
    except OSError as error:
        raise Refused(
            f"No Ray cluster answers at {address} ({error.strerror or error}): check the "
            "address, and that `ray start` runs there and on this machine."
        ) from error


def listens(address: str) -> bool:
    """Whether anything listens at HOST:PORT now."""
    with contextlib.suppress(OSError), socket.create_connection(host_and_port(address), PROBE_S):
        return True
    return False


def connect(start: dict[str, Any]) -> str:
    """Joins or starts a cluster; returns HOST:PORT of its head; Refused with Ray's reason."""
    address = start["address"]
    import ray

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
        if listens(head):
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


def unlogged(line: str) -> str:
    """The first sentence of a line of Ray's log or of its errors."""
    return _LOGGED.sub("", line).partition(". ")[0].strip()


def make_folder() -> Path:
    """Creates a folder, and removes abandoned ones."""
    base = _base()
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


def _base() -> Path:
    """A base folder that is short enough for Ray's socket paths."""
    usual = tempfile.gettempdir()
    return Path("/tmp" if len(usual) > _ROOM and Path("/tmp").is_dir() else usual)
