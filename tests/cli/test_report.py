"""python -m engine report: formats, where they go, and what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.__main__ import main
from tests import fabricate

pytestmark = pytest.mark.loads


@pytest.fixture
def runs(tmp_path: Path, cache_dir: Path) -> Path:
    """Two runs in the runs folder of the settings."""
    for name in ("first", "second"):
        fabricate.run(cache_dir / "runs" / name, fabricate.pair(7))
    return cache_dir / "runs"


@pytest.mark.loads
def test_runs_are_named_or_given_by_folder(capsys: pytest.CaptureFixture[str], runs: Path) -> None:
    named_twice = ["first", str(runs / "second"), "second"]
    assert main(["report", *named_twice, "--format", "json"]) == 0
    out, _ = capsys.readouterr()
    assert len(json.loads(out)["runs"]) == 2


@pytest.mark.parametrize(
    "form",
    ["md", pytest.param("html", marks=pytest.mark.loads), "csv", "json", "parquet"],
)
def test_a_report_goes_to_a_file(
    capsys: pytest.CaptureFixture[str], runs: Path, tmp_path: Path, form: str
) -> None:
    path = tmp_path / "report.out"
    assert main(["report", "first", "--format", form, "--out", str(path)]) == 0
    out, err = capsys.readouterr()
    assert not out and str(path) in err and path.stat().st_size > 1000
    assert [p.name for p in tmp_path.glob(".report*")] == []


def test_what_is_no_run_and_what_cannot_be_written(
    capsys: pytest.CaptureFixture[str], runs: Path, tmp_path: Path
) -> None:
    assert main(["report", "none"]) == 2
    assert "'none' is not a run" in capsys.readouterr().err
    assert main(["report", "first", "--out", str(tmp_path / "no" / "file")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_torn_line_is_said(capsys: pytest.CaptureFixture[str], runs: Path) -> None:
    with (runs / "first" / "results.jsonl").open("ab") as stream:
        stream.write(b'{"model"')
    assert main(["report", "first", "--format", "csv"]) == 0
    out, err = capsys.readouterr()
    assert out.count("\n") == 15 and "The last line of results.jsonl is incomplete" in err


def test_escape_codes_do_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str], cache_dir: Path
) -> None:
    fabricate.run(cache_dir / "runs" / "odd", [fabricate.row(text="a\x1b[31mb")])
    assert main(["report", "odd", "--format", "csv"]) == 0
    assert "\x1b" not in capsys.readouterr().out
