"""Times: units in doubt, warm-ups in decoding, and stages that a total, a rate or a speed-up leaves
out."""

from typing import Any

import pytest

from engine.published.audit import AuditFinding, audit
from engine.published.read import ResultFile, answer_pairs
from tests.published.read import synthetic as made
from tests.published.read.synthetic import found, read

FILES: dict[str, Any] = {
    **{name: made.EVERY[name] for name in ("A", "B", "B'", "C", "D", "E", "H")},
    "F1": made.pairs("F1"),
    "F4": made.speculation(),
}


def rules(file: ResultFile) -> set[str]:
    return {finding.rule for finding in audit(file)}


def scaled(value: Any, factor: float, model: str = "") -> Any:
    """The file with all its times, or those under keys and prefixes of a model, times a factor."""
    if isinstance(value, list):
        return [scaled(item, factor, model) for item in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for key, inner in value.items():
        mine = key.startswith(model)
        if isinstance(inner, (dict, list)):
            made[key] = scaled(inner, factor, "" if mine else model)
        else:
            timed = mine and key.endswith(("time", "_ms")) and not isinstance(inner, str)
            made[key] = inner * factor if timed else inner
    return made


@pytest.mark.parametrize("factor", [1000.0, 0.001])
@pytest.mark.parametrize("name", FILES)
def test_a_whole_file_in_another_unit_is_found(name: str, factor: float) -> None:
    """And no other rule makes a sentence of its times."""
    told = rules(read(FILES[name]))
    assert "implausible" not in told and not answer_pairs.is_doubtful(read(FILES[name]))
    file = read(scaled(FILES[name], factor))
    assert answer_pairs.is_doubtful(file)
    doubts = [one for one in audit(file) if one.rule == "implausible"]
    assert doubts and all(one.severity == "error" and one.model for one in doubts)
    assert all("not in the file's unit" in one.message for one in doubts)
    if name in ("B", "D", "F4"):
        assert told & {"warm_up", "speedup"}  # control: there is something to tell
        assert not rules(file) & {"warm_up", "totals", "placeholder", "left_out"}
    assert name != "F4" or "speedup" not in rules(file)


def test_the_limits_stand_in_the_sentence() -> None:
    (one,) = found(scaled(made.flat(), 1000.0, "egpt_"), "implausible")
    assert "a token takes 90.91 s (median)" in one.message
    assert "0.1 ms to 5 s is possible" in one.message
    assert one.figures == {"ms": pytest.approx(90_909, rel=1e-3), "possible_from_ms": 0.1,
                           "possible_to_ms": 5000.0}  # fmt: skip
    (one,) = found(scaled(made.frames(), 1000.0, "eventgpt"), "implausible")
    assert "a prefill takes 60 s" in one.message and "1 ms to 30 s" in one.message


@pytest.mark.parametrize(("slow", "fast"), [("eventgpt", "videollava"), ("videollava", "eventgpt")])
def test_models_a_hundredfold_apart_are_named_together(slow: str, fast: str) -> None:
    """Each possible alone: 1.5 s and 3 ms per token."""
    value = scaled(made.newest(), 20.0, slow)
    both = scaled(value, 1 / 20, fast)
    for possible in (value, scaled(made.newest(), 1 / 20, fast)):
        assert not found(possible, "implausible")
    (one,) = found(both, "implausible")
    assert "models of the same size do not differ by a factor of" in one.message
    assert answer_pairs.is_doubtful(read(both))


def test_means_without_rows_are_looked_at_too() -> None:
    value = made.wallclock()
    value["stage_timing"] = {"eventgpt": {"decode_ms": 0.35, "avg_tokens": 34.0},
                             "videollava": {"decode_ms": 732.0, "avg_tokens": 50.0}}  # fmt: skip
    (one,) = found(value, "implausible")
    assert one.paths == ("stage_timing.eventgpt.decode_ms",) and "(EventGPT)" in one.message
    value["stage_timing"]["eventgpt"]["decode_ms"] = 346.0
    assert not found(value, "implausible")


def test_a_record_without_a_total_is_compared_in_the_same_unit() -> None:
    value = made.flat()
    del value[0]["egpt_time"]
    assert not found(value, "units")
    for key in ("egpt_stage1_time", "egpt_stage2_time", "egpt_stage3_time"):
        value[0][key] /= 1000
    (one,) = found(value, "units")
    assert "1 record takes about a thousandth" in one.message and one.paths == ("$[0]",)
    other = made.legacy()
    for key in ("token_ids", "tokens"):  # without a count it is not compared per token
        del other["videollava_results"][0][key]
    assert not found(other, "units")


def test_answers_are_compared_where_no_token_was_counted() -> None:
    value = made.texts(empty=True)
    assert not found(value, "implausible")
    for row in value["results"]:
        row["egpt_time"] *= 1000
    (one,) = found(value, "implausible")
    assert (
        "An answer takes 400 s for EventGPT (egpt) and 900 ms for Video-LLaVA (vl)" in one.message
    )


def test_no_other_rule_makes_sentences_of_doubtful_times() -> None:
    """A stated total in another unit leaves no stage out; a ratio of times says nothing."""
    value = scaled(made.parallel(ids_too=False), 1000.0, "videollava")
    value["statistics"]["videollava"] = {"total_time_avg": 0.3}
    told = rules(read(value))
    assert {"implausible", "summaries"} <= told and "left_out" not in told
    assert found(made.flat(), "unequal") and not found(scaled(made.flat(), 1e3, "egpt"), "unequal")


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_total_is_judged_by_the_stages_that_are_there(stage: int) -> None:
    rows = made.flat()
    rows[1]["egpt_time"] = 2.0
    assert found(rows, "totals")[0].paths == ("$[1]",)
    for row in rows:
        del row[f"egpt_stage{stage}_time"]
    assert not found(rows, "totals")  # the absent stage may have taken the rest
    rows[1]["egpt_time"] = 0.005
    assert found(rows, "totals")[0].paths == ("$[1]",)


def slow(times: float, tokens: int = 11) -> Any:
    """B whose first decoding takes so many times as long, with so many tokens."""
    value = made.legacy(6)
    for index, row in enumerate(value["eventgpt_results"]):
        row["stage4_time"] += 0.01 * index
        row["total_time"] = sum(row[f"stage{n}_time"] for n in (1, 2, 3, 4))
    first = value["eventgpt_results"][0]
    first["total_time"] += (times - 1) * first["stage4_time"]
    first["stage4_time"] *= times
    first |= {"tokens": tokens, "token_ids": made.ids(0, tokens), "output": "A road."}
    return value


def decoding(value: Any) -> list[AuditFinding]:
    return [one for one in found(value, "warm_up") if "stage4_time" in one.message]


def test_a_first_decoding_is_a_warm_up_by_the_token() -> None:
    (one,) = decoding(slow(4.0, tokens=12))
    assert one.model == "eventgpt" and one.paths == ("eventgpt_results[0]",)
    mine = read(slow(4.0, tokens=12)).of("eventgpt", corrected=True)[0]
    assert "cold:stage4_time" in mine.marks
    assert mine.times["stage4_time"] == pytest.approx(0.83)  # the mean of the others


def test_a_first_record_in_another_unit_is_no_warm_up() -> None:
    """Its stages stay as they are, so that the units are found in doubt."""
    rows = made.flat(6)
    for index, row in enumerate(rows):
        row["egpt_stage3_time"] += 0.01 * index
        row["egpt_time"] += 0.01 * index
    for key in [key for key in rows[0] if key.startswith("egpt") and key.endswith("_time")]:
        rows[0][key] *= 1000
    assert not found(rows, "warm_up")
    (one,) = found(rows, "units")
    assert one.paths == ("$[0]",)


def test_a_long_answer_and_a_short_one_are_no_warm_up() -> None:
    assert not decoding(slow(4.0, tokens=66))  # six times the tokens
    assert not decoding(slow(1.0, tokens=2))  # slow by the token, as short answers are


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
