"""CSV: every result, and nothing that a program would take for more than data.  Records of Every
Eval Ever: valid by its schema, with the report's own figures."""

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from jsonschema import Draft7Validator

from engine import settings
from engine.__main__ import main
from engine.report import export
from engine.report.report_figures import Findings
from tests import fabricate

PACKAGE = settings.PROJECT / ".venv/schemas/every_eval_ever-0.3.0-py3-none-any.whl"


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


def records(runs: list[Any]) -> dict[str, dict[str, Any]]:
    return dict(export.every_eval_ever(runs))


def results(record: dict[str, Any]) -> dict[str, float]:
    return {
        one["evaluation_result_id"]: one["score_details"]["score"]
        for one in record["evaluation_results"]
    }


@pytest.mark.skipif(not PACKAGE.exists(), reason="needs the package every-eval-ever")
@pytest.mark.loads
def test_records_are_valid_by_the_schema(tmp_path: Path) -> None:
    with zipfile.ZipFile(PACKAGE) as package:
        schema = json.loads(package.read("every_eval_ever/schemas/eval.schema.json"))
    check, runs = Draft7Validator(schema), []
    assert schema["version"] == export.SCHEMA
    for name, rows in (("times", fabricate.pair(12)), ("choices", fabricate.exam())):
        runs.append(fabricate.run(tmp_path / name, rows))
    found = [*records(runs[:1]).values(), *records(runs[1:]).values(), *records(runs).values()]
    assert len(found) > 4 and [error for one in found for error in check.iter_errors(one)] == []
    for key in ("model_info", "evaluation_results"):
        broken = {name: value for name, value in found[0].items() if name != key}
        assert list(check.iter_errors(broken))  # control


@pytest.mark.loads
def test_scores_are_the_figures_of_the_report(tmp_path: Path) -> None:
    run = fabricate.run(tmp_path / "r", fabricate.pair(12))
    (first, record), *_ = records([run]).items()
    timed = {
        f"{one.metric}: {one.source}": one.median
        for one in Findings([run]).figures
        if one.label == first and one.group == "measured"
    }
    found = results(record)
    assert found["total: measured"] == timed["total: measured"]
    assert set(found) <= set(timed) and not any("new_tokens" in name for name in found)
    exam = fabricate.run(tmp_path / "exam", fabricate.exam())
    (choice, *_) = Findings([exam]).choices
    found = results(records([exam])[choice.label])
    assert choice.accuracy and found["accuracy"] == choice.accuracy.share


@pytest.mark.loads
def test_a_cached_time_is_another_metric(tmp_path: Path) -> None:
    rows = fabricate.pair(3)
    for one in rows:
        one["stages"]["vision"] |= {"source": "cached", "original_ms": 40.0}
    record = next(iter(records([fabricate.run(tmp_path / "r", rows)]).values()))
    ids = [one["metric_config"]["metric_id"] for one in record["evaluation_results"]]
    assert "stagescope.vision.cached" in ids and "stagescope.vision" not in ids


@pytest.mark.loads
def test_a_file_for_each_model_in_a_new_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = fabricate.run(tmp_path / "r", fabricate.pair(2), titles={"ev": "../a b", "vl": "."})
    arguments = ["report", str(run.folder), "--format", "every-eval-ever"]
    assert main(arguments) == 2 and "name a new folder with --out" in capsys.readouterr().err
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 0
    assert export.UNTOLD in capsys.readouterr().err
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"1-a-b.json", "2-.json"}
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.loads
def test_models_without_a_figure_have_no_file_and_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [*(one for one in fabricate.pair(2) if one["model"] == "vl"), fabricate.failed("ev")]
    run = fabricate.run(tmp_path / "r", rows)
    out = ["--format", "every-eval-ever", "--out", str(tmp_path / "deep" / "out")]
    assert main(["report", str(run.folder), *out]) == 0
    assert "No figure, so no file: ev" in capsys.readouterr().err
    (made,) = (tmp_path / "deep" / "out").iterdir()
    details = json.loads(made.read_bytes())["model_info"]["additional_details"]
    assert (details["results"], details["failed"], details["run"]) == ("2", "0", run.state)
    failed = fabricate.run(tmp_path / "f", [fabricate.failed("ev")])
    assert main(["report", str(failed.folder), *out[:-1], str(tmp_path / "none")]) == 2
    assert "No model of these runs has a figure" in capsys.readouterr().err


@pytest.mark.loads
def test_records_of_one_family_and_of_two_runs_have_ids_of_their_own(tmp_path: Path) -> None:
    runs = [fabricate.run(tmp_path / name, fabricate.pair(2)) for name in "ab"]
    ids = [one["evaluation_id"] for one in records(runs).values()]
    assert len(ids) == 4 == len(set(ids))
