"""The part of a report about perturbed runs: words, tables, charts."""

import json
import re
from pathlib import Path

import pytest

from engine.analysis import robustness
from engine.report import drawers, export, robustness_part
from engine.report.blocks import ChartBlock, Heading, Paragraph, ReportTable
from engine.report.charts import svgs
from engine.report.report_figures import Findings
from tests.analysis.test_robustness import run, sweep

pytestmark = [pytest.mark.loads, pytest.mark.usefixtures("undrawn")]


def test_a_sweep_has_a_chart_and_a_table_per_measure(tmp_path: Path) -> None:
    blocks = list(robustness_part.robust(Findings(sweep(tmp_path, 0, 3, 6))))
    assert blocks[0] == Heading(2, "Robustness")
    charts = [block for block in blocks if isinstance(block, ChartBlock)]
    tables = [block for block in blocks if isinstance(block, ReportTable)]
    assert len(charts) == len(tables) == 2
    assert tables[1].rows[1][:6] == ("ev", "drop:0.1", "12", "12", "0", "0.250")
    assert "ev: 0.00 at drop:0 (0.000 to 0.000), 0.25 at drop:0.1 (" in charts[1].words
    for chart in charts:
        drawn = chart.draw()
        assert not isinstance(drawn, str) and "<path" in svgs([drawn])[0]


def test_other_runs_have_no_such_part(tmp_path: Path) -> None:
    assert not list(robustness_part.robust(Findings([run(tmp_path, "")])))


def test_runs_that_form_no_sweep_give_one_sentence(tmp_path: Path) -> None:
    blocks = list(robustness_part.robust(Findings([run(tmp_path, "drop:0.3")])))
    assert isinstance(blocks[1], Paragraph) and "there is no reference" in blocks[1].text
    assert len(blocks) == 2


def test_the_text_for_a_terminal(tmp_path: Path) -> None:
    found = robustness.find(sweep(tmp_path, 0, 3))
    assert found is not None
    text = drawers.terminal(robustness_part.parts(found, charts=False))
    assert text.startswith("drop (share): each event is lost with this probability. Seed 7.")
    assert re.search(r"vl +drop:0.1 +\d+ +\d+ +\d+ +0.250 +0.", text)


@pytest.mark.slow
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
