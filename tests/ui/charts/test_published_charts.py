"""Charts of recorded files: what is drawn, in which order and colours, and their words."""

from __future__ import annotations

import json

import pytest

from engine.published.claims.headlines import headlines
from engine.published.claims.waterfall import waterfall
from engine.published.read import answer_pairs
from engine.report import charts
from tests.published.read import synthetic as made
from tests.published.read.synthetic import read
from ui.charts import published_charts


def test_the_bars_of_a_file_meet_at_the_fast_total() -> None:
    value = made.flat()
    for row in value:
        del row["llava_stage1_time"]
    found = waterfall(read(value))
    assert found is not None
    lines = {line["name"]: line for line in charts.falls(published_charts.steps(found))}
    assert lines["load, timed for one model only"]["stage"] == "load"
    assert lines["decode: number of tokens"]["stage"] == "decode"
    *_, last, total = lines.values()
    assert last["end"] == pytest.approx(total["end"]) == pytest.approx(found.fast_ms)


def test_true_pairs_stand_beside_shuffled_ones() -> None:
    found = answer_pairs.variants(read(made.pairs("F1")))["main"]
    true, shuffled = published_charts.matches(found)
    assert true["low"] <= true["value"] <= true["high"] and shuffled["name"] == "shuffled pairs"
    assert true["value"] == pytest.approx(100 * found.rate.value)  # type: ignore[union-attr]
    assert "(%)" in json.dumps(published_charts.matching(found).to_dict())
    assert "shuffled pairs:" in published_charts.matching_words(found)


def test_the_outlook_holds_every_draft_length_that_can_be_predicted() -> None:
    file = read(made.legacy())
    over = [answer_pairs.variants(file, gamma)["main"] for gamma in (1, 2, 3)]
    rows = published_charts.outlook(over)
    assert [row["at"] for row in rows] == [1, 2, 3] * 2
    for predicted, ceiling in zip(rows[:3], rows[3:], strict=True):
        assert ceiling["value"] >= predicted["value"]
    assert "draft length g (tokens)" in json.dumps(published_charts.speedups(over, 2).to_dict())
    assert published_charts.speedups_words(over).count("ceiling") == 3
    untimed = answer_pairs.variants(file)["raw"]
    assert published_charts.outlook([untimed]) == []


def test_a_claim_is_drawn_beside_what_the_files_give() -> None:
    headline = headlines([read(made.flat(), "<i>.json")])[2]
    (row,) = published_charts.ratios(headline, corrected=True)
    assert row["name"] == "<i>.json" and row["value"] == pytest.approx(10)
    spec = json.dumps(published_charts.claim(headline, corrected=True).to_dict())
    assert "claimed: 8x" in spec and "log scale" in spec
    assert "10.00x against" in published_charts.claim_words(headline, corrected=True)
