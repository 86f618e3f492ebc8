"""The table of kept figures: its order, its cells, and a file that lacks a field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import app, growth, stages, table
from benchmarks.machine import RESULTS, spread

ROW = {"what": "own loop", "against": "generate()", "ratio": 1.5, "repeat": "python -m b"}
RANGE = {"low": 1.9, "high": 2.4, "n": 7}


def keep(folder: Path, name: str, **content: Any) -> None:
    (folder / f"{name}.json").write_text(json.dumps(content))


def test_rows_come_in_the_order_of_the_stages_and_others_after(tmp_path: Path) -> None:
    keep(tmp_path, "decoding", rows=[ROW, ROW | {"target": 3, "what": "com|piled"}])
    keep(tmp_path, "zoo", rows=[ROW | {"what": "other"}])
    keep(tmp_path, "video", rows=[ROW | {"what": "clip", "ratio": 2} | RANGE])
    keep(tmp_path, "records", files=3)
    assert table.markdown(table.read(tmp_path)).splitlines() == [
        "| what | against | ratio | range | target | how to repeat it |",
        "| --- | --- | --- | --- | --- | --- |",
        "| clip | generate() | 2x | 1.9 to 2.4, n 7 |  | `python -m b` |",
        "| own loop | generate() | 1.5x |  |  | `python -m b` |",
        "| com\\|piled | generate() | 1.5x |  | 3x | `python -m b` |",
        "| other | generate() | 1.5x |  |  | `python -m b` |",
    ]


def test_lines_of_growth_have_a_table_of_their_own(tmp_path: Path) -> None:
    keep(tmp_path, "growth", lines=[growth.line("listed", "samples", [(10, 2.0), (1000, 20.0)])])
    head, _, one = table.markdown(table.read(tmp_path)).splitlines()
    assert head.startswith("| what | grows with | measured ")
    assert "| listed | samples | 10: 2.0 ms, 1,000: 20.0 ms | 18.2 ms | 0.0 % of the" in one


def test_a_row_that_lacks_a_field_is_named(tmp_path: Path) -> None:
    keep(tmp_path, "again", rows=[{"what": "a", "against": "b", "repeat": "c"}])
    with pytest.raises(SystemExit, match=r"again\.json: one of its rows has no 'ratio'"):
        table.markdown(table.read(tmp_path))


def test_nothing_kept_is_no_table(tmp_path: Path) -> None:
    assert table.markdown(table.read(tmp_path)) == ""


def test_the_files_that_are_kept_can_be_shown() -> None:
    kept = table.read(RESULTS)
    assert "stages" in kept
    table.markdown(kept)


def test_the_page_about_speed_shows_what_is_kept() -> None:
    shown = table.PAGE.read_text(encoding="utf-8").partition(table.BELOW)[2]
    assert shown == "\n" + table.everything(RESULTS), "python -m benchmarks.table --write"


def test_the_apps_and_the_stages_figures_become_rows() -> None:
    one = spread([50.0])
    figures = {
        "click_to_changed_page_ms": one,
        "server_start_to_usable_page_s": spread([4.0]),
        "streaming_gap_ms": {"p95": 120.0},
        "samples_command_s": spread([0.25]),
    }
    rows = app._rows(figures)
    assert [row["ratio"] for row in rows] == [2.0, 0.5, 1.0, 2.0]
    assert rows[1]["what"] == "server's start to first page: 4 s"
    model = {"generate_over_own": one, "features_computed_ms": one, "features_read_ms": one}
    found = stages._rows({"models": {"llava-demo": model}})
    assert [row["ratio"] for row in found] == [50.0, 1.0]
    table.markdown({"app": {"rows": rows}, "stages": {"rows": found}})


def test_a_burst_of_changes_is_one_redraw() -> None:
    assert app.redraws([0.0, 1.0, 4.0, 100.0, 103.0, 210.0]) == [0.0, 100.0, 210.0]
    assert app.redraws([]) == []
