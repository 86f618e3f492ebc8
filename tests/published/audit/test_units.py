"""Times in another unit than the file's, by the record and by the model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.published.audit import AuditFinding, audit
from engine.published.read import answer_pairs
from tests.published.read import synthetic as made
from tests.published.read.synthetic import read

FILES: dict[str, Any] = {
    "A": made.flat(),
    "B": made.legacy(),
    "B'": made.newest(),
    "C": made.frames(),
    "D": made.five(),
    "E": made.parallel(),
    "F1": made.pairs("F1"),
    "F4": made.speculation(),
    "H": made.texts(),
}


def found(value: Any, rule: str = "implausible") -> list[AuditFinding]:
    return [finding for finding in audit(read(value)) if finding.rule == rule]


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


@pytest.mark.parametrize("name", FILES)
def test_a_file_in_its_unit_has_no_finding(name: str) -> None:
    assert not found(FILES[name]) and not answer_pairs.is_doubtful(read(FILES[name]))


@pytest.mark.parametrize("factor", [1000.0, 0.001])
@pytest.mark.parametrize("name", FILES)
def test_a_whole_file_in_another_unit_is_found(name: str, factor: float) -> None:
    findings = found(scaled(FILES[name], factor))
    assert findings and answer_pairs.is_doubtful(read(scaled(FILES[name], factor)))
    for one in findings:
        assert one.severity == "error" and one.model and "not in the file's unit" in one.message


@pytest.mark.parametrize(
    ("name", "model"),
    [("A", "egpt_"), ("A", "llava_"), ("B", "eventgpt"), ("C", "videollava"), ("D", "videollava")],
)
@pytest.mark.parametrize("factor", [1000.0, 0.001])
def test_one_model_in_another_unit_is_named(name: str, model: str, factor: float) -> None:
    file = read(scaled(FILES[name], factor, model))
    assert [doubt.model for doubt in answer_pairs.doubts(file)] == [model.rstrip("_")]
    assert answer_pairs.is_doubtful(file) and answer_pairs.apart(file) is None


def test_the_limits_stand_in_the_sentence() -> None:
    (one,) = found(scaled(made.flat(), 1000.0, "egpt_"))
    assert "a token takes 90.91 s (median)" in one.message
    assert "0.1 ms to 5 s is possible" in one.message
    assert one.figures == {"ms": pytest.approx(90_909, rel=1e-3), "possible_from_ms": 0.1,
                           "possible_to_ms": 5000.0}  # fmt: skip
    (one,) = found(scaled(made.frames(), 1000.0, "eventgpt"))
    assert "a prefill takes 60 s" in one.message and "1 ms to 30 s" in one.message


def test_models_a_hundredfold_apart_are_named_together() -> None:
    """Each possible alone: 1.5 s and 3 ms per token."""
    value = scaled(made.newest(), 20.0, "eventgpt")
    assert not found(scaled(made.newest(), 0.5, "videollava")) and not found(value)
    both = scaled(value, 1 / 20, "videollava")
    (one,) = found(both)
    assert "models of the same size do not differ by a factor of" in one.message
    assert answer_pairs.is_doubtful(read(both))


def test_means_without_rows_are_looked_at_too() -> None:
    value = made.wallclock()
    value["stage_timing"] = {"eventgpt": {"decode_ms": 0.35, "avg_tokens": 34.0},
                             "videollava": {"decode_ms": 732.0, "avg_tokens": 50.0}}  # fmt: skip
    (one,) = found(value)
    assert one.paths == ("stage_timing.eventgpt.decode_ms",) and "(EventGPT)" in one.message
    value["stage_timing"]["eventgpt"]["decode_ms"] = 346.0
    assert not found(value)


def test_a_record_without_a_total_is_compared_in_the_same_unit() -> None:
    value = made.flat()
    del value[0]["egpt_time"]
    assert not found(value, "units")
    for key in ("egpt_stage1_time", "egpt_stage2_time", "egpt_stage3_time"):
        value[0][key] /= 1000
    (one,) = found(value, "units")
    assert "1 record takes about a thousandth" in one.message and one.paths == ("$[0]",)


def test_a_record_without_a_count_is_not_compared_per_token() -> None:
    value = json.loads(json.dumps(made.legacy()))
    for key in ("token_ids", "tokens"):
        del value["videollava_results"][0][key]
    assert not found(value, "units")


def test_answers_are_compared_where_no_token_was_counted() -> None:
    value = made.texts(empty=True)
    assert not found(value)
    for row in value["results"]:
        row["egpt_time"] *= 1000
    (one,) = found(value)
    assert (
        "An answer takes 400 s for EventGPT (egpt) and 900 ms for Video-LLaVA (vl)" in one.message
    )


def test_no_other_rule_makes_sentences_of_doubtful_times() -> None:
    """A stated total in another unit leaves no stage out; a ratio of times says nothing."""
    value = scaled(made.parallel(ids_too=False), 1000.0, "videollava")
    value["statistics"]["videollava"] = {"total_time_avg": 0.3}
    assert found(value) and not found(value, "left_out") and found(value, "summaries")
    assert found(made.flat(), "unequal") and not found(scaled(made.flat(), 1e3, "egpt"), "unequal")
