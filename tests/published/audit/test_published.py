"""Each planted fault is found and told in words that fit, and right files have no finding."""

import re
from typing import Any

import pytest

from engine.published.audit import RULES, SEVERITIES, audit
from engine.published.audit.findings import SEARCHES
from tests.published.read import synthetic as made
from tests.published.read.synthetic import found, read


def rules(value: Any) -> set[str]:
    return {finding.rule for finding in audit(read(value))}


def planted(value: Any, *changes: tuple[str, Any]) -> Any:
    """The file with values replaced, each at a path of keys and places with slashes between."""
    for path, new in changes:
        *inner, last = [int(key) if key.isdigit() else key for key in path.split("/")]
        holder = value
        for key in inner:
            holder = holder[key]
        holder[last] = new(holder[last]) if callable(new) else new
    return value


def in_ms(*rows: int) -> Any:
    """Group A with EventGPT's times of some rows in milliseconds."""
    keys = [key for key in made.flat()[0] if key.startswith("egpt_") and "time" in key]
    paths = [f"{row}/{key}" for row in rows for key in keys]
    return planted(made.flat(), *((path, lambda seconds: 1000 * seconds) for path in paths))


def of_one_model() -> Any:
    rows = made.flat()
    rows[1] = {key: value for key, value in rows[1].items() if "llava" not in key}
    return rows


def rate_of_the_prefill() -> Any:
    value = made.five()
    for row in value["results"]:
        inner = row["videollava"]
        inner["tokens_per_sec"] = len(inner["output_tokens"]) / inner["stage4_time"]
    return value


SLICED = planted(made.flat(), ("1/egpt_token_ids", made.ids(2, 11)[:2]))
TWICE = [*made.flat(), made.flat()[0]]
WITH_BOS = [(f"results/{row}/egpt_tokens", lambda ids: [1, *ids]) for row in range(4)]
LEVEL = [(f"{row}/llava_token_ids", made.ids(2 * row + 1, 11)) for row in range(4)]
FLAGS = [(f"results/{row}/output_matches", True) for row in range(3)]
OTHER_RATE = [("samples/1/acceptance_rate", 0.5)]
SAMPLED = [("config/do_sample", True), ("config/temperature", 0.6)]


# rule: (with the sin, without it)
PLANTED: dict[str, tuple[Any, Any]] = {
    "sliced_tokens": (SLICED, made.flat()),
    "prompt_counted": (made.legacy(), made.newest()),
    "label": (planted(made.flat(), ("0/llava_memory_model_mb", 14051.8)), made.flat()),
    "one_image": (made.five(), made.flat()),
    "doubled_context": (made.five(), made.parallel()),
    "beyond_window": (made.frames(), made.five()),
    "beyond_limit": (planted(made.five(), ("config/max_new_tokens", 45)), made.five()),
    "count_and_ids": (planted(made.newest(), ("samples/0/eventgpt/tokens", 14)), made.newest()),
    "bos": (planted(made.pairs("F2"), *WITH_BOS), made.pairs("F2")),
    "bos_matched": (made.five(), made.five(semantic=True)),
    "totals": (planted(made.flat(), ("2/egpt_time", 0.5)), made.flat()),
    "left_out": (made.frames(), made.legacy()),
    "per_token": (rate_of_the_prefill(), made.five()),
    "impossible": (made.metrics(), made.speculation()),
    "summaries": (planted(made.legacy(), ("eventgpt_summary/stage4_avg", 0.7)), made.legacy()),
    "speedup": (made.five(), made.newest()),
    "cost_ratio": (made.pairs("F1"), made.pairs("F2")),
    "equality": (planted(made.speculation(), *SAMPLED), made.speculation()),
    "flags": (planted(made.speculation(), *FLAGS), made.speculation()),
    "acceptance_rows": (planted(made.pairs("F1"), *OTHER_RATE), made.pairs("F1")),
    "lossless": (made.wallclock(), made.pairs("F3")),
    "units": (in_ms(3), made.flat()),
    "implausible": (in_ms(0, 1, 2, 3), made.flat()),
    "unequal": (made.flat(), planted(made.flat(), *LEVEL)),
    "estimate": (made.five(semantic=True), made.five()),
    "warm_up": (made.legacy(), made.newest()),
    "placeholder": (made.five(), made.newest()),
    "degenerate": (made.parallel(same=True), made.parallel()),
    "capped": (made.five(), made.parallel()),
    "first_token": (made.texts(), made.texts(empty=True)),
    "unusable": (planted(made.flat(), ("0/egpt_stage1_time", -0.02)), made.flat()),
    "duplicates": (TWICE, made.flat()),
    "one_sided": (of_one_model(), made.flat()),
    "failures": (made.five(errors=2), made.five()),
    "chance": (made.parallel(), made.texts()),
}


def test_every_rule_is_planted() -> None:
    assert sorted(rule.name for rule in RULES) == sorted(PLANTED)
    assert {name for rule in RULES for name in rule.checks} == set(SEARCHES)


@pytest.mark.parametrize("rule", PLANTED)
def test_a_planted_fault_is_found_and_a_file_without_it_has_no_finding(rule: str) -> None:
    """And sentences fit their numbers, also those about the file cut down to a single row."""
    sinful, clean = PLANTED[rule]
    findings = audit(read(sinful))
    trips = [finding for finding in findings if finding.rule == rule]
    assert trips and not found(clean, rule)
    for finding in trips:
        assert finding.paths and finding.severity in SEVERITIES
        assert finding.message.endswith(".") and "\n" not in finding.message
        document = finding.as_dict()
        assert set(document) >= {"rule", "severity", "records", "message", "figures"}
        assert document["records"] == len(finding.paths)
    for one in (*findings, *audit(read(made.single(sinful)))):
        text = f"{one.message} {one.correction}"
        assert not re.search(r"(?<![\d.,])1 (?!of |x |or )\w+s\b(?! is)", text), text
        assert not re.search(r"\b(None|True|False|NoneType|dict|float|int|nan)\b", text), text


