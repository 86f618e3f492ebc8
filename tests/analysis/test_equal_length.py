"""The equal-length lens: answers cut at the shortest, by their own token times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.analysis import results_table, speedup
from engine.analysis.results_table import frame
from tests import fabricate


def look(tmp_path: Path, name: Any, rows: list[dict[str, Any]]) -> results_table.Lens:
    return results_table.look(frame([fabricate.run(tmp_path / "r", rows)]), name)


BOTH = [
    fabricate.row("ev", "s0", gaps=[1, 1]),
    fabricate.row("vl", "s0", gaps=[3, 3, 3, 3]),
    fabricate.row("ev", "s1", gaps=[1] * 6),
    fabricate.row("vl", "s1", gaps=[3]),
]


def test_first_cuts_at_the_shortest_answer_to_each_sample(tmp_path: Path) -> None:
    seen = look(tmp_path, "first", BOTH)
    by_key = seen.table.set_index(["label", "sample"])
    assert by_key["new_tokens"].to_dict() == {
        ("ev", "s0"): 3, ("vl", "s0"): 3, ("ev", "s1"): 2, ("vl", "s1"): 2,
    }  # fmt: skip
    # start 16, prefill 8: the first token at 24; vl's third two gaps of 3 later
    assert by_key.loc[("vl", "s0"), "total_ms"] == 30
    assert by_key.loc[("vl", "s0"), "steps_ms"] == 6
    assert by_key.loc[("vl", "s0"), "decode_ms"] == 14
    assert by_key.loc[("vl", "s0"), "tpot_ms"] == 3
    assert by_key.loc[("vl", "s0"), "unaccounted_ms"] == 0
    assert by_key.loc[("ev", "s1"), "total_ms"] == 25
    assert list(by_key.loc[("ev", "s1"), "token_ms"]) == [24, 25]
    assert "2 samples" in seen.note


def test_a_cut_answer_keeps_what_the_cache_saved_it(tmp_path: Path) -> None:
    rows = [
        fabricate.row("ev", gaps=[1]),
        fabricate.row("vl", gaps=[3] * 4, cached_ms=100.0, forced=True),
    ]
    seen = look(tmp_path, "first", rows).table.set_index("label")  # a forced answer is cut too
    assert seen["new_tokens"].to_dict() == {"ev": 2, "vl": 2}
    assert seen["total_ms"].to_dict() == {"ev": 25, "vl": 27}
    assert seen["uncached_total_ms"].to_dict() == {"ev": 25, "vl": 27 + 90}


def test_through_the_lens_the_number_of_tokens_explains_nothing(tmp_path: Path) -> None:
    found = speedup.split(look(tmp_path, "first", BOTH).table, "ev", "vl")
    assert found is not None
    tokens = next(part for part in found.parts if part.name == speedup.TOKENS)
    assert tokens.factor == pytest.approx(1) and tokens.ms == pytest.approx(0)


def test_samples_that_one_model_did_not_answer_are_left_out(tmp_path: Path) -> None:
    rows = [*BOTH, fabricate.row("ev", "s2"), fabricate.failed("vl", "s2")]
    seen = look(tmp_path, "first", rows)
    assert set(seen.table["sample"]) == {"s0", "s1"} and "1 results are left out" in seen.note


def test_a_model_that_several_devices_answered_for_is_one_model(tmp_path: Path) -> None:
    names = {"s0": {"hardware": "A", "device": "cuda"}, "s1": {"hardware": "B", "device": "cuda"}}
    rows = [row | {"environment": names[row["sample"]]} for row in BOTH]
    seen = look(tmp_path, "first", rows)
    assert set(seen.table["sample"]) == {"s0", "s1"} and seen.table["label"].nunique() == 4
    assert list(seen.table["new_tokens"]) == [3, 3, 2, 2]
    again = BOTH[0] | {"environment": names["s1"], "repeat": 1}  # the same sample, elsewhere
    assert len(look(tmp_path / "again", "first", [*rows, again]).table) == 5


def test_single_tokens_have_no_rate(tmp_path: Path) -> None:
    seen = look(tmp_path, "first", [fabricate.row("ev", gaps=[]), fabricate.row("vl")])
    assert np.isnan(seen.table["tpot_ms"]).all() and np.isnan(seen.table["tokens_per_s"]).all()
    assert list(seen.table["total_ms"]) == [24, 24]


def test_natural_and_forced_results_do_not_meet(tmp_path: Path) -> None:
    rows = [fabricate.row("ev", "s0"), fabricate.row("ev", "s1", forced=True)]
    assert list(look(tmp_path / "a", "natural", rows).table["sample"]) == ["s0"]
    forced = look(tmp_path / "b", "forced", rows)
    assert list(forced.table["sample"]) == ["s1"] and "results of 4 tokens" in forced.note
    assert look(tmp_path / "c", "forced", BOTH).table.empty
    assert look(tmp_path / "d", "first", []).table.empty
