"""Every benchmark runs: each measures a little and keeps nothing."""

import importlib
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from benchmarks import machine
from benchmarks.__main__ import NAMES
from engine.media import decoding
from tests import tiny

ROOT = Path(__file__).resolve().parents[2]
OWN_COMMAND = ("app", "scaling", "loaded", "planted", "intervals", "attribution", "gate")
ROWS = [name for name in NAMES if name not in OWN_COMMAND]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("benchmarks")


NO_BENCHMARK = {"__main__", "table", "full_size", "paced", "mutants"}


def test_every_benchmark_is_in_the_list() -> None:
    commands = {
        path.stem
        for path in (ROOT / "benchmarks").glob("*.py")
        if 'if __name__ == "__main__"' in path.read_text(encoding="utf-8")
    }
    assert commands - NO_BENCHMARK == set(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_a_benchmark_gives_rows(name: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAGESCOPE_CACHE_DIR", str(cache))
    monkeypatch.setenv("STAGESCOPE_DEVICE", "cpu")
    monkeypatch.setenv("STAGESCOPE_MODELS", str(ROOT / "models.toml"))
    monkeypatch.setattr(decoding, "THREADS", decoding.THREADS)
    monkeypatch.setattr(machine, "keep", None)
    threads = torch.get_num_threads()
    try:
        rows = importlib.import_module(f"benchmarks.{name}").measure(True)
    finally:
        torch.set_num_threads(threads)
        tiny.unload_all()
    kinds = {"ratio", "median", "points_ms"}
    assert rows and all(row["what"] and len(kinds & set(row)) == 1 for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN_COMMAND)
def test_a_benchmark_with_a_command_of_its_own_runs(name: str, cache: Path) -> None:
    if name == "app" and not shutil.which("chromium"):
        pytest.skip("no Chromium")
    if name == "scaling" and find_spec("ray") is None:
        pytest.skip("no Ray")
    env = os.environ | {"STAGESCOPE_CACHE_DIR": str(cache), "STAGESCOPE_DEVICE": "cpu"}
    kept = {path: path.read_bytes() for path in machine.RESULTS.iterdir()}
    command = [sys.executable, "-m", "benchmarks", "--quick", name]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert {path: path.read_bytes() for path in machine.RESULTS.iterdir()} == kept
