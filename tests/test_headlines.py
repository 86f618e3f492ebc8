"""Three claims beside what files say, and what a difference is made of."""

from __future__ import annotations

import math

import pytest

from engine.headlines import headlines, waterfall
from tests.records import synthetic as made
from tests.records.synthetic import read


def test_each_claim_has_the_files_that_have_both_times() -> None:
    files = [read(value, f"{name}.json") for name, value in made.EVERY.items()]
    overall, decoding, loading = headlines(files)
    assert [h.stated for h in (overall, decoding, loading)] == [3.3, 1.9, 8.0]
    assert {one.file[0] for one in overall.evidence} == {"A", "B", "C", "D"}
    assert {one.file[0] for one in decoding.evidence} == {"A", "B", "C", "D", "E"}
    assert {one.file[0] for one in loading.evidence} == {"A", "B", "D"}


def test_ratios_are_the_others_time_over_eventgpts() -> None:
    overall, decoding, loading = headlines([read(made.flat())])
    assert overall.evidence[0].recorded == pytest.approx(2.3 / 1.03)
    assert decoding.evidence[0].corrected == pytest.approx(2.0)
    assert loading.evidence[0].paired and loading.evidence[0].paired.median == pytest.approx(10.0)
    assert decoding.verdict == "1 file gives 2.00x; 1 of 1 within 10 % of 1.9x."


def test_the_notes_say_what_stands_in_the_way() -> None:
    (one,) = headlines([read(made.legacy())])[0].evidence
    assert "labelled Video-LLaVA, but LLaVA-1.5 answered" in one.notes
    (one,) = headlines([read(made.five())])[0].evidence
    assert "EventGPT saw one event image" in one.notes and one.samples == 3
    assert "Video-LLaVA's answers are cut at a limit" in one.notes
    assert any("2.00x the tokens at 1.00x" in n for n in headlines([read(made.flat())])[0]
               .evidence[0].notes)  # fmt: skip


def test_means_without_rows_are_evidence_of_decoding_alone() -> None:
    value = made.wallclock()
    value["stage_timing"] = {
        "eventgpt": {"decode_ms": 350.0, "avg_tokens": 25.0},
        "videollava": {"decode_ms": 700.0, "avg_tokens": 50.0},
    }
    overall, decoding, loading = headlines([read(value)])
    (one,) = decoding.evidence
    assert one.recorded == 2.0 and one.samples == 0 and one.paired is None
    assert "2.00x the tokens at 1.00x the time per token" in one.notes
    assert not overall.evidence and not loading.evidence


def test_nothing_is_said_of_nothing() -> None:
    for headline in headlines([read(made.failed()), read(made.texts())]):
        assert headline.evidence == () and "nothing can be said" in headline.verdict


@pytest.mark.parametrize("value", [made.flat(), made.legacy(), made.five(), made.parallel()])
def test_a_waterfall_leaves_nothing_over(value: object) -> None:
    fall = waterfall(read(value))
    assert fall is not None
    parts = math.fsum(part.ms for part in fall.parts)
    assert parts == pytest.approx(fall.slow_ms - fall.fast_ms, rel=0.002)


def test_fewer_tokens_are_told_from_faster_tokens() -> None:
    fall = waterfall(read(made.flat()))
    assert fall is not None and fall.tokens_ratio == 2.0
    assert fall.per_token_ratio == pytest.approx(1.0)
    parts = {part.name: part.ms for part in fall.parts}
    assert parts["fewer tokens"] == pytest.approx(1000.0)
    assert parts["time per token"] == pytest.approx(0.0, abs=1e-6)
    assert waterfall(read(made.texts())) is None and waterfall(read(made.failed())) is None


def test_recorded_values_give_recorded_verdicts() -> None:
    file = read(made.legacy())
    corrected, recorded = headlines([file])[0], headlines([file], corrected=False)[0]
    assert corrected.evidence[0].ratio(True) == corrected.evidence[0].corrected
    assert recorded.evidence[0].ratio(False) == recorded.evidence[0].recorded
    assert corrected.evidence[0].corrected != recorded.evidence[0].recorded
    assert corrected.verdict != recorded.verdict


def test_a_recorded_waterfall_holds_the_warm_up_and_the_prompt() -> None:
    file = read(made.legacy())
    recorded, corrected = waterfall(file, corrected=False), waterfall(file)
    assert recorded and corrected and recorded.tokens_ratio and corrected.tokens_ratio
    assert recorded.tokens_ratio > 20 * corrected.tokens_ratio
    assert recorded.fast_ms > corrected.fast_ms
    for fall in (recorded, corrected):
        saved = math.fsum(part.ms for part in fall.parts)
        assert saved == pytest.approx(fall.slow_ms - fall.fast_ms)
