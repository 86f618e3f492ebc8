"""A value that cannot be used is named once, and nothing is called wrong for want of it."""

import json
from functools import cache
from typing import Any

import pytest

from engine.published.audit import AuditFinding, audit
from engine.published.read import file_summary
from tests.published.read import synthetic as made
from tests.published.read.synthetic import found, read

BAD: tuple[Any, ...] = (float("nan"), float("inf"), -1.0, "0.8", True, [0.8], None)
RIGHT: dict[str, Any] = {
    "A": (made.flat(), lambda v: v[0], "egpt_stage3_time"),
    "A total": (made.flat(), lambda v: v[1], "llava_time"),
    "B": (made.legacy(), lambda v: v["eventgpt_results"][0], "stage4_time"),
    "B warm-up": (made.legacy(), lambda v: v["eventgpt_results"][0], "stage3_time"),
    "B ids": (made.legacy(), lambda v: v["videollava_results"][0], "token_ids"),
    "C": (made.frames(40), lambda v: v["eventgpt"]["samples"][1], "s4_time"),
    "D": (made.five(), lambda v: v["results"][2]["videollava"], "total_time"),
    "D speed-up": (made.five(), lambda v: v["results"][0]["parallel"], "parallel_speedup"),
    "E": (made.parallel(), lambda v: v["results"][0]["eventgpt"], "draft_time"),
    "F4": (made.speculation(), lambda v: v["results"][0], "vl_decode_ms"),
    "G": (made.wallclock(), lambda v: v["baseline_per_sample"][0], "decode_ms"),
}


def planted(name: str, bad: Any) -> Any:
    """The file with one value replaced."""
    value, at, key = RIGHT[name]
    broken = json.loads(json.dumps(value))
    at(broken)[key] = bad
    return broken


def rules(findings: tuple[AuditFinding, ...]) -> set[str]:
    return {finding.rule for finding in findings} - {"unusable"}


@cache
def right_rules(name: str) -> set[str]:
    """The rules that the file as it was trips; its values are those of RIGHT."""
    return rules(audit(read(RIGHT[name][0])))


# a number in the place of ids or of a speed-up is a number
NUMBERS = {("D speed-up", "-1.0"), ("B ids", "-1.0"), ("B ids", "inf"), ("B ids", "nan")}
CASES = [(name, bad) for name in RIGHT for bad in BAD if (name, repr(bad)) not in NUMBERS]


@pytest.mark.parametrize(("name", "bad"), CASES)
def test_an_unusable_value_is_named_once_and_trips_no_other_rule(name: str, bad: Any) -> None:
    findings = audit(read(planted(name, bad)))
    assert rules(findings) <= right_rules(name)
    named = [one for one in findings if one.rule == "unusable"]
    assert len(named) == (bad is not None)  # null says itself that there is nothing
    for one in named:
        assert one.figures == {"values": 1.0} and one.message.startswith("1 value is")
        assert one.paths[0].endswith(RIGHT[name][2]) and "None" not in one.message


def test_a_wrong_summary_is_found_beside_a_missing_value() -> None:
    """Control: no value in the place of the missing one makes these figures."""
    broken = planted("B", None)
    assert not found(broken, "summaries")
    for stated in (0.01, 1000.0):
        broken["eventgpt_summary"]["stage4_avg"] = stated
        (one,) = found(broken, "summaries")
        assert "over 3 rows" in one.message


def test_a_wrong_total_is_found_beside_a_missing_value() -> None:
    broken = planted("A", None)
    assert not found(broken, "totals")
    (bar, _) = file_summary.bars(read(broken))
    assert bar.parts["unaccounted"] == pytest.approx(0, abs=1e-6)
    gap = file_summary.models(read(broken))["egpt"]["max_total_minus_stages"]
    assert gap == pytest.approx(0, abs=1e-9)
    broken[1]["egpt_time"] = 0.5
    (one,) = found(broken, "totals")
    assert one.message.startswith("EventGPT (egpt): 1 total is not the sum of its stages")
    assert one.paths == ("$[1]",)


@pytest.mark.parametrize("bad", [None, "row"])
def test_a_row_that_is_none_does_not_make_the_summary_wrong(bad: Any) -> None:
    value = made.legacy()
    value["eventgpt_results"][1] = bad
    findings = audit(read(value))
    assert rules(findings) <= right_rules("B") | {"one_sided"}
    (named,) = [one for one in findings if one.rule == "unusable"]
    assert named.paths == ("eventgpt_results[1]",)
    value["eventgpt_summary"]["samples"] = 7  # control
    assert any("the number of rows is 4" in one.message for one in audit(read(value)))


def test_a_model_that_is_no_object_is_named() -> None:
    value = made.newest()
    before = rules(audit(read(value)))
    value["samples"][0]["eventgpt"] = []
    value["samples"][1]["eventgpt"] |= {"stage4_time": 0.9, "total_time": 0.935}
    value["summary"]["eventgpt"]["total_time_avg"] = (0.735 + 0.935 + 0.835) / 3
    findings = audit(read(value))
    assert rules(findings) <= before | {"one_sided"}
    (named,) = [one for one in findings if one.rule == "unusable"]
    assert named.paths == ("samples[0].eventgpt",) and "is not an object" in named.message


def test_a_count_whose_ids_are_lost_may_hold_the_prompt() -> None:
    broken = planted("B ids", None)
    assert read(broken).of("videollava", corrected=True)[0].tokens is None
    (one,) = found(broken, "prompt_counted")
    assert "in 3 of 4 answers; 617.0 tokens on average, of which 20.0 are new" in one.message


def test_a_text_is_named_where_the_form_or_other_rows_have_numbers() -> None:
    value = made.five()
    for row in value["results"]:
        row["eventgpt"] |= {"mood": "fast", "tokens_per_sec": "90", "speed": 1.0}
    value["results"][1]["eventgpt"]["speed"] = "fast"  # no form has this key, nor "mood"
    (one,) = found(value, "unusable")
    assert "5 values are text" in one.message and "mood" not in str(one.paths)
    assert "results[1].eventgpt.speed" in one.paths
