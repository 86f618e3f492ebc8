"""An option that is described in RunOptions is everywhere where options are."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.made_up_option import PLACES


@pytest.mark.loads
def test_an_added_row_is_found_in_all_places() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.made_up_option"],
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.split() == [place.__name__ for place in PLACES]
