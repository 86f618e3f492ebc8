"""Runs on a real Ray: two nodes as processes on this machine, loopback only, with their faults."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.__main__ import main
from engine.benchmark import execute
from engine.benchmark.cluster import ray_link
from engine.benchmark.cluster.ray_link import ClusterOptions
from engine.benchmark.cluster.run_session import ClusterExecutor
from engine.errors import ClusterError
from engine.media import dataset
from engine.pipeline import Watcher
from engine.storage import run_store
from engine.storage.plan import Plan
from engine.types import DecodeConfig
from tests import recordings
from tests.benchmark.cluster.test_run_session import notes, rows, tokens, whole

ROOT = Path(__file__).resolve().parents[3]
MODELS = ("tiny-llava", "tiny-eventgpt")
pytestmark = [
    pytest.mark.loads,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="Ray is not installed (pip install ray)",
    ),
    pytest.mark.skipif(sys.platform != "linux", reason="nodes on one machine need Linux"),
]


@dataclass
class Cluster:
    """Two nodes at most: a head that stays, and a second one."""

    address: str
    folder: Path
    process: subprocess.Popen[str]

    def add(self) -> None:
        """A second node, in place of the one that is there."""
        self._say("add")

    def kill(self) -> None:
        self._say("kill")

    def _say(self, order: str) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().strip() == "done"


@pytest.fixture(scope="module")
def cluster(tiny_folder: Path) -> Iterator[Cluster]:
    """Ray's sockets need a short folder; its token is the cluster's own."""
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    (folder / "ray").mkdir()
    variables = {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_TMPDIR": str(folder),
        "RAY_health_check_initial_delay_ms": "0",
        "RAY_health_check_period_ms": "300",
        "RAY_health_check_failure_threshold": "4",
        "STAGESCOPE_MODELS": str(tiny_folder / "models.toml"),
        "STAGESCOPE_CACHE_DIR": str(folder / "cache"),
        "STAGESCOPE_DEVICE": "cpu",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    with pytest.MonkeyPatch.context() as patch, (folder / "log").open("w") as log:
        for name, value in variables.items():
            patch.setenv(name, value)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmark.cluster.nodes"],
            cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
        assert process.stdout and process.stdin
        address = process.stdout.readline().strip()
        assert address, (folder / "log").read_text()
        yield Cluster(address, folder, process)
        process.stdin.close()
        process.wait(60)
        process.stdout.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def root(tmp_path: Path, tiny_models: Path) -> Path:
    return recordings.root(tmp_path / "root")


def ready(root: Path, folder: Path, tokens: int = 4, **more: Any) -> execute.Ready:
    samples = tuple(sample.id for sample in dataset.read(root).samples)
    forced = DecodeConfig(max_new_tokens=tokens, min_new_tokens=tokens)
    plan = Plan(**({"models": MODELS, "samples": samples, "decode": forced} | more))
    return execute.prepare(plan, dataset.read(root), folder)


def on_ray(found: execute.Ready, address: str, watcher: Watcher | None = None) -> run_store.Run:
    with found.writer, ClusterExecutor(ClusterOptions(address)) as executor:
        found.run(watcher, executor)
    return run_store.read(found.writer.folder)


@dataclass
class Trouble(Watcher):
    """Does something when so many measured results are there, each once."""

    folder: Path
    troubles: list[tuple[int, Callable[[list[dict[str, Any]]], None]]]

    def give_way(self) -> float:
        found = rows(run_store.read(self.folder))
        if self.troubles and len(found) >= self.troubles[0][0]:
            self.troubles.pop(0)[1](found)
        return 0.0


@pytest.mark.slow
def test_an_actor_killed_and_a_node_that_leaves_cost_nothing(
    cluster: Cluster, root: Path, tmp_path: Path
) -> None:
    cluster.add()
    here = ready(root, tmp_path / "here", 40, repeat=4)
    with here.writer:
        here.run()

    def kill(found: list[dict[str, Any]]) -> None:
        os.kill(found[-1]["where"]["pid"], signal.SIGKILL)

    there = ready(root, tmp_path / "there", 40, repeat=4)
    trouble = Trouble(tmp_path / "there", [(3, kill), (14, lambda _: cluster.kill())])
    run = on_ray(there, cluster.address, trouble)
    assert run.state == "finished" and not trouble.troubles
    assert not any(row["error"] for row in whole(run, 32))
    assert tokens(run) == tokens(run_store.read(tmp_path / "here"))  # row by row
    assert "has ended: its process on node " in notes(run)
    assert "has left the cluster" in notes(run)
    actors = {(row["where"]["actor"], row["model"]) for row in rows(run)}
    warmed = {(row["where"]["actor"], row["model"]) for row in rows(run, "warmup")}
    assert actors <= warmed and len({row["where"]["node"] for row in rows(run)}) == 2
    states = [worker.state for worker in there.tracker.view().workers]
    assert sum("ended" in state for state in states) >= 2


@dataclass
class Joined(Watcher):
    """Adds a second node after two results and holds the driver back until it has given one."""

    folder: Path
    join: Callable[[], None]
    joined: bool = False

    def give_way(self) -> float:
        found = rows(run_store.read(self.folder))
        if len(found) >= 2 and not self.joined:
            self.joined = True
            self.join()
        if len({row["where"]["node"] for row in found}) == 1:
            time.sleep(0.5)
        return 0.0


@pytest.mark.slow
def test_a_node_that_joins_later_takes_its_share(
    cluster: Cluster, root: Path, tmp_path: Path
) -> None:
    cluster.kill()

    found = ready(root, tmp_path / "run", 20, models=MODELS[:1], repeat=20)
    run = on_ray(found, cluster.address, Joined(tmp_path / "run", cluster.add))
    assert run.state == "finished" and not any(row["error"] for row in whole(run, 80))
    assert len({row["where"]["node"] for row in rows(run)}) == 2
    first = rows(run)[0]["where"]
    assert first["shares"] == [] and {"device"} <= set(rows(run)[-1]["where"]["shares"])


@pytest.mark.slow
def test_a_driver_killed_with_9_goes_on_there_and_here(
    cluster: Cluster, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.kill()
    folder = tmp_path / "run"
    plan = ["--models", "tiny-llava", "--length", "forced:60", "--repeat", "8"]
    there = ["--executor", "ray", "--address", cluster.address]
    command = ["bench", "--dataset", str(root), *plan, "--out", str(folder), *there]
    driver(command, folder, 4)
    kept = list(run_store.read(folder).results())

    class Stop(Watcher):
        def cancelled(self) -> bool:
            return len(list(run_store.read(folder).results())) >= len(kept) + 4

    assert on_ray(execute.resume(folder), cluster.address, Stop()).state == "stopped"
    more = list(run_store.read(folder).results())
    assert more[: len(kept)] == kept and len(more) < 32
    assert main(["bench", "--resume", str(folder), "--json"]) == 0
    run = run_store.read(folder)
    assert {("where" in row) for row in whole(run, 32)} == {True, False}
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert sum(count["answered"] for count in counts) == 32


def driver(command: list[str], folder: Path, results: int) -> None:
    """A run in a process of its own, killed when so many lines are there."""
    child = subprocess.Popen(
        [sys.executable, "-m", "engine", *command], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    try:
        end = time.monotonic() + 120
        while kept_in(folder) < results:
            assert child.poll() is None and time.monotonic() < end
            time.sleep(0.01)
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()


def kept_in(folder: Path) -> int:
    path = folder / run_store.RESULTS
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.slow
def test_a_ray_of_its_own_is_started_and_stopped(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    seen: set[str] = set()
    folders: list[Path] = []

    class Look(Watcher):
        def give_way(self) -> float:
            seen.update(listening(folders[0]))
            return 0.0

    found = ready(root, tmp_path / "run", models=MODELS[:1])
    with found.writer, ClusterExecutor(ClusterOptions(workers=1)) as executor:
        folders.append(executor._link.folder)  # type: ignore[attr-defined]
        found.run(Look(), executor)
    assert len(whole(run_store.read(tmp_path / "run"), 4)) == 4
    assert seen and seen <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
    assert not folders[0].exists() and not processes(folders[0])
    assert not (Path.home() / ".ray" / "auth_token").exists() or "RAY_AUTH_TOKEN" in os.environ


def processes(folder: Path) -> list[psutil.Process]:
    """Those that name the folder in their command line."""
    found = psutil.process_iter(["cmdline"])
    return [one for one in found if any(str(folder) in part for part in one.info["cmdline"] or [])]


def listening(folder: Path) -> set[str]:
    addresses = set()
    for process in processes(folder):
        try:
            addresses |= {c.laddr.ip for c in process.net_connections() if c.status == "LISTEN"}
        except psutil.Error:  # it has ended meanwhile
            continue
    return addresses


def test_an_address_where_nothing_listens_and_one_that_never_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"No Ray cluster answers at {address} .*refused"):
            ClusterExecutor(ClusterOptions(address))
        silent.listen()
        monkeypatch.setattr(ray_link, "ANSWER_S", 2.0)
        with pytest.raises(
            ClusterError, match=rf"No Ray cluster \({address}\) accepts .* within 2 s: .*token"
        ):
            ClusterExecutor(ClusterOptions(address))
