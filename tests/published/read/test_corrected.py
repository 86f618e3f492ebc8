"""A warm-up is left out of the stage that shows it and of the total, in tables and rows alike."""

from __future__ import annotations

from typing import Any

import pytest

from engine.published.read import file_summary
from engine.published.read.file_summary import frame
from engine.published.read.record_types import ResultFile
from tests.published.read import synthetic as made
from tests.published.read.synthetic import read


def means(file: ResultFile, model: str = "eventgpt") -> dict[str, float]:
    """The corrected means of a model's stages."""
    found = file_summary.models(file)[model]
    after = {key: stage["corrected"] for key, stage in found["stages"].items()}
    return {key: one["mean"] for key, one in after.items() if one}


def uneven() -> Any:
    """B whose first answer is longer than the others: leaving the whole record out would show."""
    value = made.legacy()
    first = value["eventgpt_results"][0]
    first["stage4_time"], first["total_time"] = 1.2, first["total_time"] + 0.4
    first["token_ids"], first["tokens"] = made.ids(0, 19), 19
    return value


def test_stages_add_up_to_the_total_without_the_warm_up() -> None:
    found = means(read(uneven()))
    stages = sum(found[f"stage{n}_time"] for n in (1, 2, 3, 4))
    assert found["total_time"] == pytest.approx(stages)
    assert found["stage3_time"] == pytest.approx(0.005)


def test_only_the_stage_that_shows_it_is_left_out() -> None:
    """The first answer's decoding and tokens count: 4 records, not 3."""
    file = read(uneven())
    (mine, _) = file_summary.models(file).values()
    assert means(file)["stage4_time"] == pytest.approx((1.2 + 3 * 0.8) / 4)
    assert mine["tokens_corrected"] == pytest.approx((19 + 3 * 11) / 4)
    vision = mine["stages"]["stage3_time"]["corrected"]
    assert vision and vision["n"] == 3 and vision["mean_without_first"] == vision["mean"]


def test_the_time_to_the_end_of_the_prefill_loses_the_warm_up_too() -> None:
    value = made.five()
    for row in value["results"]:
        mine = row["eventgpt"]
        mine["prefill_complete_time"] = sum(mine[f"stage{n}_time"] for n in (1, 2, 3, 4))
    file = read(value)
    found = means(file)
    stages = sum(found[f"stage{n}_time"] for n in (1, 2, 3, 4))
    assert found["prefill_complete_time"] == pytest.approx(stages) == pytest.approx(0.104)
    recorded = file_summary.models(file)[file.models[0]]["stages"]["prefill_complete_time"]["mean"]
    assert recorded == pytest.approx(0.104 + (0.1 - 0.008) / 4)


def test_a_stage_that_stands_for_a_warm_up_is_marked() -> None:
    told = frame(read(uneven()))
    assert told["vision (ms)"][0] == 5.0 and "cold:stage3_time" in told["corrected for"][0]
    assert read(uneven()).records[0].times["stage3_time"] == 0.1
    for one in (told.loc[2], frame(read(uneven()), False).loc[0]):
        assert one["vision (ms)"] > 0 and "cold" not in one["corrected for"]


def test_without_a_warm_up_nothing_changes() -> None:
    value = made.legacy()
    first = value["eventgpt_results"][0]
    first["stage3_time"], first["total_time"] = 0.005, first["total_time"] - 0.095
    file = read(value)
    assert not any("cold" in record.marks for record in file.corrected)
    assert means(file)["total_time"] == pytest.approx(0.835)
