"""The tables of kept figures: their order, their cells, and the page that shows them."""

import json
from pathlib import Path
from typing import Any

from benchmarks import machine, table
from benchmarks.machine import RESULTS

ROW = {"what": "own loop", "against": "generate()", "ratio": 1.5}
MACHINE = {"processor": "EPYC", "cores": 2}


def keep(folder: Path, name: str, **content: Any) -> None:
    kept = {"measured": "2026-01-01", "machine": MACHINE, **content}
    (folder / f"{name}.json").write_text(json.dumps(kept))


def test_the_kept_tables_are_current() -> None:
    shown = table.PAGE.read_text(encoding="utf-8")
    assert shown == table.everything(RESULTS), "python -m benchmarks.table --write"


def test_a_ratio_is_that_of_the_same_turn() -> None:
    times = {"own": [1.0, 2.0, 4.0], "a": [2.0, 2.0, 12.0], "b": [1.0, 2.0, 4.0]}
    first, second = machine.rows("x", times, {"a": 1.5})
    assert (first["against"], first["ratio"], first["target"]) == ("a", 2.0, 1.5)
    assert (first["min"], first["max"], first["own_ms"], first["other_ms"]) == (1.0, 3.0, 2.0, 2.0)
    assert second["ratio"] == 1.0 and "target" not in second


def test_ways_are_measured_by_turns_after_a_warm_up() -> None:
    called, clock = list[str](), iter(range(100))
    ways = {name: lambda name=name: called.append(name) for name in "ab"}
    times = machine.by_turns(ways, 2, lambda: next(clock))
    assert "".join(called) == "abbaab" and times == {"a": [1000.0] * 2, "b": [1000.0] * 2}
