"""A test that hangs ends alone, also where it hangs after it has failed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HANGS = """
import time, pytest

@pytest.fixture
def frozen():
    yield
    time.sleep(60)

def test_fails(frozen):
    assert False
"""


def run(folder: Path, within: float, *flags: str) -> subprocess.CompletedProcess[bytes]:
    (folder / "pytest.ini").write_text("[pytest]\nfaulthandler_timeout = 1\n")
    (folder / "test_hangs.py").write_text(HANGS)
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", *flags, str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, timeout=within)


@pytest.mark.loads
def test_a_test_that_hangs_after_its_failure_ends(tmp_path: Path) -> None:
    ended = run(tmp_path, 60, "-p", "tests.conftest")
    assert ended.returncode == 1 and b"Timeout" in ended.stderr and b"frozen" in ended.stderr


@pytest.mark.loads
def test_without_the_timer_it_goes_on(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run(tmp_path, 4)
