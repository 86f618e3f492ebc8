"""The engine on a pretended accelerator, in a process of its own: see tests/pretended/device.py."""

import os
import subprocess
import sys

import pytest

from engine import settings


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param("waiting and (eventgpt or control)", marks=pytest.mark.loads),
        pytest.param("", marks=pytest.mark.slow),
    ],
)
def test_the_engine_answers_alike_on_a_pretended_accelerator(chosen: str) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "--tb=short", "-k", chosen]
    done = subprocess.run(
        [*command, "tests/pretended"],
        cwd=settings.PROJECT,
        env=own | {"STAGESCOPE_PRETENDED": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
