"""The accuracy of multiple-choice questions in reports: conclusions only where intervals allow."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.report import charts, document, drawers, export
from engine.report.report_figures import Findings
from engine.storage.run_store import Run
from tests import fabricate

pytestmark = pytest.mark.loads


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return fabricate.run(tmp_path / "r", fabricate.exam())


def text(run: Run, form: str = "md") -> str:
    return export.write([run], form)


def test_conclusions_with_intervals_and_baselines_of_chance(run: Run) -> None:
    told = text(run)
    assert "## Accuracy on multiple-choice questions" in told
    assert "ev: 79.2% right on 96 questions of 24 sequences (95 % interval" in told
    assert "above chance (25.0%); always answering A gives 25.0%." in told
    assert "vl: 25.0% right on 96" in told and "not distinguishable from chance (25.0%)" in told
    assert "ev and vl on the same 96 questions: +54.2%" in told and "ev is more often right" in told
    assert "Accuracy on multiple-choice questions: ev: 79.2% (" in told  # the first page
    assert "| vl | motion | 48 | 12 | 25.0%" in told
    assert "may ignore the pictures" not in told  # four letters are no few answers


def test_without_choices_nothing_is_said(tmp_path: Path) -> None:
    run = fabricate.run(tmp_path / "r", fabricate.pair(12))
    assert "multiple-choice" not in text(run)
    assert json.loads(text(run, "json"))["choice_accuracy"] == []
    assert "upright mark: chance" not in text(run, "html")
    assert "right on" not in drawers.terminal(document.summary(Findings([run])))


def test_few_sequences_give_no_conclusion(tmp_path: Path) -> None:
    rows = fabricate.exam(20)
    told = text(fabricate.run(tmp_path / "r", rows))
    assert "no interval and no conclusion, because it needs at least 6 sequences" in told
    assert "above chance" not in told and "more often right" not in told


def test_unreadable_failed_and_unjudged_are_said(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [fabricate.question(n, "?") for n in range(3)]
    rows += [fabricate.question(n, "A", off_script=True) for n in range(3, 5)]
    known = {key: rows[0][key] for key in ("choices", "right_letter", "question_task")}
    rows += [fabricate.failed("ev", "f", **known)]
    told = text(fabricate.run(tmp_path / "r", rows))
    assert "Unreadable: 3 of 5 answers of ev (60.0%)" in told
    assert "Failed and in no accuracy: 1 result of ev." in told
    assert "Not judged: 2 answers of ev" in told


def test_the_charts_rows_and_words(run: Run) -> None:
    found = Findings([run]).choices
    rows = charts.choice_rows(found, {})
    assert len({row["name"] for row in rows}) == len(rows) == 3 + 6
    own = next(row for row in rows if "value" in row)
    assert own["low"] < own["value"] < own["high"] and own["chance"] == 0.25
    assert "vl, all questions: 25.0% (" in charts.choice_words(found)
    assert "upright mark: chance" in text(run, "html")
    assert "all questions" in charts.svgs([charts.choices(found, {"ev": "eventgpt"})])[0].lower()


def test_the_summary_of_bench_has_the_accuracy(run: Run) -> None:
    told = drawers.terminal(document.summary(Findings([run])))
    assert "ev: 79.2% right on 96 questions of 24 sequences" in told and "(25.0%)" in told
