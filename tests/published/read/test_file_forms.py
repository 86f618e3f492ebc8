"""Groups are told apart by keys; every group gives its figures; bad input, and what no reader takes
(further models, empty rows), gives one sentence."""

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest

from engine.published.audit import AuditFinding, audit
from engine.published.claims.headlines import headlines
from engine.published.read import file_summary, find, read_bytes
from engine.published.read import read as read_paths
from tests.published.read import synthetic as made
from tests.published.read.synthetic import found, read
from tests.published.read.test_imported_sets import figures

SHAPES = {
    **made.EVERY,
    "A newer": made.flat(other="videollava", key="videollava"),
    "C older": made.frames(old=True),
    "D semantic": made.five(semantic=True),
    "E without ids": made.parallel(ids_too=False),
    "F2": made.pairs("F2"),
    "F3": made.pairs("F3"),
    "F4": made.speculation(),
    "H with times": made.metrics(),
}

LIKE_ANOTHER = {"A newer", "C older", "D semantic", "E without ids"}  # of the shapes


@pytest.mark.parametrize("name", SHAPES)
def test_each_shape_is_its_group_whatever_the_file_is_called(name: str) -> None:
    file = read(SHAPES[name], "any.json")
    assert file.group.title[0] == name[0] and not file.problems
    assert file.status == ("failed" if name == "Z" else "ok")
    units = {"F2": "-", "F3": "-", "F4": "ms", "G": "ms"}
    assert file.unit == units.get(name, "s")
    document = file_summary.as_dict(file)
    assert len(file_summary.frame(file)) == len(file.records)
    assert json.loads(json.dumps(document, allow_nan=False))["group"] == str(file.group)
    file = read(made.single(SHAPES[name]))
    assert file.group.title[0] == name[0] and file.samples == (0 if name == "Z" else 1)


def test_flat_rows_and_legacy_rows_that_lose_the_prompt() -> None:
    mine, other = file_summary.models(read(made.flat())).values()
    assert mine["n"] == other["n"] == 4 and mine["tokens_per_s"] == pytest.approx(11.0)
    assert mine["stages"]["stage3_time"]["mean"] == pytest.approx(1.0)
    assert [mine["stages"][key]["part"] for key in ("stage1_time", "time")] == ["load", "total"]
    assert mine["tokens_recorded"] == 11 and other["tokens_recorded"] == 22
    file = read(made.legacy())
    mine, other = file_summary.models(file).values()
    assert other["tokens_recorded"] == 617 and other["tokens_corrected"] == 20
    assert other["prompt_ids"] == 597 and other["max_tokens"] == 20
    recorded, corrected = file.of("videollava")[0], file.of("videollava", True)[0]
    assert recorded.ids and len(recorded.ids) == 617
    assert corrected.ids and len(corrected.ids) == 20 and corrected.marks == {"prompt"}
    assert [r.path for r in file.records] == [r.path for r in file.corrected]
    assert file.records[0].path == "eventgpt_results[0]"
    stage = mine["stages"]["stage3_time"]
    assert stage["mean"] == pytest.approx((0.1 + 3 * 0.005) / 4)
    assert stage["mean_without_first"] == pytest.approx(0.005)


def test_an_early_flat_parallel_row_whose_second_model_failed() -> None:
    row = {"sample_idx": 0, "egpt_prefill_time": 0.2, "egpt_prefill_length": 637,
           "vl_prefill_time": 0, "vl_prefill_length": 0, "draft_tokens": 30, "draft_time": 0.5,
           "egpt_error": None, "vl_error": "no shape"}  # fmt: skip
    file = read({"config": {}, "results": [row], "errors": [made.failure(1)]})
    assert file.group.title[0] == "E" and {record.model for record in file.records} == {"eventgpt"}


def test_who_answered() -> None:
    def identity(value: Any, model: str) -> tuple[str | None, bool | None]:
        found = read(value).identities[model]
        return found.family, found.agrees

    assert identity(made.flat(), "llava") == ("llava", True)
    assert identity(made.flat(other="videollava", key="videollava"), "videollava") == (
        "video_llava", True)  # fmt: skip
    mislabelled = made.flat()
    mislabelled[0]["llava_memory_model_mb"] = 14051.8
    assert identity(mislabelled, "llava") == ("video_llava", False)
    assert identity(made.legacy(), "videollava") == ("llava", False)
    assert identity(made.frames(), "videollava") == ("llava", False)
    assert identity(made.five(), "videollava") == ("video_llava", True)
    assert identity(made.pairs("F1"), "videollava") == ("video_llava", True)
    assert identity(made.texts(), "vl") == (None, None)


# bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is not JSON (it is empty)"),
        (b"PK\x03\x04" + b"\0" * 100, "is not JSON"),  # a zip, whatever is in it
        (b"\xff\xfe\x00\xd8", "is not JSON"),
        (b"hello", "is not JSON (Expecting value: line 1"),
        (b'{"config": {}, "results": [{"a"', "copy the whole file again"),
        (b'{"config": 1,}', "line 1"),
        (b"[" * 10_000 + b"]" * 10_000, "nested too deep"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "nested too deep"),
        (b"[" + b"9" * 5000 + b"]", "is not JSON (Exceeds the limit"),
        (b"{}", "an empty object"),
        (b"[1, 2, null]", "a list with only 1"),
        (b"null", "only null"),
        (b'"x"', "only 'x'"),
        (b'{"dataset": "1s", "percentiles": {}}', "(keys 'dataset', 'percentiles')"),
        (b'{"results": []}', "keys 'results'"),
        (b'{"results": {"a": 1}, "samples": 3}', "keys 'results', 'samples'"),
        (b'{"results": [null, 5, "x"]}', "keys 'results'"),
        (b'{"eventgpt": 5, "videollava": []}', "keys 'eventgpt', 'videollava'"),
        (made.to_bytes(dict.fromkeys("abcdefghijk", 1)), "'e', 'f' and 5 more)"),
    ],
)
def test_what_is_no_result_file_says_why(data: bytes, words: str) -> None:
    file = read_bytes("one.json", data)
    assert file.status == "unknown" and words in file.message and "\n" not in file.message
    assert file.message.startswith("one.json") and not file.records
    assert file_summary.as_dict(file)["status"] == "unknown"


@pytest.mark.parametrize("nested", [True, False])
def test_an_unknown_form_is_read_by_the_general_rule_and_says_so(nested: bool) -> None:
    def of(model: str, values: dict[str, Any]) -> dict[str, Any]:
        return {model: values} if nested else {f"{model}_{key}": v for key, v in values.items()}

    values: dict[str, Any] = {"prefill_time": 0.2, "decode_time": 0.9, "total_time": 0.5,
                              "token_ids": [5, 6, 7], "output": "A car."}  # fmt: skip
    rows = [{"sample_idx": n, "speed_time": 1.0, **of("phi_3", values), **of("phi", values)}
            for n in range(4)]  # fmt: skip
    for value in (rows, {"config": {"gpu": "A"}, "results": rows}):
        file = read(value)
        assert str(file.group) == "? unknown form, read by the general rule"
        assert file.status == "ok" and sorted(file.models) == ["phi", "phi_3"]
        one = file.of("phi_3")[2]
        assert (one.sample, one.tokens, one.text) == ("2", 3, "A car.")
        assert one.ms("decode") == 900 and one.ms("total") == 500
        assert not file.draft
        assert not audit(file)  # neither its units nor its vocabulary are known
        (_, decoding, _) = headlines([file])
        assert not decoding.evidence and "unknown form" in str(decoding.without)


def test_each_model_of_an_unknown_form_gets_its_own_values_only() -> None:
    names = ("gpt_4o", "gpt_4o_mini", "qwen2", "qwen2.5-vl", "Qwen/Qwen2-VL")
    flat_keys = {f"{name}_total_time": index for index, name in enumerate(names)}
    nested = {name: {"total_time": index, "memory_mb": 7} for index, name in enumerate(names)}
    for row in (flat_keys, nested):
        file = read([{"sample": "a", **row}, {"sample": "b", **row}])
        assert file.models == names
        for index, name in enumerate(names):
            assert [record.times for record in file.of(name)] == [{"total_time": index}] * 2
    late = read([{"a_total_time": 1.0}] * 70 + [{"b_total_time": 1.0}])
    assert late.models == ("a", "b")
    parts = (
        "gpu_total_time",
        "warmup_time",
        "question_text",
        "load_time",
        "llm_time",
        "label_text",
    )
    assert read([dict.fromkeys(parts, 1.0)]).status == "unknown"


