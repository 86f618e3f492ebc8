"""The tables of kept figures: their order, their cells, and the page that shows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import app, growth, machine, table
from benchmarks.machine import RESULTS

ROW = {"what": "own loop", "against": "generate()", "ratio": 1.5}
MACHINE = {"processor": "EPYC", "cores": 2}


def keep(folder: Path, name: str, **content: Any) -> None:
    kept = {"measured": "2026-01-01", "machine": MACHINE, **content}
    (folder / f"{name}.json").write_text(json.dumps(kept))


def test_sections_come_in_the_order_of_the_stages_and_others_after(tmp_path: Path) -> None:
    keep(tmp_path, "decoding", rows=[ROW, ROW | {"target": 3, "what": "com|piled"}])
    keep(tmp_path, "zoo", rows=[{"what": "a", "median": 2, "min": 1, "max": 3, "n": 5,
                                 "unit": "ms", "limit": 4}])  # fmt: skip
    keep(tmp_path, "video", rows=[ROW | {"min": 1.25, "max": 2, "n": 7}])
    keep(tmp_path, "planted", faults=[])
    video, video_rows, decoding, decoding_rows, _, zoo_rows = table.sections(tmp_path)
    assert video.splitlines()[0] == "## Video"
    assert "`python -m benchmarks.video`, 2026-01-01, EPYC, 2 cores." in video
    assert "| own loop | generate() | 1.5x | 1.25 to 2, n 7 |  |" in video_rows
    assert decoding.startswith("## Decoding")
    assert "| com\\|piled | generate() | 1.5x |  | 3x |" in decoding_rows
    assert "| a | 2 ms | 1 to 3, n 5 | 4 ms |" in zoo_rows


def test_growth_has_its_line(tmp_path: Path) -> None:
    keep(tmp_path, "growth", rows=[growth.line("listed", "samples", [(10, 2.0), (1000, 20.0)])])
    _, rows = table.sections(tmp_path)
    assert "| listed | samples | 10: 2.0 ms, 1,000: 20.0 ms | 18.2 ms | 0.0 % of the" in rows


def test_nothing_kept_is_no_table(tmp_path: Path) -> None:
    assert list(table.sections(tmp_path)) == []


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


def test_the_apps_figures_stand_beside_their_limits_and_the_other_checkouts() -> None:
    ours = {name: [50.0, 60.0] for name in app.LIMITS}
    theirs = ours | {app.CLICK: [100.0, 120.0], app.GAP: []}
    found = {(row["what"], "ratio" in row): row for row in app._rows([ours, theirs])}
    assert found[app.CLICK, False]["limit"] == 120 and found[app.CLICK, True]["ratio"] == 2.0
    assert (app.GAP, True) not in found


@pytest.mark.parametrize("times", [[0.0, 1.0, 4.0, 100.0, 103.0, 210.0]])
def test_a_burst_of_changes_is_one_redraw(times: list[float]) -> None:
    assert app.redraws(times) == [0.0, 100.0, 210.0] and app.redraws([]) == []
