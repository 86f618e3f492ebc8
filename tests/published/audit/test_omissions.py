"""A total, a rate or a speed-up that leaves a stage out is found, and only then."""

from typing import Any

import pytest

from tests.published.read import synthetic as made
from tests.published.read.synthetic import found


def varied(value: Any) -> Any:
    """Group A whose times differ from row to row, so that no sum is right by accident."""
    for index, row in enumerate(value):
        for model in ("egpt", "llava"):
            for stage in (1, 2, 3):
                row[f"{model}_stage{stage}_time"] *= 1 + 0.1 * index * stage
            row[f"{model}_time"] = sum(row[f"{model}_stage{n}_time"] for n in (1, 2, 3))
    return value


def of(row: Any, model: str, *stages: int) -> float:
    return float(sum(row[f"{model}_stage{stage}_time"] for stage in stages))


@pytest.mark.parametrize("value", [varied(made.flat()), made.newest(), made.five()])
def test_whole_totals_have_no_finding(value: Any) -> None:
    assert not found(value, "left_out")


@pytest.mark.parametrize("key", ["time", "total_time", "wall_ms", "latency"])
def test_a_total_by_its_form_or_its_name(key: str) -> None:
    rows = varied(made.flat(6))
    for row in rows:
        row[f"llava_{key}"] = of(row, "llava", 2, 3) * (1000 if key.endswith("_ms") else 1)
        row["llava_thing_time"] = of(row, "llava", 2, 3)  # no total by its name
    (one,) = found(rows, "left_out")
    assert one.model == "llava" and one.message.startswith(
        f"llava-1.5-7b-hf (llava): {key} does not include stage1_time in all 6 records; the "
        "first states"
    )
    assert len(one.paths) == 6 and "its stages sum to 2,300 ms" in one.message
    assert not found(rows, "totals")  # one fault is told once


def test_most_records_have_to_agree() -> None:
    rows = varied(made.flat(6))
    for row in rows[:4]:
        row["llava_e2e_time"] = of(row, "llava", 1, 3)
    for row in rows[4:]:
        row["llava_e2e_time"] = of(row, "llava", 1, 2)
    assert not found(rows, "left_out")
    rows[4]["llava_e2e_time"] = of(rows[4], "llava", 1, 3)
    (one,) = found(rows, "left_out")
    assert "e2e_time does not include stage2_time in 5 of 6 records" in one.message


def test_small_stages_in_a_row_are_missing_together_and_the_summary_is_not_blamed() -> None:
    value = made.legacy(8)
    rows = value["videollava_results"]
    for row in rows:
        row["stage1_time"], row["stage2_time"] = 0.0101, 0.009  # each is no more than rounding
        row["total_time"] = row["stage3_time"] + row["stage4_time"]
    whole = [sum(row[f"stage{n}_time"] for n in (1, 2, 3, 4)) for row in rows]
    value["videollava_summary"]["total_avg"] = sum(whole) / len(whole)
    (one,) = found(value, "left_out")
    assert "does not include stage1_time, stage2_time in all 8 records" in one.message
    assert not [one for one in found(value, "summaries") if "total_avg" in one.message]
    value["videollava_summary"]["stage4_avg"] = 99.0  # control
    assert "stage4_avg" in str(found(value, "summaries"))


@pytest.mark.parametrize(
    ("count", "factor", "trips"), [(6, 1.02, 0), (6, 1.0, 1), (2, 1.001, 0), (2, 1.0, 1)]
)
def test_a_number_near_a_sum_is_not_one_and_few_records_agree_exactly(
    count: int, factor: float, trips: int
) -> None:
    rows = varied(made.flat(count))
    for row in rows:
        row["llava_elapsed_time"] = factor * of(row, "llava", 1, 3)
    assert len(found(rows, "left_out")) == trips


def rated(key: str, tokens: float, *stages: int) -> Any:
    """Group D with a rate or a time per token of these stages."""
    value = made.five(4)
    for row in value["results"]:
        inner = row["videollava"]
        spent = sum(inner[f"stage{stage}_time"] for stage in stages)
        count = len(inner["output_tokens"]) - 1 + tokens
        inner[key] = count / spent if "sec" in key or "tps" in key else spent / count
    return value


@pytest.mark.parametrize("key", ["tokens_per_sec", "tps", "avg_token_time", "time_per_token"])
def test_a_rate_without_the_decoding(key: str) -> None:
    for tokens, *stages in ((0, 5), (1, 5), (0, 4, 5), (1, 1, 2, 3, 4, 5)):
        assert not found(rated(key, tokens, *stages), "per_token")
    value = rated(key, 1, 5)
    for row in value["results"]:
        row["videollava"][key] *= 1.05
    assert not found(value, "per_token")
    (one,) = found(rated(key, 1, 4), "per_token")
    assert f"all 4 records have a {key} that does not fit the decoding" in one.message
    assert "the time of stage4_time only" in one.message
    (one,) = found(rated(key, 1, *[5] * 8), "per_token")
    assert "none of its times" in one.message


def test_a_rate_beside_no_decoding_time_is_not_judged() -> None:
    value = made.parallel(ids_too=False)
    for row in value["results"]:
        row["videollava"] |= {"tokens_per_sec": 90.0, "output_tokens": made.ids(1, 40)}
    assert not found(value, "per_token")


def test_the_flat_form_of_h_leaves_stages_out_and_states_a_speed_up_that_nothing_gives() -> None:
    value = made.metrics()
    (one,) = found(value, "left_out")
    assert one.message == (
        "EventGPT (egpt): egpt_complete_time does not include draft_time in all 5 records; the "
        "first states 90 ms, its stages sum to 490 ms."
    )
    value["statistics"]["egpt_wall_avg"] = 0.48
    (one,) = [each for each in found(value, "left_out") if "wall_avg" in each.message]
    assert one.model == "egpt" and "does not include vision_time" in one.message
    (one,) = found(value, "impossible")
    assert one.figures["stated"] == 8.0 and one.figures["implied_ms"] == pytest.approx(162.5)
    assert one.message == (
        "The stated speedup of 8.00 implies 162.5 ms per answer on average. But Video-LLaVA (vl) "
        "alone takes 1,300 ms, of which prefill takes 300 ms, and EventGPT (egpt) takes 490 ms. "
        "So the speed-up does not include all measured stages."
    )
    for row in value["results"]:
        row["speedup"] = 1.3 / 0.49  # EventGPT alone against the target alone
    for right in (value, made.five(), made.speculation()):
        assert not found(right, "impossible")


def test_an_assumed_acceptance_is_said_to_be_one() -> None:
    value = made.metrics()
    (one,) = found(value, "estimate")
    assert one.message == (
        "The stated acceptance of 40.0% is the same number in all 5 rows: it was assumed, not "
        "measured."
    )
    value["results"][1]["estimated_acceptance_rate"] = 0.5
    assert not found(value, "estimate")
