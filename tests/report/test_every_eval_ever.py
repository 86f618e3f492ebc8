"""Records of Every Eval Ever: valid by its schema, with the report's own figures."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from engine import settings
from engine.__main__ import main
from engine.report import every_eval_ever
from engine.report.report_figures import Findings
from tests import fabricate

pytestmark = pytest.mark.loads
PACKAGE = settings.PROJECT / ".venv/schemas/every_eval_ever-0.3.0-py3-none-any.whl"


def records(runs: list[Any]) -> dict[str, dict[str, Any]]:
    return dict(every_eval_ever.records(runs))


def results(record: dict[str, Any]) -> dict[str, float]:
    return {
        one["evaluation_result_id"]: one["score_details"]["score"]
        for one in record["evaluation_results"]
    }


@pytest.mark.skipif(not PACKAGE.exists(), reason="needs the package every-eval-ever")
def test_records_are_valid_by_the_schema(tmp_path: Path) -> None:
    with zipfile.ZipFile(PACKAGE) as package:
        schema = json.loads(package.read("every_eval_ever/schemas/eval.schema.json"))
    check, runs = Draft7Validator(schema), []
    assert schema["version"] == every_eval_ever.VERSION
    for name, rows in (("times", fabricate.pair(12)), ("choices", fabricate.exam())):
        runs.append(fabricate.run(tmp_path / name, rows))
    found = [*records(runs[:1]).values(), *records(runs[1:]).values(), *records(runs).values()]
    assert len(found) > 4 and [error for one in found for error in check.iter_errors(one)] == []
    for key in ("model_info", "evaluation_results"):
        broken = {name: value for name, value in found[0].items() if name != key}
        assert list(check.iter_errors(broken))  # control


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


def test_a_cached_time_is_another_metric(tmp_path: Path) -> None:
    rows = fabricate.pair(3)
    for one in rows:
        one["stages"]["vision"] |= {"source": "cached", "original_ms": 40.0}
    record = next(iter(records([fabricate.run(tmp_path / "r", rows)]).values()))
    ids = [one["metric_config"]["metric_id"] for one in record["evaluation_results"]]
    assert "stagescope.vision.cached" in ids and "stagescope.vision" not in ids


def test_a_file_for_each_model_in_a_new_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = fabricate.run(tmp_path / "r", fabricate.pair(2), titles={"ev": "../a b", "vl": "."})
    arguments = ["report", str(run.folder), "--format", "every-eval-ever"]
    assert main(arguments) == 2 and "name a new folder with --out" in capsys.readouterr().err
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 0
    assert every_eval_ever.LEFT_OUT in capsys.readouterr().err
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"1-a-b.json", "2-.json"}
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    assert "exists already" in capsys.readouterr().err


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


def test_records_of_one_family_and_of_two_runs_have_ids_of_their_own(tmp_path: Path) -> None:
    runs = [fabricate.run(tmp_path / name, fabricate.pair(2)) for name in "ab"]
    ids = [one["evaluation_id"] for one in records(runs).values()]
    assert len(ids) == 4 == len(set(ids))
