"""The split of a speed-up: exact by hand, exact by chance, and no order in it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.analysis import speedup
from engine.analysis.results_table import frame
from engine.analysis.speedup import FACTORS, PER_TOKEN, TOKENS, split_of
from engine.palette import UNACCOUNTED
from tests import fabricate


def parts(found: speedup.Split) -> dict[str, speedup.Part]:
    return {part.name: part for part in found.parts}


def test_one_factor_that_differs_is_the_whole_and_sums_are_split_by_their_differences() -> None:
    same = (1.0, 2.0, 3.0, 4.0, 10.0, 1.0, 0.0, 0.5)
    slow = (*same[:5], 3.0, 0.0, 0.5)
    found = split_of("a", "b", 1, same, slow)
    assert found.ratio == pytest.approx(40.5 / 20.5)
    by_name = parts(found)
    assert by_name[PER_TOKEN].factor == pytest.approx(found.ratio)
    assert by_name[PER_TOKEN].ms == pytest.approx(20.0) and by_name[PER_TOKEN].ratio == 3.0
    others = [part for part in found.parts if part.name != PER_TOKEN]
    assert all(part.factor == 1.0 and part.ms == 0.0 for part in others)
    found = split_of("a", "b", 1, (1, 1, 1, 1, 0, 0, 0, 0), (5, 3, 1, 0.5, 0, 0, 0, 0))
    assert [part.ms for part in found.parts] == pytest.approx([4, 2, 0, -0.5, 0, 0, 0, 0])


def test_any_split_adds_and_multiplies_up_exactly() -> None:
    generator = np.random.default_rng(5)
    for _ in range(15):
        first, second = generator.uniform(0.01, 50, (2, 8)).tolist()
        found = split_of("a", "b", 1, first, second)
        assert math.prod(part.factor for part in found.parts) == pytest.approx(found.ratio)
        assert sum(part.ms for part in found.parts) == pytest.approx(found.b_ms - found.a_ms)
        turned = split_of("b", "a", 1, second, first)
        assert [1 / p.factor for p in turned.parts] == pytest.approx(
            [p.factor for p in found.parts]
        )


def test_recorded_means_give_the_known_story() -> None:
    """Means published for 200 samples: total 3.2x, load 30.6x, tokens 2.13x, per token 1.17x."""
    ours = (26.1, 19.6, 0.0, 0.0, 48.19, 1013.7 / 48.19, 0.0, 0.5)
    theirs = (798.6, 69.7, 0.0, 0.0, 102.57, 2528.0 / 102.57, 0.0, 2.4)
    found = split_of("EventGPT", "Video-LLaVA", 200, ours, theirs)
    by_name = parts(found)
    assert found.ratio == pytest.approx(3.21, abs=0.01)
    assert by_name["loading"].ratio == pytest.approx(30.6, abs=0.1)
    assert by_name[TOKENS].ratio == pytest.approx(2.13, abs=0.01)
    assert by_name[PER_TOKEN].ratio == pytest.approx(1.17, abs=0.01)
    turned = split_of("Video-LLaVA", "EventGPT", 200, theirs, ours)
    for told in (speedup.sentence(found, True), speedup.sentence(turned, True)):
        assert "EventGPT is 3.21x as fast as Video-LLaVA" in told
        assert "loading 30.60x faster" in told and "time per token 1.17x faster" in told


LESS, MORE = (1.0, 1.0, 1.0, 1.0, 4, 1.5, 0, 0), (1.0, 1.0, 1.0, 1.0, 4, 2.0, 0, 0)  # 10, 12 ms


def test_what_was_not_decided_is_said_first() -> None:
    whole = (
        "No conclusion about mean total time, because the paired test does not support one. In "
        "these 3 samples, a took 10.0 ms on average and b 12.0 ms, 1.20x as long. Of a: time per "
        "token 1.33x faster (x1.20)."
    )
    assert speedup.sentence(split_of("a", "b", 3, LESS, MORE), False) == whole
    assert speedup.sentence(split_of("b", "a", 3, MORE, LESS), False) == whole
    one = speedup.sentence(split_of("a", "b", 1, LESS, MORE), False)
    assert "In this sample, a took" in one
    decided = speedup.sentence(split_of("a", "b", 3, LESS, MORE), True)
    assert decided.startswith("a is 1.20x as fast as b in the mean of 3 samples: time per token")
    assert "onclusion" not in decided
    same = split_of("a", "b", 3, LESS, LESS)  # no factors to name
    assert speedup.sentence(same, True) == "a is 1.00x as fast as b in the mean of 3 samples."
    assert speedup.sentence(same, False).endswith("10.0 ms, 1.00x as long.")


def times(ev: list[float], vl: list[float]) -> list[dict[str, Any]]:
    """A sample per pair of prefill times, each of a sequence of its own."""
    both = (("ev", ev), ("vl", vl))
    return [fabricate.row(m, f"s{i}", prefill=ms) for m, some in both for i, ms in enumerate(some)]


def split(folder: Path, rows: list[dict[str, Any]]) -> speedup.Split | None:
    return speedup.split(frame([fabricate.run(folder, rows)]), "ev", "vl")


def test_a_sample_counts_once_whatever_its_repeats(tmp_path: Path) -> None:
    """Over its ten results, the mean prefill of ev would be 10.4 ms."""
    rows = [fabricate.row("ev", "s0", repeat=n, prefill=8.0) for n in range(9)]
    rows += [fabricate.row("ev", "s1", prefill=32.0)]
    rows += [fabricate.row("vl", f"s{n}", prefill=20.0) for n in range(2)]
    found = split(tmp_path / "r", rows)
    assert found is not None and found.n == 2
    assert parts(found)["prefill"].a == pytest.approx(20.0)
    assert found.ratio == pytest.approx(1.0)


def test_cached_results_have_no_split(tmp_path: Path) -> None:
    rows = [fabricate.row(model, cached_ms=10.0) for model in ("ev", "vl")]
    assert split(tmp_path / "r", rows) is None
    with pytest.raises(ValueError, match="positive"):
        split_of("a", "b", 1, (0,) * 8, (1,) * 8)


def uneven_edges(model: str, edge: float, idle: float) -> dict[str, Any]:
    """A row whose decode stage is `edge` ms longer than its prefill and steps, and whose run is
    `idle` ms longer than its four stages."""
    row = fabricate.row(model)
    row["stages"]["decode"]["ms"] += edge
    row["total_ms"] += edge + idle
    row["uncached_total_ms"] += edge + idle
    return row | {"unaccounted_ms": idle}


def test_unaccounted_is_the_total_less_the_four_stages(tmp_path: Path) -> None:
    """What lies between decode's edges and its steps has a part of its own."""
    rows = [uneven_edges("ev", 4.0, 1.0), uneven_edges("vl", 9.0, 3.0)]
    table = frame([fabricate.run(tmp_path / "r", rows)])
    found = speedup.split(table, "ev", "vl")
    assert found is not None
    around, unaccounted = parts(found)[speedup.AROUND], parts(found)[UNACCOUNTED]
    assert (around.a, around.b) == pytest.approx((4.0, 9.0))
    assert (unaccounted.a, unaccounted.b) == pytest.approx((1.0, 3.0))
    totals = table.groupby("label")["total_ms"].mean()
    assert (found.a_ms, found.b_ms) == pytest.approx((totals["ev"], totals["vl"]))
    assert [part.name for part in found.parts] == list(FACTORS)
    told = speedup.sentence(found, True)
    assert "decode outside its steps" in told and "unaccounted" in told