def test_a_line_break_in_a_key_makes_no_line_of_the_output() -> None:
    row = {"phi_total_time": 1.0, "phi_output": "A car.", "a\n  error: EventGPT is wrong": 2.0}
    assert all("\n" not in figure.name for figure in read([row]).figures)


def test_values_that_cannot_be_used_are_left_out_and_named() -> None:
    rows = made.flat(6)
    rows[0]["egpt_time"] = float("nan")
    rows[1]["egpt_time"] = float("inf")
    rows[2]["egpt_time"] = "1.03"
    rows[3]["egpt_time"] = -1.0
    rows[4]["egpt_time"] = None
    rows[5]["egpt_token_ids"] = [1, "two", 3]
    rows.append("no object")  # type: ignore[arg-type]
    file = read(rows)
    assert [p.kind for p in file.problems] == [
        "type", "finite", "finite", "text", "negative", "type"]  # fmt: skip
    assert file_summary.models(file)["egpt"]["stages"]["time"]["n"] == 1
    assert file.of("egpt")[5].ids is None
    json.dumps(file_summary.as_dict(file), allow_nan=False)


@pytest.mark.loads
@pytest.mark.parametrize("name", [name for name in SHAPES if name not in LIKE_ANOTHER])
def test_odd_values_never_stop_a_file(name: str) -> None:
    """Every third value of the first rows, one at a time, replaced by something else."""
    odd = (None, "x", -1, True, [], {}, [[1]], 10**400, "\ud800", 0, 1e308, 1e-320, -5.0)
    value = json.loads(json.dumps(SHAPES[name]))
    for number, (holder, key) in enumerate(places(value)[::3]):
        before = holder[key]
        holder[key] = odd[number % len(odd)]
        file = read_bytes(name, made.to_bytes(value))
        json.dumps(file_summary.as_dict(file, audit(file)), allow_nan=False)
        assert all(map(math.isfinite, figures(file)))
        assert len(headlines([file])) == 3
        holder[key] = before


def places(value: Any, depth: int = 3) -> list[tuple[Any, Any]]:
    """(holder, key) of the values in the first two rows, three levels deep."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else list(enumerate(value))[:2]
    for key, inner in items:
        found.append((value, key))
        if isinstance(inner, (dict, list)) and depth:
            found += places(inner, depth - 1)
    return found


def test_a_file_of_two_hundred_megabytes_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    with path.open("wb") as stream:
        stream.truncate(200 * 2**20)
    (file,) = read_paths(find([path]))
    for one in (file, read_bytes("big.json", bytes(200 * 2**20))):
        assert one.status == "unknown" and "has 200 MB" in one.message


@pytest.mark.parametrize("half", ["\\uDFFF x", "\\udc00\\ud800"])
def test_half_a_surrogate_pair_is_replaced_everywhere(half: str) -> None:
    """A page and a file of UTF-8 refuse one; whole pairs and all other letters stay."""
    value = made.flat()
    value[0]["query"] = value[1]["id"] = value[2]["egpt"] = "HERE"
    text = json.dumps(value).replace("HERE", f"é {half} \\ud83d\\ude00")
    file = read_bytes("a.json", text.encode())
    told = [file.records[0].question, file.records[2].sample, file.records[4].text or ""]
    for one in told:
        assert "\N{REPLACEMENT CHARACTER}" in one and "\N{GRINNING FACE}" in one and "é" in one
        assert one.encode("utf-8")
    whole = read_bytes("a.json", json.dumps(value).replace("HERE", "\\ud83d\\ude00").encode())
    assert whole.records[0].question == "\N{GRINNING FACE}"


@pytest.mark.parametrize("wrap", [list, lambda rows: {"results": rows},
                                  lambda rows: {"eventgpt": {"samples": rows}}])  # fmt: skip
def test_a_list_that_is_too_long_is_refused(wrap: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.published.read.read_files.LIMIT_ROWS", 5)
    file = read(wrap([{"egpt_time": 1.0, "stage5_time": 1.0}] * 6))
    assert file.status == "unknown" and "has a list of 6 rows" in file.message
    assert read(made.flat(5)).status == "ok"


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
    "value", [[], {"config": {}, "results": [], "errors": []}, {"summary": {}, "samples": []}]
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
