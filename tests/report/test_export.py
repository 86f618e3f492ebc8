"""CSV: every result, and nothing that a program would take for more than data."""

import csv
import io
from pathlib import Path

import pandas as pd

from engine.report import export
from tests import fabricate


def test_one_line_per_result_and_every_figure(tmp_path: Path) -> None:
    rows = [
        fabricate.row(text='a "b", c\nd', backend={"asked": "auto", "ran": "eager"}),
        fabricate.failed(sample="s1"),
        fabricate.row(phase="warmup"),
    ]
    run = fabricate.run(tmp_path / "r", rows)
    lines = list(csv.DictReader(io.StringIO(export.write([run], "csv"))))
    assert [line["group"] for line in lines] == ["measured", "measured", "warm-up"]
    assert lines[0]["text"] == 'a "b", c\nd' and float(lines[0]["total_ms"]) == 30.0
    assert lines[1]["total_ms"] == "" and lines[1]["error"] == "It broke."
    assert (lines[0]["backend"], lines[0]["backend_asked"]) == ("eager", "auto")
    assert lines[0]["vision_source"] == "measured" and lines[0]["label"] == "ev"


def test_a_carriage_return_begins_no_line(tmp_path: Path) -> None:
    run = fabricate.run(tmp_path / "r", [fabricate.row(prompt="Why?\r=1+1|cmd")])
    made = export.write([run], "csv")
    assert '"Why?\ufffd=1+1|cmd"' in made and "\r" not in made


def test_parquet_has_the_same_lines_with_types(tmp_path: Path) -> None:
    text = "=1\r a \x07\ud800 \U0001f600"
    rows = [*fabricate.pair(2), fabricate.failed("ev", "z"), fabricate.row("ev", "y", text=text)]
    runs = [fabricate.run(tmp_path / "r", rows)]
    table = pd.read_parquet(io.BytesIO(export.data(runs, "parquet")))
    lines = list(csv.DictReader(io.StringIO(export.data(runs, "csv").decode(), newline="")))
    assert [*table.columns] == [*lines[0]] and len(table) == len(lines) == len(rows)
    assert table["total_ms"].dtype == float and table["total_ms"].isna().sum() == 1
    assert table["text"].iloc[-1] == text.replace("\ud800", "?")  # no character
