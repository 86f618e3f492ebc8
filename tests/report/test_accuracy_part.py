"""Accuracy in reports: conclusions only where intervals allow; and perturbed runs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from engine.analysis import robustness
from engine.report import accuracy_part, charts, document, drawers, export
from engine.report.blocks import ChartBlock, Heading, Paragraph, Table
from engine.report.charts import svgs
from engine.report.report_figures import Findings
from engine.storage.run_store import Run
from tests import fabricate
from tests.analysis.test_robustness import run, sweep

pytestmark = pytest.mark.loads
UNDRAWN = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def exam(tmp_path: Path) -> Run:
    return fabricate.run(tmp_path / "r", fabricate.exam())


def text(exam: Run, form: str = "md") -> str:
    return export.write([exam], form)


def test_conclusions_with_intervals_and_baselines_of_chance(exam: Run) -> None:
    told = text(exam)
    assert "## Accuracy on multiple-choice questions" in told
    assert "ev: 79.2% right on 96 questions of 24 sequences (95 % interval" in told
    assert "above chance (25.0%); always answering A gives 25.0%." in told
    assert "vl: 25.0% right on 96" in told and "not distinguishable from chance (25.0%)" in told
    assert "ev and vl on the same 96 questions: +54.2%" in told and "ev is more often right" in told
    assert "Accuracy on multiple-choice questions: ev: 79.2% (" in told  # the first page
    assert "| vl | motion | 48 | 12 | 25.0%" in told
    assert "may ignore the pictures" not in told  # four letters are no few answers


def test_without_choices_nothing_is_said(tmp_path: Path) -> None:
    exam = fabricate.run(tmp_path / "r", fabricate.pair(12))
    assert "multiple-choice" not in text(exam)
    assert json.loads(text(exam, "json"))["choice_accuracy"] == []
    assert "upright mark: chance" not in text(exam, "html")
    assert "right on" not in drawers.terminal(document.summary(Findings([exam])))


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


def test_the_charts_rows_and_words(exam: Run) -> None:
    found = Findings([exam]).choices
    rows = charts.choice_rows(found, {})
    assert len({row["name"] for row in rows}) == len(rows) == 3 + 6
    own = next(row for row in rows if "value" in row)
    assert own["low"] < own["value"] < own["high"] and own["chance"] == 0.25
    assert "vl, all questions: 25.0% (" in charts.choice_words(found)
    assert "upright mark: chance" in text(exam, "html")
    assert "all questions" in charts.svgs([charts.choices(found, {"ev": "eventgpt"})])[0].lower()


def test_the_summary_of_bench_has_the_accuracy(exam: Run) -> None:
    told = drawers.terminal(document.summary(Findings([exam])))
    assert "ev: 79.2% right on 96 questions of 24 sequences" in told and "(25.0%)" in told


@UNDRAWN
def test_a_sweep_has_a_chart_and_a_table_per_measure(tmp_path: Path) -> None:
    blocks = list(accuracy_part.robust(Findings(sweep(tmp_path, 0, 3, 6))))
    assert blocks[0] == Heading(2, "Robustness")
    charts = [block for block in blocks if isinstance(block, ChartBlock)]
    tables = [block for block in blocks if isinstance(block, Table)]
    assert len(charts) == len(tables) == 2
    assert tables[1].rows[1][:6] == ("ev", "drop:0.1", "12", "12", "0", "0.250")
    assert "ev: 0.00 at drop:0 (0.000 to 0.000), 0.25 at drop:0.1 (" in charts[1].words
    for chart in charts:
        drawn = chart.draw()
        assert not isinstance(drawn, str) and "<path" in svgs([drawn])[0]


@UNDRAWN
def test_other_runs_have_no_such_part(tmp_path: Path) -> None:
    assert not list(accuracy_part.robust(Findings([run(tmp_path, "")])))


@UNDRAWN
def test_runs_that_form_no_sweep_give_one_sentence(tmp_path: Path) -> None:
    blocks = list(accuracy_part.robust(Findings([run(tmp_path, "drop:0.3")])))
    assert isinstance(blocks[1], Paragraph) and "there is no reference" in blocks[1].text
    assert len(blocks) == 2


@UNDRAWN
def test_the_text_for_a_terminal(tmp_path: Path) -> None:
    found = robustness.find(sweep(tmp_path, 0, 3))
    assert found is not None
    text = drawers.terminal(accuracy_part.sweep_parts(found, charts=False))
    assert text.startswith("drop (share): each event is lost with this probability. Seed 7.")
    assert re.search(r"vl +drop:0.1 +\d+ +\d+ +\d+ +0.250 +0.", text)


@pytest.mark.slow
@UNDRAWN
def test_all_formats_have_it_and_no_pair_mixes_strengths(tmp_path: Path) -> None:
    runs = sweep(tmp_path, 0, 3)
    found = json.loads(export.write(runs, "json"))
    assert found["robustness"]["change"] == "drop" and len(found["robustness"]["curves"]) == 4
    for pair in found["comparisons"]:
        assert ("drop:0.1" in pair["a"]) == ("drop:0.1" in pair["b"])
    assert len({(pair["a"], pair["b"]) for pair in found["comparisons"]}) == 2
    assert "## Robustness" in export.write(runs, "md")
    assert '<h2 id="robustness">' in export.write(runs, "html")
    alone = json.loads(export.write([run(tmp_path, "")], "json"))
    assert alone["robustness"] is None
