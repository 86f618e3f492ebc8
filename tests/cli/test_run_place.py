"""bench --executor ray: what is refused before anything runs, and where the address comes from."""

from pathlib import Path

import pytest

from engine import public
from engine.benchmark.cluster import ray_link, run_session
from engine.jobs.benchmark_job import BenchmarkJob
from tests import recordings
from tests.benchmark.cluster.pools import HerePool, one_thread
from tests.cli.conftest import Call, Refused

pytestmark = pytest.mark.loads

__all__ = ["one_thread"]


@pytest.fixture
def root(tmp_path: Path, tiny_models: Path, one_thread: None) -> Path:
    return recordings.root(tmp_path / "root")


def bench(root: Path, *more: str) -> list[str]:
    """A command line; its run goes into the folder run beside the dataset."""
    given = ["--dataset", str(root), "--models", "tiny-llava", "--max-new-tokens", "4"]
    return ["bench", *given, "--out", str(root.parent / "run"), *more]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--workers", "2"), "--workers needs --executor ray"),
        (("--address", "auto"), "--address needs --executor ray"),
        (("--per-worker", "cpus=1"), "--per-worker needs --executor ray"),
        (("--executor", "ray", "--workers", "0"), "workers is 0"),
        (("--executor", "ray", "--per-worker", "cores=2"), "--per-worker is 'cores=2'"),
        (("--executor", "ray", "--address", "head"), "The Ray address is 'head'"),
        (("--executor", "ray", "--order", "interleaved"), "Models cannot take turns"),
        (("--executor", "ray", "--batch", "2"), "batch is 2, but on a cluster each sample"),
    ],
)
def test_bad_input_is_one_sentence_before_anything_runs(
    root: Path, refused: Refused, arguments: tuple[str, ...], words: str
) -> None:
    assert words in refused(*bench(root, *arguments)) and not (root.parent / "run").exists()


def test_without_ray_it_says_how_to_get_it(
    root: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_link.importlib.util, "find_spec", lambda _: None)
    code, _, err = call(*bench(root, "--executor", "ray"))
    assert code == 2 and "Ray is not installed: pip install ray" in err
    assert not (root.parent / "run").exists()


def test_a_run_and_its_resumption(root: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_session, "TICK_S", 0.0)
    monkeypatch.setattr(run_session, "Link", lambda *_: HerePool({"x": "n"}))
    assert call(*bench(root, "--executor", "ray"))[0] == 0
    code, out, _ = call("bench", "--resume", root.parent / "run", "--executor", "ray")
    assert code == 0 and "tiny-llava: 4 of 4 results answered" in out


def test_a_stopped_run_is_resumed_on_its_cluster(
    root: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = root.parent / "run"

    def stopped(job: BenchmarkJob, _: object) -> None:
        job.folder = folder
        raise KeyboardInterrupt

    monkeypatch.setattr(public, "ran", stopped)
    command = bench(root, "--executor", "ray", "--workers", "2")
    assert call(*command)[::2] == (130, "Stopped.\n")  # before the run's folder was made
    folder.mkdir()
    (folder / "run.json").touch()
    code, _, err = call(*command)
    words = f"bench --resume {folder} --executor ray --address local --workers 2"
    assert code == 130 and words in err
