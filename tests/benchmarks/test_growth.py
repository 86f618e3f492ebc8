"""Lines of growth, made small: they count what they say, and a curve is seen to be one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import growth
from engine.models import registry


@pytest.fixture(autouse=True)
def _brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "REPEAT", 1)
    monkeypatch.setattr(growth, "SIZE", (64, 64))


def test_a_straight_line_is_found_and_a_curve_departs_from_it() -> None:
    amounts = (10, 100, 1_000)
    straight = growth.line("a", "b", [(n, 5 + 0.25 * n) for n in amounts])
    assert straight["start_ms"] == pytest.approx(5) and straight["per_1000_ms"] == 250
    assert straight["departure_share"] < 1e-3
    square = growth.line("a", "b", [(n, n * n / 1000) for n in (250, 500, 1_000)])
    assert square["departure_share"] > 0.02
    assert square["departure_ms"] == pytest.approx(1000 * square["departure_share"], rel=0.01)


def test_samples_clips_and_results_grow_by_what_is_asked(tmp_path: Path) -> None:
    found = [
        growth.samples(tmp_path / "samples", (2, 4)),
        growth.clips(tmp_path / "clips", (1, 2)),
        growth.results(tmp_path / "results", (4, 8)),
    ]
    assert [[amount for amount, _ in one["points_ms"]] for one in found] == [
        [2, 4],
        [20, 40],
        [4, 8],
    ]
    assert all(ms > 0 for one in found for _, ms in one["points_ms"])


@pytest.fixture
def _nothing_left() -> Iterator[None]:
    yield
    for entry in registry.resident():
        registry.unload(entry)


def test_an_answer_has_the_tokens_it_is_measured_for(
    tiny_models: Path, tmp_path: Path, _nothing_left: None
) -> None:
    found = growth.tokens(tmp_path, (3, 6))
    assert [amount for amount, _ in found["points_ms"]] == [3, 6]
