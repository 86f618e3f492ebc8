"""What a file holds and no reader takes: further models, empty rows, ids as floats, no rows."""

import copy
from typing import Any

import pytest

from engine.published.audit import AuditFinding, audit
from tests.published.read import synthetic as made
from tests.published.read.synthetic import found, read


def unusable(value: Any) -> list[AuditFinding]:
    return found(value, "unusable")


def third(kind: str) -> Any:
    value = copy.deepcopy(made.EVERY[kind] if kind != "F2" else made.pairs("F2"))
    if kind == "B":
        return value | {"qwen_results": value["eventgpt_results"]}
    if kind == "C":
        return value | {"qwen": value["eventgpt"]}
    rows = value if kind == "A" else value.get("samples") or value["results"]
    for row in rows:
        if kind == "A":
            row |= {"qwen_time": 1.0, "qwen_token_ids": [5, 2]}
        elif kind == "F2":
            row["qwen_tokens"] = [5, 2]
        else:
            row["qwen"] = row["videollava"]
    return value


@pytest.mark.parametrize("kind", ["A", "B", "B'", "C", "D", "E", "F2"])
def test_a_third_model_is_named_once(kind: str) -> None:
    (one,) = unusable(third(kind))
    assert "1 further model is not read" in one.message and "qwen" in one.paths[0]


def test_a_second_list_of_an_unknown_form_is_named() -> None:
    rows = [{"sample": "a", "phi": {"total_time": 1.0}}]
    for value in ({"samples": rows, "results": rows}, made.five() | {"samples": rows}):
        file = read(value)
        (problem,) = [one for one in file.problems if one.kind == "model"]
        assert problem.path in ("samples", "results") and len(file.records) in (1, 8)
    assert not read({"samples": rows}).problems


@pytest.mark.parametrize("row", [{}, {"sample_idx": 1}])
def test_a_row_without_an_answer_is_named(row: Any) -> None:
    value = made.five()
    value["results"][1] = row
    (one,) = unusable(value)
    assert "1 row is without an answer (results[1]" in one.message and read(value).samples == 3


def test_a_count_that_is_no_whole_number_is_left_out() -> None:
    value = made.legacy()
    value["eventgpt_results"][0]["tokens"] = 34.5
    (one,) = unusable(value)
    assert "1 value is not whole (eventgpt_results[0].tokens, 34.5 is not a number of tokens)" in (
        one.message
    )
    assert read(value).of("eventgpt")[0].tokens == 11  # its ids
    assert not found(value, "count_and_ids") and not found(value, "summaries")


@pytest.mark.parametrize(
    "value",
    [[], {"config": {}, "results": [], "errors": []}, {"summary": {}, "samples": []}],
)
def test_a_known_kind_without_rows_says_so(value: Any) -> None:
    file = read(value)
    assert file.status == "failed" and "has no rows" in file.message and not file.records
    assert str(file.group) == "Z no rows" and not audit(file)


def test_times_of_a_single_model_without_a_name_are_no_known_form() -> None:
    times = dict.fromkeys(("load_time", "vision_time", "prefill_time", "total_time"), 0.2)
    file = read([times | {"output": "A car."}])
    assert file.status == "unknown" and "keys 'load_time', 'vision_time'" in file.message


def errors(*names: Any) -> Any:
    value = made.five()
    value["errors"] = [{"sample_idx": name, "error": "No memory"} for name in names]
    return value


def test_errors_of_samples_that_have_a_result_are_no_failures() -> None:
    (one,) = found(errors(1, 1, 1), "failures")
    assert "3 errors name 1 sample with a result" in one.message
    lost, kept = found(errors(7, 7, 8, 1), "failures")
    assert lost.message.startswith("2 of 6 samples failed and are not in the means")
    value = errors()
    value["errors"] = [{"error": "No memory"}] * 2  # without a name: of other samples
    (one,) = found(value, "failures")
    assert one.message.startswith("2 of 6 samples failed")
    assert len(lost.paths) == 3 and kept.message.startswith("1 error names 1 sample")
