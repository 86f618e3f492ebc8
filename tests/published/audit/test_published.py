"""Each sin planted in a published file is found, and a file without it is left in peace."""

from __future__ import annotations

from typing import Any

import pytest

from engine.published.audit import RULES, SEVERITIES, AuditFinding, audit
from tests.published.read import synthetic as made
from tests.published.read.synthetic import read


def found(value: Any, rule: str) -> list[AuditFinding]:
    return [finding for finding in audit(read(value)) if finding.rule == rule]


def rules(value: Any) -> set[str]:
    return {finding.rule for finding in audit(read(value))}


def sliced() -> Any:
    rows = made.flat()
    rows[1]["egpt_token_ids"] = rows[1]["egpt_token_ids"][:2]
    return rows


def mislabelled() -> Any:
    rows = made.flat()
    rows[0]["llava_memory_model_mb"] = 14051.8
    return rows


def over_limit() -> Any:
    value = made.five()
    value["config"]["max_new_tokens"] = 45
    return value


def miscounted() -> Any:
    value = made.newest()
    value["samples"][0]["eventgpt"]["tokens"] = 14
    return value


def with_bos() -> Any:
    value = made.pairs("F2")
    for row in value["results"]:
        row["egpt_tokens"] = [1, *row["egpt_tokens"]]
    return value


def wrong_total() -> Any:
    rows = made.flat()
    rows[2]["egpt_time"] = 0.5
    return rows


def wrong_summary() -> Any:
    value = made.legacy()
    value["eventgpt_summary"]["stage4_avg"] = 0.7
    return value


def mixed_units() -> Any:
    rows = made.flat()
    for key in ("time", "stage1_time", "stage2_time", "stage3_time"):
        rows[3][f"egpt_{key}"] *= 1000
    return rows


def sampled() -> Any:
    value = made.speculation()
    value["config"] |= {"do_sample": True, "temperature": 0.6}
    return value


def twice() -> Any:
    rows = made.flat()
    return [*rows, rows[0]]


def one_sided() -> Any:
    rows = made.flat()
    for key in [key for key in rows[1] if "llava" in key]:
        del rows[1][key]
    return rows


def other_unit() -> Any:
    rows = made.flat()
    for row in rows:
        row |= {key: 1000 * row[key] for key in row if key.startswith("egpt_") and "time" in key}
    return rows


def level() -> Any:
    rows = made.flat()
    for index, row in enumerate(rows):
        row["llava_token_ids"] = made.ids(2 * index + 1, 11)
    return rows


def negative() -> Any:
    rows = made.flat()
    rows[0]["egpt_stage1_time"] = -0.02
    return rows


def contradicted() -> Any:
    value = made.speculation()
    for row in value["results"]:
        row["output_matches"] = True
    return value


def other_rate() -> Any:
    value = made.pairs("F1")
    value["samples"][1]["acceptance_rate"] = 0.5
    return value


def rate_of_the_prefill() -> Any:
    value = made.five()
    for row in value["results"]:
        inner = row["videollava"]
        inner["tokens_per_sec"] = len(inner["output_tokens"]) / inner["stage4_time"]
    return value


# rule: (with the sin, without it)
PLANTED: dict[str, tuple[Any, Any]] = {
    "sliced_tokens": (sliced(), made.flat()),
    "prompt_counted": (made.legacy(), made.newest()),
    "label": (mislabelled(), made.flat()),
    "one_image": (made.five(), made.flat()),
    "doubled_context": (made.five(), made.parallel()),
    "beyond_window": (made.frames(), made.five()),
    "beyond_limit": (over_limit(), made.five()),
    "count_and_ids": (miscounted(), made.newest()),
    "bos": (with_bos(), made.pairs("F2")),
    "bos_matched": (made.five(), made.five(semantic=True)),
    "totals": (wrong_total(), made.flat()),
    "left_out": (made.frames(), made.legacy()),
    "per_token": (rate_of_the_prefill(), made.five()),
    "impossible": (made.metrics(), made.speculation()),
    "summaries": (wrong_summary(), made.legacy()),
    "speedup": (made.five(), made.newest()),
    "cost_ratio": (made.pairs("F1"), made.pairs("F2")),
    "equality": (sampled(), made.speculation()),
    "flags": (contradicted(), made.speculation()),
    "acceptance_rows": (other_rate(), made.pairs("F1")),
    "lossless": (made.wallclock(), made.pairs("F3")),
    "units": (mixed_units(), made.flat()),
    "implausible": (other_unit(), made.flat()),
    "unequal": (made.flat(), level()),
    "estimate": (made.five(semantic=True), made.five()),
    "warm_up": (made.legacy(), made.newest()),
    "placeholder": (made.five(), made.newest()),
    "degenerate": (made.parallel(same=True), made.parallel()),
    "capped": (made.five(), made.parallel()),
    "first_token": (made.texts(), made.texts(empty=True)),
    "unusable": (negative(), made.flat()),
    "duplicates": (twice(), made.flat()),
    "one_sided": (one_sided(), made.flat()),
    "failures": (made.five(errors=2), made.five()),
    "chance": (made.parallel(), made.texts()),
}


def test_every_rule_is_planted() -> None:
    assert {rule.name for rule in RULES} == set(PLANTED)
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", PLANTED)
def test_a_planted_sin_is_found_and_its_absence_is_not(rule: str) -> None:
    sinful, clean = PLANTED[rule]
    trips = found(sinful, rule)
    assert trips and not found(clean, rule)
    for finding in trips:
        assert finding.paths and finding.severity in SEVERITIES
        assert finding.message.endswith(".") and "\n" not in finding.message
        document = finding.as_dict()
        assert set(document) >= {"rule", "severity", "records", "message", "figures"}
        assert document["records"] == len(finding.paths)


@pytest.mark.parametrize("value", [made.newest(), made.flat(), made.pairs("F2")])
def test_files_without_sins_get_no_error(value: Any) -> None:
    assert {f.rule for f in audit(read(value)) if f.severity == "error"} == set()


def test_errors_come_first() -> None:
    order = [SEVERITIES.index(finding.severity) for finding in audit(read(made.five(errors=1)))]
    assert order == sorted(order) and len(set(order)) == 3


def test_the_evidence_stands_in_the_finding() -> None:
    (finding,) = found(sliced(), "sliced_tokens")
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


def test_the_ratio_of_whole_answers_is_told_from_the_one_per_token() -> None:
    (finding,) = found(made.pairs("F1"), "cost_ratio")
    assert finding.figures["stated"] == pytest.approx(1 / 1.2)
    assert finding.figures["per_token"] == pytest.approx((1 / 20) / (1.2 / 30))


def test_answers_that_are_none() -> None:
    messages = [f.message for f in found(made.parallel(same=True), "degenerate")]
    assert any("same answer" in one for one in messages)
    assert any("repeat one token" in one for one in messages)
    empty = found(made.texts(empty=True), "degenerate")
    assert "are empty" in empty[0].message


def test_a_shifted_adapter_is_told_by_its_ids() -> None:
    assert "first token is missing" in found(made.pairs("F3"), "first_token")[0].message


def test_a_failed_run_has_one_note() -> None:
    assert rules(made.failed()) == {"failures"}


def test_markup_in_a_file_stays_in_one_line() -> None:
    value = made.failed()
    value["errors"][0]["egpt_error"] = "<b>\nx" * 200
    (finding,) = audit(read(value))
    assert "\n" not in finding.message and len(finding.message) < 400
