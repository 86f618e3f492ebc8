"""Charts of recorded files: what is drawn, in which order and colours, and their words."""

from __future__ import annotations

import json
from typing import Any

import altair as alt
import pytest

from engine.published.claims.headlines import headlines
from engine.published.claims.waterfall import waterfall
from engine.published.read import answer_pairs
from engine.report.blocks import ChartBlock
from tests.published.read import synthetic as made
from tests.published.read.synthetic import read
from ui.published import published_charts


def spec(block: ChartBlock) -> str:
    chart = block.draw()
    assert isinstance(chart, (alt.Chart, alt.LayerChart))
    return json.dumps(chart.to_dict())


def lines(block: ChartBlock) -> list[dict[str, Any]]:
    """The rows that have a name."""
    sets: list[list[dict[str, Any]]] = list(json.loads(spec(block))["datasets"].values())
    return [row for rows in sets for row in rows if "name" in row]


def test_the_bars_of_a_file_meet_at_the_fast_total() -> None:
    value = made.flat()
    for row in value:
        del row["llava_stage1_time"]
    found = waterfall(read(value))
    assert found is not None
    block = published_charts.difference(found)
    bars = {line["name"]: line for line in lines(block)}
    assert bars["load, timed for one model only"]["stage"] == "load"
    assert bars["decode: number of tokens"]["stage"] == "decode.steps"
    *_, last, total = bars.values()
    assert last["end"] == pytest.approx(total["end"]) == pytest.approx(found.fast_ms)


def test_true_pairs_stand_beside_shuffled_ones() -> None:
    found = answer_pairs.variants(read(made.pairs("F1")))["main"]
    (block,) = published_charts.matching(found)
    true, shuffled = lines(block)
    assert true["low"] <= true["value"] <= true["high"] and shuffled["name"] == "shuffled pairs"
    assert true["value"] == pytest.approx(100 * found.rate.value)  # type: ignore[union-attr]
    assert "(%)" in spec(block) and "shuffled pairs:" in block.words


def test_the_outlook_holds_every_draft_length_that_can_be_predicted() -> None:
    file = read(made.legacy())
    over = [answer_pairs.variants(file, gamma)["main"] for gamma in (1, 2, 3)]
    (block,) = published_charts.speedups(over, 2)
    rows = lines(block)
    assert [row["at"] for row in rows] == [1, 2, 3] * 2
    for predicted, ceiling in zip(rows[:3], rows[3:], strict=True):
        assert ceiling["value"] >= predicted["value"]
    assert "draft length g (tokens)" in spec(block) and block.words.count("ceiling") == 3
    untimed = answer_pairs.variants(file)["raw"]
    assert published_charts.speedups([untimed], 2) == []


def test_a_claim_is_drawn_beside_what_the_files_give() -> None:
    headline = headlines([read(made.flat(), "<i>.json")])[2]
    (block,) = published_charts.claim(headline, corrected=True)
    row = next(line for line in lines(block) if "other" in line)
    assert row["name"] == "<i>.json" and row["value"] == pytest.approx(10)
    assert "claimed: 8x" in spec(block) and "log scale" in spec(block)
    assert "10.00x against" in block.words
