"""Tables of recorded files: recorded and corrected, not measured and never 0, names by evidence."""

from __future__ import annotations

import pytest

from engine.published.audit import audit
from engine.published.claims import published_report
from engine.published.claims.published_report import claim_blocks, comparison_name, files_table
from engine.published.read import ResultFile, answer_pairs
from engine.published.read.file_summary import frame
from engine.report.blocks import ReportTable
from tests.published.read import synthetic as made
from tests.published.read.synthetic import read
from ui.published import audit_view, draft_view
from ui.published.opened_sets import OpenedSets


def look(*found: ResultFile, corrected: bool = True) -> OpenedSets:
    return OpenedSets((), found, corrected)


def tables(file: ResultFile, corrected: bool = True) -> list[ReportTable]:
    """Who answered, and the stages and tokens."""
    parts = published_report.figure_blocks(file, corrected)
    return [part for part in parts if isinstance(part, ReportTable)]


def rows(file: ResultFile, corrected: bool = True) -> dict[tuple[str, str], tuple[str, ...]]:
    return {(row[0], row[1]): row[2:] for row in tables(file, corrected)[1].rows}


def test_the_table_of_files_says_kind_and_state() -> None:
    found = look(read(made.five(errors=2), "a.json"), read(made.failed(), "b.json"), read(17))
    first, second, third = files_table(found.files).rows
    assert first[:3] == ("a.json", "D 5stages", "read") and first[4:6] == ("4", "2")
    assert second[2] == "the run failed" and third[1:4] == ("unknown", "not usable", "–")
    assert third[4:] == ("–", "–", "–")
    summary = published_report.summary(found.files)
    assert summary.startswith("3 files: 1 with results, 1 of a failed run")


def test_the_table_of_files_names_the_models_that_the_switch_says() -> None:
    file = read(made.legacy())
    told = [files_table([file], one).rows[0][3] for one in (True, False)]
    assert told == ["EventGPT; LLaVA-1.5", "EventGPT; Video-LLaVA, label disputed"]


def test_many_models_are_counted() -> None:
    assert files_table([read(made.pairs("F3"))]).rows[0][3].endswith("and 1 more")


def test_tokens_and_means_are_recorded_and_corrected_and_the_switch_names_models() -> None:
    file = read(made.legacy())
    recorded, corrected = rows(file, False), rows(file, True)
    tokens = recorded["Video-LLaVA (videollava), label disputed", "tokens"]
    assert tokens == corrected["LLaVA-1.5 (videollava)", "tokens"]
    assert (tokens[1], tokens[-1]) == ("617", "20")
    vision = corrected["EventGPT", "stage3_time (vision), ms"]
    assert (vision[0], vision[1], vision[-1]) == ("4", "28.75", "5")


def test_a_placeholder_is_not_measured() -> None:
    found = {key[1]: row for key, row in rows(read(made.five())).items() if "Video" in key[0]}
    assert found["stage3_time (vision), ms"][-1] == "not measured"


def test_who_answered_is_claimed_beside_its_evidence() -> None:
    who, _ = tables(read(made.legacy()))
    assert who.rows[1][2] == "✖ contradicts the label" and "576" in who.rows[1][3]


def test_the_records_of_a_finding_show_both_values() -> None:
    file = read(made.legacy())
    finding = next(one for one in audit(file) if one.rule == "prompt_counted")
    lines = audit_view.lines(file, finding)
    assert list(lines["model"]) == ["videollava"] * 4
    assert list(lines["tokens, recorded"]) == [617] * 4
    assert list(lines["tokens, corrected"]) == [20] * 4
    assert lines["stage4_time (ms)"].iloc[0] == pytest.approx(1600)
    assert lines["where"].iloc[0] == "videollava_results[0]"


def test_every_record_follows_the_switch() -> None:
    file = read(made.legacy())
    assert frame(file, False)["new tokens"].max() == 617
    assert frame(file)["new tokens"].max() == 20


def test_a_verdict_says_no_more_than_the_figures() -> None:
    told = {
        kind: draft_view.verdict(one)
        for kind, one in answer_pairs.variants(read(made.legacy(6)), 5, True).items()
    }
    assert "without times of both models" in told["raw"]
    assert "slower" in told["main"] and "faster" not in told["main"]
    few = answer_pairs.variants(read(made.legacy(5)), 5, True)["main"]
    assert "Too few clips for an interval" in draft_view.verdict(few)


def test_as_recorded_there_is_one_comparison_per_draft() -> None:
    file = read(made.pairs("F3"))
    assert set(answer_pairs.variants(file, 5, True)) == {"main", "adapter", "adapter_shifted"}
    assert set(answer_pairs.variants(file, 5, False)) == {"egpt", "adapter"}
    assert comparison_name("egpt", "vl", "adapter_shifted").endswith("from its second id")
    assert comparison_name("egpt", "vl", "egpt") == "egpt for vl"


def test_claims_follow_the_switch() -> None:
    file = read(made.legacy(), "a.json")
    for corrected, tokens in ((True, "1.82x the tokens"), (False, "56.09x the tokens")):
        headline = look(file, corrected=corrected).claims[0]
        table = next(one for one in claim_blocks(headline) if isinstance(one, ReportTable))
        assert table.rows[0][0] == "a.json" and tokens in table.rows[0][-1]
