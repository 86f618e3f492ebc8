"""Charts of recorded files: what is drawn, in which order and colours, and their words."""

from __future__ import annotations

import json

import pytest

from engine.published.claims.headlines import headlines
from engine.published.claims.waterfall import Waterfall, WaterfallPart, waterfall
from engine.published.read import answer_pairs
from tests.published.read import synthetic as made
from tests.published.read.synthetic import read
from ui.charts import published_charts
from ui.widgets.theme import STAGE_COLOURS


def fall() -> Waterfall:
    parts = (
        WaterfallPart("load", 200.0),
        WaterfallPart("prefill", 20.0),
        WaterfallPart("time per token", -50.0),
    )
    return Waterfall("f", "Slow <b>", "Fast", 1000.0, 830.0, parts, 2.0, 0.9)


def test_a_waterfall_goes_from_one_total_to_the_other() -> None:
    frame = published_charts.falls(fall())
    assert list(frame["name"]) == [
        "Slow <b>", "load", "decode: prefill", "decode: time per token", "Fast",
    ]  # fmt: skip
    assert list(frame["end"]) == [1000, 800, 780, 830, 830]
    assert list(frame["start"]) == [0, 1000, 800, 780, 0]
    assert list(frame["words"])[1:4] == ["−200 ms", "−20.0 ms", "+50.0 ms"]
    assert list(frame["stage"]) == ["total", "load", "decode", "decode", "total"]


def test_a_part_of_one_model_alone_has_the_colour_of_its_stage() -> None:
    value = made.flat()
    for row in value:
        del row["llava_stage1_time"]
    found = waterfall(read(value))
    assert found is not None
    frame = published_charts.falls(found).set_index("name")
    assert frame.loc["load, timed for one model only", "stage"] == "load"


def test_a_waterfall_has_units_stage_colours_and_words() -> None:
    spec = json.dumps(published_charts.waterfall(fall()).to_dict())
    assert "(ms)" in spec and STAGE_COLOURS["load"] in spec
    marks = published_charts.waterfall(fall()).to_dict()["layer"]
    axis = marks[1]["encoding"]["y"]["axis"]
    assert axis["orient"] == "right" and "labelColor" not in axis
    told = json.loads(axis["labelExpr"].removesuffix("[datum.value]"))
    assert told == ["1,000 ms", "−200 ms", "−20.0 ms", "+50.0 ms", "830 ms"]
    words = published_charts.waterfall_words(fall())
    assert "From Slow <b>, 1,000 ms in the mean, to Fast, 830 ms" in words
    assert "load −200 ms" in words


def test_the_bars_of_a_file_meet_at_the_fast_total() -> None:
    found = waterfall(read(made.flat()))
    assert found is not None
    frame = published_charts.falls(found)
    assert frame["end"].iloc[-2] == pytest.approx(found.fast_ms)


def test_true_pairs_stand_beside_shuffled_ones() -> None:
    found = answer_pairs.variants(read(made.pairs("F1")))["main"]
    frame = published_charts.matches(found)
    assert list(frame["pairs"]) == ["true pairs", "shuffled pairs"]
    assert frame["value"].iloc[0] == pytest.approx(100 * found.rate.value)  # type: ignore[union-attr]
    assert "(%)" in json.dumps(published_charts.matching(found).to_dict())
    assert "shuffled pairs:" in published_charts.matching_words(found)


def test_the_outlook_holds_every_draft_length_that_can_be_predicted() -> None:
    file = read(made.legacy())
    over = [answer_pairs.variants(file, gamma)["main"] for gamma in (1, 2, 3)]
    frame = published_charts.outlook(over)
    assert list(frame["gamma"]) == [1, 2, 3] and (frame["ceiling"] >= frame["value"]).all()
    assert "draft length g (tokens)" in json.dumps(published_charts.speedups(over, 2).to_dict())
    assert published_charts.speedups_words(over).count("ceiling") == 3
    untimed = answer_pairs.variants(file)["raw"]
    assert published_charts.outlook([untimed]).empty


def test_a_claim_is_drawn_beside_what_the_files_give() -> None:
    headline = headlines([read(made.flat(), "<i>.json")])[2]
    frame = published_charts.ratios(headline, corrected=True)
    assert list(frame["file"]) == ["<i>.json"] and frame["ratio"].iloc[0] == pytest.approx(10)
    spec = json.dumps(published_charts.claim(headline, corrected=True).to_dict())
    assert "claimed: 8x" in spec and "log scale" in spec
    assert "10.00x against" in published_charts.claim_words(headline, corrected=True)
