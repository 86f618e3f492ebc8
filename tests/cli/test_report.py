"""python -m engine report: formats, where they go, and what cannot be read."""

from pathlib import Path

import pytest

from tests import fabricate
from tests.cli.conftest import Call, Refused

pytestmark = pytest.mark.loads


@pytest.fixture
def runs(tmp_path: Path, cache_dir: Path) -> Path:
    """Two runs in the runs folder of the settings."""
    for name in ("first", "second"):
        fabricate.run(cache_dir / "runs" / name, fabricate.pair(7))
    return cache_dir / "runs"


@pytest.mark.parametrize("form", ["md", "html", "csv", "json", "parquet"])
def test_a_report_goes_to_a_file(call: Call, runs: Path, tmp_path: Path, form: str) -> None:
    path = tmp_path / "report.out"
    code, out, err = call("report", "first", "--format", form, "--out", path)
    assert code == 0 and not out and str(path) in err and path.stat().st_size > 1000
    assert [p.name for p in tmp_path.glob(".report*")] == []


def test_what_is_no_run_is_refused(refused: Refused, runs: Path) -> None:
    assert "'none' is not a run" in refused("report", "none")


def test_a_torn_line_is_said(call: Call, runs: Path) -> None:
    with (runs / "first" / "results.jsonl").open("ab") as stream:
        stream.write(b'{"model"')
    code, out, err = call("report", "first", "--format", "csv")
    assert (
        code == 0
        and out.count("\n") == 15
        and "The last line of results.jsonl is incomplete" in err
    )


def test_escape_codes_do_not_reach_the_terminal(call: Call, cache_dir: Path) -> None:
    fabricate.run(cache_dir / "runs" / "odd", [fabricate.row(text="a\x1b[31mb")])
    code, out, _ = call("report", "odd", "--format", "csv")
    assert code == 0 and "\x1b" not in out