@pytest.mark.parametrize("value", [made.newest(), made.flat(), made.pairs("F2")])
def test_a_right_file_has_no_error(value: Any) -> None:
    assert "error" not in {finding.severity for finding in audit(read(value))}


def test_errors_come_first() -> None:
    order = [SEVERITIES.index(finding.severity) for finding in audit(read(made.five(errors=1)))]
    assert order == sorted(order) and len(set(order)) == 3


def test_the_evidence_stands_in_the_finding() -> None:
    (finding,) = found(SLICED, "sliced_tokens")
    assert finding.figures == {"tokens": 2.0, "words": 9.0} and finding.paths == ("$[1]",)
    (finding,) = found(made.legacy(), "prompt_counted")
    assert finding.figures == {
        "prompt_ids": 597.0, "tokens_recorded": 617.0, "tokens_corrected": 20.0}  # fmt: skip
    (finding,) = found(made.five(), "bos_matched")
    assert finding.figures["stated_matched"] == 8 and finding.figures["matched"] == 4
    (finding,) = found(made.five(), "speedup")
    assert finding.figures["against_target_alone"] == pytest.approx(1.0)
    speculation = found(made.speculation(), "speedup")[0]
    assert speculation.figures["with_draft_ms"] == 1530.0
    (finding,) = found(made.frames(), "left_out")[:1]
    assert "stage12_time" in finding.message
    (finding,) = found(made.legacy(), "warm_up")
    assert finding.figures["mean_without_first"] == pytest.approx(0.005)
    assert "first token is missing" in found(made.pairs("F3"), "first_token")[0].message
    told = " ".join(one.message for one in found(made.parallel(same=True), "degenerate"))
    assert "same answer" in told and "repeat one token" in told
    assert "are empty" in found(made.texts(empty=True), "degenerate")[0].message


def test_a_failed_run_has_one_note() -> None:
    assert rules(made.failed()) == {"failures"}


def test_markup_in_a_file_stays_in_one_line() -> None:
    value = made.failed()
    value["errors"][0]["egpt_error"] = "<b>\nx" * 200
    (finding,) = audit(read(value))
    assert "\n" not in finding.message and len(finding.message) < 400


def test_a_sentence_of_records_has_their_numbers_and_verbs() -> None:
    """The first wrong record gives the values."""
    value = made.flat()
    value[1]["egpt"] = "Car " * 8
    value[1]["egpt_token_ids"] = [5] * 8
    (finding,) = found(value, "degenerate")
    start = "EventGPT (egpt): 1 of 4 answers repeats one token ('Car Car Car Car Car Car ')"
    assert finding.message == f"{start} and is not usable."
    assert (finding.figures, finding.paths, finding.model) == ({}, ("$[1]",), "egpt")
    value[3] |= {"egpt": "Truck " * 8, "egpt_token_ids": [5] * 8}
    (both,) = found(value, "degenerate")
    assert "2 of 4 answers repeat one token ('Car" in both.message and "are not" in both.message


def bos(odd: int = 0) -> Any:
    value = made.five(20)
    for row in value["results"][:odd]:
        row["acceptance"]["matched_tokens"] = 1
    return value


def test_the_begin_of_text_id_is_found_beside_a_duplicate_and_a_few_exceptions() -> None:
    told = "2.0% of the 200 positions that the rows compare, 2.5% of the 160"
    assert told in found(made.five(), "bos_matched")[0].message
    value = bos()
    value["results"].append(value["results"][0])
    (one,) = found(value, "bos_matched")
    assert "id of every sample. Without it 21 match" in one.message
    (one,) = found(bos(odd=2), "bos_matched")
    assert "id of 18 of 20 samples. Without it 20 match" in one.message
    assert one.figures["samples_with_bos"] == 18
    assert not found(bos(odd=3), "bos_matched")


def test_a_cost_ratio_of_whole_answers_is_told_from_one_per_token() -> None:
    value = made.pairs("F1")
    (one,) = found(value, "cost_ratio")
    assert one.figures["stated"] == pytest.approx(1 / 1.2)
    assert one.figures["per_token"] == pytest.approx((1 / 20) / (1.2 / 30))
    assert "per token it is 1.250" in one.message
    value["results"]["avg_c_ratio"] = (1 / 20) / (1.2 / 30)
    for row in value["samples"]:
        row["c_ratio"] = value["results"]["avg_c_ratio"]
    assert not found(value, "cost_ratio")


def test_ways_to_draft_are_one_finding() -> None:
    value = made.wallclock()
    (alone,) = found(value, "lossless")
    assert "Speculation changed 1 of 4 answers of" in alone.message and alone.model == "L1"
    rows = value["sd_per_sample"]["L1"]
    same = [row | {"text": f"Answer {index}"} for index, row in enumerate(rows)]
    value["sd_per_sample"] |= {"L2": same, "L3": []}  # a way without a change stays in the share
    (one,) = found(value, "lossless")
    assert "1 of 8 answers, in 1 of 2 ways to draft" in one.message
    assert one.figures == {"different": 1.0, "compared": 8.0, "ways": 1.0}
    value["sd_per_sample"]["L2"] = rows
    assert "2 of 8 answers, in 2 of 2 ways to draft" in found(value, "lossless")[0].message
    value["sd_per_sample"] |= {"L1": same, "L2": same}
    assert not found(value, "lossless")
