"""Stages as bars: means, recorded and corrected, nothing invented."""

from __future__ import annotations

import statistics

import pytest

from engine.published.read.file_summary import bars
from engine.published.read.record_types import ResultFile
from tests.published.read import synthetic as made
from tests.published.read.synthetic import read


def test_a_bar_holds_the_means_of_its_stages_and_what_they_leave() -> None:
    first, other = bars(read(made.flat()))
    assert first.parts == pytest.approx(
        {"load": 20.0, "preprocess": 10.0, "decode": 1000.0, "unaccounted": 0.0}, abs=1e-6
    )
    assert first.model == "egpt" and sum(other.parts.values()) == pytest.approx(2300.0)
    assert first.notes == ("not measured separately: vision",)


def test_a_warm_up_is_in_the_recorded_bar_alone() -> None:
    file = read(made.legacy())
    recorded, corrected = bars(file, corrected=False)[0], bars(file)[0]
    assert recorded.parts["vision"] == pytest.approx((100 + 3 * 5) / 4)
    assert corrected.parts["vision"] == pytest.approx(5.0)
    assert sum(recorded.parts.values()) - sum(corrected.parts.values()) == pytest.approx(95 / 4)
    assert corrected.parts["unaccounted"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("value", [made.flat(), made.legacy(), made.five(), made.parallel()])
def test_corrected_stages_and_what_they_leave_are_the_corrected_total(value: object) -> None:
    file = read(value)
    for bar in bars(file):
        total = statistics.fmean(record.ms("total") or 0 for record in file.of(bar.model, True))
        assert total == pytest.approx(sum(bar.parts.values()))


def test_a_cold_prefill_is_no_missing_prefill() -> None:
    """Decode is prefill and steps of every record, the first's prefill as the others'."""
    value = made.five()
    first = value["results"][0]["eventgpt"]
    first["stage4_time"] += 0.9
    first["total_time"] += 0.9
    recorded, corrected = bars(read(value), corrected=False)[0], bars(read(value))[0]
    assert corrected.parts["decode"] == pytest.approx(90 + 440)
    assert recorded.parts["decode"] == pytest.approx(90 + 440 + 900 / 4)


def test_a_placeholder_is_absent_once_corrected() -> None:
    file = read(made.five())
    assert "vision" in bars(file, corrected=False)[1].parts
    other = bars(file)[1]
    assert "vision" not in other.parts and other.notes == ("not measured separately: vision",)


def test_what_was_timed_together_is_said() -> None:
    assert "both were timed together" in bars(read(made.frames()))[0].notes[0]


@pytest.mark.parametrize("value", [made.failed(), []])
def test_without_times_there_is_no_bar(value: object) -> None:
    assert bars(read(value)) == ()


def test_a_file_with_totals_alone_has_no_stage() -> None:
    file: ResultFile = read(made.texts())
    assert [set(bar.parts) for bar in bars(file)] == [{"unaccounted"}, {"unaccounted"}]
