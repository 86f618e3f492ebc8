"""Two clocks read at one moment, CPU time, and a thread's wait for a core."""

import sys
from pathlib import Path

import pytest

from engine.machine import clocks


def test_what_is_not_known_stays_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "sunos")
    wait = clocks.ThreadWait()
    assert wait.ms() is None
    assert clocks.since(None, 3.0) is None and clocks.since(1.0, 3.0) == 2.0


def test_a_kernel_without_the_statistics_says_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(clocks, "_SCHEDSTAT", f"{tmp_path}/absent")
    assert clocks.ThreadWait().ms() is None
    (tmp_path / "odd").write_text("0")
    monkeypatch.setattr(clocks, "_SCHEDSTAT", f"{tmp_path}/odd")
    assert clocks.ThreadWait().ms() is None
