"""A test that hangs ends alone, also where it hangs after it has failed."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HANGS = """
import pathlib, time, pytest

@pytest.fixture
def frozen():
    yield
    pathlib.Path(__file__).with_name("frozen").touch()
    time.sleep(120)

def test_fails(frozen):
    assert False
"""


def start(folder: Path, *flags: str) -> subprocess.Popen[bytes]:
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\nfaulthandler_timeout = 1\n")
    (folder / "test_hangs.py").write_text(HANGS)
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", *flags, str(folder)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


@pytest.mark.loads
def test_a_test_that_hangs_after_its_failure_ends_and_without_the_timer_goes_on(
    tmp_path: Path,
) -> None:
    control = start(tmp_path / "control")
    try:
        end = time.monotonic() + 60
        while not (tmp_path / "control" / "frozen").exists():
            assert control.poll() is None and time.monotonic() < end
            time.sleep(0.01)
        timed = start(tmp_path / "timed", "-p", "tests.conftest")
        try:
            _, told = timed.communicate(timeout=60)
        finally:
            timed.kill()
        assert timed.returncode == 1 and b"Timeout" in told and b"frozen" in told
        assert control.poll() is None  # it hung before the other one began
    finally:
        control.kill()
        control.communicate()
