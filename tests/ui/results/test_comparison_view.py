"""The command of the view, and rows for its gate."""

from pathlib import Path
from typing import Any

import pytest

from engine.analysis import gate
from engine.analysis.gate import AnswersCompared
from engine.report import gate_text
from engine.storage.run_store import RunInfo
from tests import fabricate
from ui.results import comparison_view
from ui.results.opened_runs import Source

pytestmark = pytest.mark.loads


def source(name: str, **more: Any) -> Source:
    given = {"state": "finished", "created": "2026-01-01T10:00:00+00:00", "models": ("ev",)} | more
    return Source(RunInfo(name, Path("/runs") / name, **given))


def test_the_command_has_only_what_differs_from_the_defaults() -> None:
    sides = source("a"), source("b")
    assert comparison_view.gate_command(sides, gate.DEFAULT, 0.05) == "python -m engine gate a b"
    told = comparison_view.gate_command(sides, ("total", "answers"), 0.025)
    assert told == "python -m engine gate a b --metric total,answers --margin 2.5%"


def rows(slow: float = 1.0, n: int = 8) -> list[dict[str, Any]]:
    """n sequences of two models; the second is `slow` times as long."""
    found = []
    for index in range(n):
        for model, factor in (("ev", 1.0), ("vl", slow)):
            length = 8.0 * (1 + 0.01 * index) * factor
            stages = {name: ms * factor for name, ms in fabricate.STAGES.items()}
            found.append(
                fabricate.row(model, f"s{index}", prefill=length, stages=stages,
                              gaps=[2.0 * factor] * 3)
            )  # fmt: skip
    return found


def test_nothing_compared_is_not_called_equal() -> None:
    (words,) = gate_text.answers_of(AnswersCompared("ev", 0, (), 0, (), ()))
    assert words == "ev: no answer was compared: no sample has token ids in both."
