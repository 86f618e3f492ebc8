"""Runs on workers of this process: equal answers, and what becomes of every kind of failure."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from engine.benchmark import execute
from engine.benchmark.cluster import run_session as executors
from engine.benchmark.cluster.ray_link import ClusterOptions
from engine.benchmark.cluster.run_session import ClusterExecutor
from engine.benchmark.cluster.workers import MOST_DEATHS
from engine.errors import BadInput, ClusterError
from engine.media import dataset
from engine.pipeline import Watcher
from engine.storage import run_store
from engine.storage.run_store import Run
from tests import fabricate, recordings
from tests.benchmark.cluster.pools import HerePool, Killed, one_thread
from tests.benchmark.test_execute import Looks, full_disk, plan, rows
from tests.tiny import unload_all

pytestmark = pytest.mark.loads

__all__ = ["one_thread"]
MODELS = ("tiny-llava", "tiny-eventgpt")
TWO = {"x": "n1", "y": "n2"}


@pytest.fixture
def root(
    tmp_path: Path, tiny_models: Path, one_thread: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    monkeypatch.setattr(executors, "TICK_S", 0.0)
    monkeypatch.setattr(executors, "PATIENCE_S", 0.05)
    yield recordings.root(tmp_path / "root")
    unload_all()


def killing(sample: str, reason: str = "") -> Any:
    """Ends each worker that is asked for this sample."""

    def spoil(worker: str, method: str, arguments: list[Any], value: Any) -> Any:
        if method == "ask" and arguments[1] == sample:
            raise Killed(reason)
        return value

    return spoil


def unloadable(workers: str = "xy", models: Iterable[str] = MODELS) -> Any:
    """These workers cannot load these models."""

    def spoil(worker: str, method: str, arguments: list[Any], value: Any) -> Any:
        if worker in workers and method == "ask" and arguments[0] in models:
            return {"unloadable": f"{arguments[0]} does not fit."}
        return value

    return spoil


class Lines(Watcher):
    """Keeps what a user sees at each look; the view is made at once."""

    def __init__(self, ready: execute.RunSession, patch: pytest.MonkeyPatch) -> None:
        self.ready, self.said = ready, list[str]()
        patch.setattr(executors, "SHOWN_S", 0.0)

    def give_way(self) -> float:
        self.said.append(self.ready.tracker.view().current)
        return 0.0


def go(root: Path, folder: Path, pool: HerePool | None = None, **more: Any) -> Run:
    elsewhere = pool is not None
    ready = execute.prepare(plan(root, **more), dataset.read(root), folder, elsewhere)
    return finish(ready, folder, pool)


def linked(pool: HerePool) -> Any:
    return mock.patch.object(executors, "Link", lambda *_: pool)


def finish(
    ready: execute.RunSession,
    folder: Path,
    pool: HerePool | None,
    watcher: Watcher | None = None,
    outcome: str = "finished",
) -> Run:
    with ready.writer:
        if pool is None:
            assert ready.run(watcher) == outcome
        else:
            with linked(pool), ClusterExecutor(ClusterOptions()) as executor:
                assert ready.run(watcher, executor) == outcome
            assert pool.closed
    return run_store.read(folder)


def whole(run: Run, count: int) -> list[dict[str, Any]]:
    """The measured rows: none lost, none doubled."""
    found = rows(run)
    assert len({fabricate.task(row) for row in found}) == len(found) == count
    return found


def notes(run: Run) -> str:
    return "\n".join(str(entry["text"]) for entry in run.journal)


def tokens(run: Run) -> dict[Any, list[int]]:
    return {fabricate.task(row): row["token_ids"] for row in rows(run)}


def test_the_answers_are_those_of_a_local_run_row_by_row(root: Path, tmp_path: Path) -> None:
    here = go(root, tmp_path / "here", models=MODELS, repeat=2)
    there = go(root, tmp_path / "there", HerePool(TWO), models=MODELS, repeat=2)
    assert tokens(here) == tokens(there) and there.state == "finished"
    found = whole(there, 16)
    assert {row["where"]["actor"] for row in found} == {"x", "y"}
    assert {row["where"]["node"] for row in found} == {"n1", "n2"}
    for mine, row in zip(rows(here), found, strict=True):
        assert set(mine) <= set(row), set(mine) - set(row)


def test_a_worker_that_is_killed_loses_and_doubles_nothing(root: Path, tmp_path: Path) -> None:
    asked = []

    def kill(worker: str, method: str, arguments: list[Any], value: Any) -> Any:
        asked.extend([1] if worker == "x" and method == "ask" else [])
        if worker == "x" and len(asked) == 2:
            raise Killed("SIGKILL")
        return value

    run = go(root, tmp_path / "run", HerePool(TWO | {"y": "n1"}, kill, 1), warmup=0, repeat=3)
    assert not any(row["error"] for row in whole(run, 12))
    assert "Worker x has ended: its process on node n1 has ended (SIGKILL)" in notes(run)
    assert "of its tasks run elsewhere" in notes(run) and run.state == "finished"


def test_a_sample_that_ends_every_worker_fails_alone(root: Path, tmp_path: Path) -> None:
    pool = HerePool({"x": "n"}, killing("id-2", "out of memory"), 9)
    found = whole(go(root, tmp_path / "run", pool, warmup=0), 4)
    failed = [row for row in found if row["error"]]
    assert [row["sample"] for row in failed] == ["id-2"]
    assert f"{MOST_DEATHS} workers have ended on this sample" in failed[0]["error"]
    assert "out of memory" in failed[0]["error"] and "total_ms" not in failed[0]


def test_a_run_without_workers_stops_and_can_be_resumed_here(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(ClusterError, match=r"No worker is left: node n has left.*--resume"):
        go(root, folder, HerePool({"x": "n"}, killing("id-2")))
    assert run_store.read(folder).state == "stopped" and len(rows(run_store.read(folder))) == 2
    run = finish(execute.resume(folder), folder, None)
    assert run.state == "finished" and not any(row["error"] for row in whole(run, 4))


def test_a_model_that_one_node_cannot_load_runs_on_another(root: Path, tmp_path: Path) -> None:
    pool = HerePool(TWO, unloadable("x", MODELS[1:]))
    run = go(root, tmp_path / "run", pool, models=MODELS)
    found = whole(run, 8)
    assert {row["where"]["actor"] for row in found if row["model"] == "tiny-eventgpt"} == {"y"}
    assert "Tiny eventgpt runs elsewhere. Node n1: tiny-eventgpt does not fit." in notes(run)
    assert run.state == "finished" and "given up" not in notes(run)


def test_a_node_that_can_load_nothing_shares_nothing(root: Path, tmp_path: Path) -> None:
    run = go(root, tmp_path / "run", HerePool(TWO, unloadable("x")), repeat=3)
    last = whole(run, 12)[-1]
    assert last["where"]["actor"] == "y" and last["where"]["shares"] == []


def test_a_model_that_no_node_can_load_is_given_up(root: Path, tmp_path: Path) -> None:
    pool = HerePool(TWO, unloadable(models=MODELS[:1]))
    run = go(root, tmp_path / "run", pool, models=MODELS)
    assert {row["model"] for row in whole(run, 4)} == {"tiny-eventgpt"}
    assert "tiny-llava was given up: Node n" in notes(run) and "does not fit" in notes(run)


def test_failures_in_a_row_give_a_model_up_here_too(tmp_path: Path, root: Path) -> None:
    broken = recordings.root(tmp_path / "broken", 8, broken=range(8))
    run = go(broken, tmp_path / "run", HerePool(TWO), stop_after=2, warmup=0)
    assert 2 <= len(rows(run)) < 8 and "2 failures in a row" in notes(run)


def test_records_that_lack_what_a_model_needs_ask_no_worker(root: Path, tmp_path: Path) -> None:
    for frame_ in (root / "video" / "q2" / "000000").iterdir():
        frame_.unlink()
    pool = HerePool(TWO)
    found = whole(go(root, tmp_path / "run", pool), 4)
    assert [row["sample"] for row in found if row["error"]] == ["id-2"]
    assert all(arguments[1:2] != ["id-2"] for _, _, arguments in pool.asked)


def lacking(*samples: int) -> Any:
    """A node n1 on which some samples are not there."""

    def spoil(worker: str, method: str, arguments: list[Any], value: Any) -> Any:
        if worker == "x" and method == "begin":
            holds = value["holds"]["samples"]
            value["holds"]["samples"] = [
                None if number in samples else digest for number, digest in enumerate(holds)
            ]
        if worker == "x" and method == "ask" and int(arguments[1].partition("-")[2]) in samples:
            return {"absent": f"files of sample {arguments[1]} are not on this node"}
        return value

    return spoil


def test_samples_on_no_node_stop_the_run(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    why = (
        r"No remaining worker can compute 1 results of tiny-llava \(Node n1: files of sample id-3 "
    )
    with pytest.raises(ClusterError, match=why):
        go(root, folder, HerePool({"x": "n1"}, lacking(3)))
    assert len(rows(run_store.read(folder))) == 3
    assert len(whole(finish(execute.resume(folder), folder, None), 4)) == 4


def test_a_node_without_the_dataset_answers_nothing(root: Path, tmp_path: Path) -> None:
    run = go(root, tmp_path / "run", HerePool(TWO, lacking(0, 1, 2, 3)))
    assert {row["where"]["actor"] for row in whole(run, 4)} == {"y"}


@pytest.mark.parametrize("what", ["code", "library", "checkpoint", "dtype", "sample"])
def test_nodes_that_differ_are_refused_by_digest(root: Path, tmp_path: Path, what: str) -> None:
    def differ(worker: str, method: str, arguments: list[Any], value: Any) -> Any:
        if worker == "y" and method == "begin":
            holds = value["holds"]
            if what in ("code", "library"):
                holds["code"] = "0" * 32
            if what == "library":
                holds["versions"]["torch"] = "0.1"
            if what in ("checkpoint", "dtype"):
                holds["models"]["tiny-llava"]["digest" if what == "checkpoint" else "dtype"] = (
                    "other"
                )
            if what == "sample":
                holds["samples"][1] = "0" * 16
        return value

    words = {
        "code": "another digest of the engine's code",
        "library": r"its libraries \(torch 0.1 not ",
        "checkpoint": "another checkpoint or dtype of tiny-llava",
        "dtype": "another checkpoint or dtype of tiny-llava",
        "sample": "other samples in .*, 1 of 4, the first is 'id-1'",
    }
    with pytest.raises(ClusterError, match=f"Node n2 .*{words[what]}") as caught:
        go(root, tmp_path / "run", HerePool(TWO, differ))
    assert str(caught.value).count(". ") == 0 and not rows(run_store.read(tmp_path / "run"))


def test_a_full_disk_at_the_driver_keeps_its_rows(root: Path, tmp_path: Path) -> None:
    folder, pool = tmp_path / "run", HerePool(TWO)
    with full_disk():
        go(root, folder, pool)
    assert pool.closed and len(rows(run_store.read(folder))) == 2
    assert len(whole(finish(execute.resume(folder), folder, HerePool(TWO)), 4)) == 4


def test_a_pause_marks_rows_of_this_machine(root: Path, tmp_path: Path) -> None:
    folder, watcher = tmp_path / "run", Looks(17, lend=12)
    ready = execute.prepare(plan(root, repeat=9), dataset.read(root), folder)
    found = rows(finish(ready, folder, HerePool({"x": "n"}), watcher, "cancelled"))
    assert 1 <= sum(row["paused_ms"] == 25.0 for row in found) <= 2 < len(found) < 36


def test_the_workers_are_in_view(root: Path, tmp_path: Path) -> None:
    def kill(worker: str, method: str, arguments: list[Any], value: Any) -> Any:
        if worker == "x" and method == "ask":
            raise Killed
        return value

    ready = execute.prepare(plan(root), dataset.read(root), tmp_path / "run")
    finish(ready, tmp_path / "run", HerePool(TWO, kill))
    gone, here = ready.tracker.view().workers
    assert gone.id == "x" and gone.state == "ended: node n1 has left the cluster"
    assert gone.ended and gone.per_s is None
    assert here.done == 4 and here.state == "released" and here.ended
    assert here.device["name"] == "cpu" and here.node == "n2"


def test_more_workers_than_devices_are_refused_and_the_link_is_closed(root: Path) -> None:
    pool = HerePool(TWO)
    match = "3 workers are more than the cluster's 2 devices"
    with linked(pool), pytest.raises(ClusterError, match=match):
        ClusterExecutor(ClusterOptions(workers=3))
    assert pool.closed


def test_models_by_turns_are_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot take turns on a cluster"):
        go(root, tmp_path / "run", HerePool(TWO), models=MODELS, order="interleaved")


def test_a_lost_connection_is_a_sentence(root: Path, tmp_path: Path) -> None:
    class Lost(HerePool):
        def events(self, timeout_s: float) -> list[Any]:
            return super().events(timeout_s) or [{"event": "closed", "reason": "Ray has gone."}]

    def hang(worker: str, method: str, arguments: list[Any], value: Any) -> Any:
        if method == "ask":
            pool.queue.append({"event": "closed", "reason": "Ray has gone."})
        return value

    pool = Lost(TWO, hang)
    with pytest.raises(ClusterError, match=r"Ray has gone\. All answers are saved"):
        go(root, tmp_path / "run", pool)


def test_a_busy_cluster_is_waited_for_and_reported(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "WAITED_S", 0.0)

    class Busy(HerePool):
        def call(self, worker: str, method: str, arguments: Iterable[Any] = ()) -> None:
            if worker != "y":
                super().call(worker, method, arguments)

    ready = execute.prepare(plan(root), dataset.read(root), tmp_path / "run")
    lines = Lines(ready, monkeypatch)
    run = finish(ready, tmp_path / "run", Busy(TWO), lines)
    assert {row["where"]["actor"] for row in whole(run, 4)} == {"x"}
    assert notes(run).count("has waited 0 s for a device of node n2 (::1): other work may") == 1
    assert "1 worker at work, 1 worker waiting for a device" in lines.said


def test_a_head_that_does_not_answer_is_shown_at_once(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(worker: str, method: str, arguments: list[Any], value: Any) -> Any:
        if method == "ask" and arguments[1] in ("id-0", "id-1"):
            lost = arguments[1] == "id-0"
            pool.queue.append({"event": "head", "trouble": "the head is gone" if lost else ""})
        return value

    pool = HerePool({"x": "n1"}, lose)
    ready = execute.prepare(plan(root, warmup=0), dataset.read(root), tmp_path / "run")
    lines = Lines(ready, monkeypatch)
    finish(ready, tmp_path / "run", pool, lines)
    assert "1 worker at work; the head is gone" in lines.said
    assert lines.said[-1] == "1 worker at work"
