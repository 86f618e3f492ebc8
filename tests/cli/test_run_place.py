"""bench --executor ray: what is refused before anything runs, and where the address comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import public
from engine.__main__ import main
from engine.benchmark.cluster import ray_link, run_session
from engine.benchmark.cluster.cluster_options import ClusterOptions
from engine.errors import ClusterError
from engine.jobs.benchmark_job import BenchmarkJob
from tests import recordings
from tests.benchmark.cluster.pools import HerePool, one_thread

pytestmark = pytest.mark.loads

__all__ = ["one_thread"]


@pytest.fixture
def root(tmp_path: Path, tiny_models: Path, one_thread: None) -> Path:
    return recordings.root(tmp_path / "root")


def bench(root: Path, *more: str) -> int:
    given = ["--dataset", str(root), "--models", "tiny-llava", "--max-new-tokens", "4"]
    return main(["bench", *given, "--out", str(root.parent / "run"), *more])


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
        (("--executor", "ray", "--batch", "2"), "batch is 2: on a cluster each sample runs by"),
    ],
)
def test_bad_input_is_one_sentence_before_anything_runs(
    root: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert bench(root, *arguments) == 2
    err = capsys.readouterr().err
    assert words in err and err.strip().count("\n") == 0 and not (root.parent / "run").exists()


def test_without_ray_it_says_how_to_get_it(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_link.importlib.util, "find_spec", lambda _: None)
    assert bench(root, "--executor", "ray") == 2
    assert "Ray is not installed: pip install ray" in capsys.readouterr().err
    assert not (root.parent / "run").exists()


@pytest.mark.parametrize(
    ("setting", "flag", "address"),
    [("", (), "local"), ("head:1", (), "head:1"), ("head:1", ("--address", "auto"), "auto")],
)
def test_the_address_is_the_flags_or_the_settings_or_a_ray_of_its_own(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    flag: tuple[str, ...],
    address: str,
) -> None:
    asked: list[ClusterOptions] = []

    def connect(options: ClusterOptions, _: object) -> HerePool:
        asked.append(options)
        raise ClusterError("not today")

    monkeypatch.setenv("STAGESCOPE_RAY_ADDRESS", setting)
    monkeypatch.setattr(run_session, "Link", connect)
    assert bench(root, "--executor", "ray", "--per-worker", "cpus=2,gpus=0", *flag) == 2
    assert asked == [ClusterOptions(address, None, 2, 0.0)]


def test_a_run_and_its_resumption(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_session, "TICK_S", 0.0)
    monkeypatch.setattr(run_session, "Link", lambda *_: HerePool({"x": "n"}))
    assert bench(root, "--executor", "ray") == 0
    assert main(["bench", "--resume", str(root.parent / "run"), "--executor", "ray"]) == 0
    assert "tiny-llava: 4 of 4 results answered" in capsys.readouterr().out


def test_a_stopped_run_is_resumed_on_its_cluster(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = root.parent / "run"

    def stopped(job: BenchmarkJob, _: object) -> None:
        job.folder = folder
        raise KeyboardInterrupt

    monkeypatch.setattr(public, "ran", stopped)
    assert bench(root, "--executor", "ray", "--workers", "2") == 130
    words = f"bench --resume {folder} --executor ray --address local --workers 2"
    assert words in capsys.readouterr().err
