"""What is a warm-up: a first value unlike the others that moves their mean, and not noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.published.audit import audit
from engine.published.read import file_summary
from engine.published.read.corrected import is_warm_up
from tests.published.read import synthetic as made
from tests.published.read.synthetic import read


@pytest.mark.parametrize(
    ("first", "others", "is_one"),
    [
        (105.4, [5.7, 5.7, 5.8, 5.7], True),
        (248.2, [90.6, 90.7, 90.5, 90.6], True),  # 2.74 times, and a mean 35 % longer
        (22.4, [17.0, 17.2, 16.2, 17.7], False),  # the largest, not by a clear margin
        (148.0, [90.6, 90.7, 90.5, 90.6], False),
        (40.0, [10.0, 18.0, 5.0, 14.0], False),  # they scatter as far
        (105.0, [5.9] * 2219, False),  # moves the mean by less than a hundredth
        (105.0, [5.9], False),  # two values show no usual one
        (105.0, [0.0, 0.0, 5.9], False),
    ],
)
def test_a_first_value(first: float, others: list[float], is_one: bool) -> None:
    assert is_warm_up(first, others) is is_one


@pytest.mark.parametrize("count", [4, 10, 50])
def test_the_largest_of_noisy_values_is_hardly_ever_one(count: int) -> None:
    """Values of one kind that scatter by a fifth, then by half of their mean."""
    generator = np.random.default_rng(0)
    for spread, most in ((0.2, 2), (0.5, 25)):
        draws = np.maximum(generator.normal(1, spread, (2000, count)), 0.01)
        assert sum(is_warm_up(row[0], row[1:].tolist()) for row in draws) <= most


def prefill(first: float) -> Any:
    """F4 with a prefill of about 90 ms whose first takes `first`."""
    value = made.speculation(5)
    for index, row in enumerate(value["results"]):
        row["egpt_prefill_ms"] = 90.0 + index if index else first
    return value


def test_a_first_record_of_threefold_is_found_by_its_effect() -> None:
    (one,) = [finding for finding in audit(read(prefill(248.0))) if finding.rule == "warm_up"]
    assert "1.34 times as long" in one.message and one.paths == ("results[0]",)
    assert not [finding for finding in audit(read(prefill(96.0))) if finding.rule == "warm_up"]


@pytest.mark.parametrize("count", [4, 400])
def test_whatever_is_corrected_is_said(count: int) -> None:
    """400 records: the first moves their mean by 3 %, is left in it and not spoken of."""
    value = made.frames(count)
    value["eventgpt"]["samples"][0] |= {"s3_time": 0.13, "total_time": 0.29}
    file = read(value)
    stage = file_summary.models(file)["eventgpt"]["stages"]["s3_time"]
    said = any(finding.rule == "warm_up" for finding in audit(file))
    assert stage["corrected"]
    assert said == (stage["corrected"]["mean"] != stage["mean"]) == (count < 9)


def test_a_warm_up_belongs_to_one_model_of_a_row() -> None:
    """Rows that hold both models have one path: the other model's record is left as it is."""
    rows = made.flat(6)
    rows[0]["egpt_stage2_time"], rows[0]["egpt_time"] = 0.9, 1.92
    file = read(rows)
    mine, other = file.of("egpt", corrected=True)[0], file.of("llava", corrected=True)[0]
    assert "cold:stage2_time" in mine.marks and mine.times["stage2_time"] == pytest.approx(0.01)
    assert not other.marks and other.times == file.of("llava")[0].times
    (found,) = [one for one in audit(file) if one.rule == "warm_up"]
    assert found.model == "egpt"


def test_a_warm_up_of_the_second_model_of_a_row_is_told_of_it() -> None:
    """The keys of the second model are not looked for in the first model's record."""
    value = made.speculation(6)
    for index, row in enumerate(value["results"]):
        row["vl_time_ms"] = 9000.0 if index == 0 else 1100.0
        row["vl_prefill_ms"] = 4000.0 if index == 0 else 300.0
        del row["egpt_prefill_ms"]
    file = read(value)
    assert "cold:prefill_ms" in file.of("vl", corrected=True)[0].marks
    assert [one.model for one in audit(file) if one.rule == "warm_up"] == ["vl"]
