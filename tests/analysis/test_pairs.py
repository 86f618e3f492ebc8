"""Paired comparisons: who is compared with whom, and when there is a conclusion.  The split of a
speed-up: exact by hand, exact by chance, and no order in it."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.analysis import pairs, statistics
from engine.analysis.pairs import FACTORS, PER_TOKEN, TOKENS, split_of
from engine.analysis.results_table import frame
from engine.palette import UNACCOUNTED
from tests import fabricate


def table(tmp_path: Path, rows: list[dict[str, Any]]) -> Any:
    return frame([fabricate.run(tmp_path / "r", rows)])


def test_a_clear_difference_is_decided(tmp_path: Path) -> None:
    lines = table(tmp_path, fabricate.pair(12))
    found = pairs.compare(lines, "ev", "vl", "total")
    assert found.verdict == "less" and (found.n, found.sequences) == (12, 12)
    assert found.ratio is not None and 0.4 < found.ratio.low <= found.ratio.high < 0.6
    assert found.difference is not None and found.difference.high < 0
    assert found.more_samples is None
    assert pairs.compare(lines, "vl", "ev", "total").verdict == "more"


def prefills(ev: Sequence[float], vl: Sequence[float]) -> list[dict[str, Any]]:
    """A sample per pair of prefill times, each of a sequence of its own."""
    return [
        fabricate.row(model, f"s{index}", prefill=float(ms))
        for index, both in enumerate(zip(ev, vl, strict=True))
        for model, ms in zip(("ev", "vl"), both, strict=True)
    ]


def test_no_difference_is_undecided_or_equal_and_never_a_conclusion(tmp_path: Path) -> None:
    times = np.random.default_rng(0).normal(20, 3, (30, 2)).T
    lines = table(tmp_path, prefills(*times))
    assert pairs.compare(lines, "ev", "vl", "prefill").verdict == "undecided"
    assert pairs.compare(lines, "ev", "vl", "new_tokens").verdict == "equal"


@pytest.mark.parametrize(
    ("higher", "lower", "verdict", "more"),
    [(10, 2, "more", None), (9, 3, "undecided", 8), (15, 5, "more", None),
     (6, 6, "undecided", None)],
)  # fmt: skip
def test_how_many_more_samples_decide(
    tmp_path: Path, higher: int, lower: int, verdict: str, more: int | None
) -> None:
    """ev takes twice vl's prefill in some sequences, half of it in the others.  Of twelve, at most
    two may lie on the other side; nine of twelve need so many more that a quarter may lie there."""
    rows = prefills([40] * higher + [10] * lower, [20] * (higher + lower))
    found = pairs.compare(table(tmp_path, rows), "ev", "vl", "prefill")
    assert (found.verdict, found.more_samples) == (verdict, more)


@pytest.mark.parametrize(("prefill", "verdict"), [(20.08, "undecided"), (20.2, "more")])
def test_an_end_printed_as_one_does_not_exclude_equality(
    tmp_path: Path, prefill: float, verdict: str
) -> None:
    """20.08 / 20 is 1.004, which a report prints as 1; 1.01 is printed as 1.01."""
    lines = table(tmp_path, prefills([prefill] * 8, [20] * 8))
    found = pairs.compare(lines, "ev", "vl", "prefill")
    assert found.ratio is not None and found.ratio.low > 1
    assert found.verdict == verdict and found.more_samples is None


def width(interval: statistics.Interval) -> float:
    return interval.high - interval.low


def test_dependent_clips_widen_the_interval(tmp_path: Path) -> None:
    centres = np.random.default_rng(1).normal(20, 4, 8)
    rows = prefills([centre + 0.01 * clip for centre in centres for clip in range(5)], [20.0] * 40)
    alone = table(tmp_path / "a", [row | {"sequence": ""} for row in rows])
    for index, row in enumerate(rows):
        row["sequence"] = f"q{index // 10}"  # five clips of two models
    together = pairs.compare(table(tmp_path / "b", rows), "ev", "vl", "prefill")
    apart = pairs.compare(alone, "ev", "vl", "prefill")
    assert together.ratio and apart.ratio and together.difference and apart.difference
    assert width(together.ratio) > 1.5 * width(apart.ratio)
    assert width(together.difference) > 1.5 * width(apart.difference)


def test_cached_totals_are_compared_with_nothing(tmp_path: Path) -> None:
    rows = [
        fabricate.row(model, f"s{i}", cached_ms=10.0) for model in ("ev", "vl") for i in range(8)
    ]
    lines = table(tmp_path, rows)
    assert pairs.compare(lines, "ev", "vl", "total").n == 0
    assert "no sample" in pairs.compare(lines, "ev", "vl", "vision").reason
    assert pairs.compare(lines, "ev", "vl", "tpot").n == 8


def test_a_model_without_results_has_no_conclusion(tmp_path: Path) -> None:
    lines = table(tmp_path, [fabricate.row("ev")])
    for model in ("ev", "nobody"):
        found = pairs.compare(lines, model, "gone", "total")
        assert found.verdict == "unknown" and found.n == 0


def parts(found: pairs.Split) -> dict[str, pairs.SpeedupFactor]:
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
    for told in (pairs.sentence(found, True), pairs.sentence(turned, True)):
        assert "EventGPT is 3.21x as fast as Video-LLaVA" in told
        assert "loading 30.60x faster" in told and "time per token 1.17x faster" in told


LESS, MORE = (1.0, 1.0, 1.0, 1.0, 4, 1.5, 0, 0), (1.0, 1.0, 1.0, 1.0, 4, 2.0, 0, 0)  # 10, 12 ms


def test_what_was_not_decided_is_said_first() -> None:
    whole = (
        "No conclusion about mean total time, because the paired test does not support one. In "
        "these 3 samples, a took 10.0 ms on average and b 12.0 ms, 1.20x as long. Of a: time per "
        "token 1.33x faster (x1.20)."
    )
    assert pairs.sentence(split_of("a", "b", 3, LESS, MORE), False) == whole
    assert pairs.sentence(split_of("b", "a", 3, MORE, LESS), False) == whole
    one = pairs.sentence(split_of("a", "b", 1, LESS, MORE), False)
    assert "In this sample, a took" in one
    decided = pairs.sentence(split_of("a", "b", 3, LESS, MORE), True)
    assert decided.startswith("a is 1.20x as fast as b in the mean of 3 samples: time per token")
    assert "onclusion" not in decided
    same = split_of("a", "b", 3, LESS, LESS)  # no factors to name
    assert pairs.sentence(same, True) == "a is 1.00x as fast as b in the mean of 3 samples."
    assert pairs.sentence(same, False).endswith("10.0 ms, 1.00x as long.")


def times(ev: list[float], vl: list[float]) -> list[dict[str, Any]]:
    """A sample per pair of prefill times, each of a sequence of its own."""
    both = (("ev", ev), ("vl", vl))
    return [fabricate.row(m, f"s{i}", prefill=ms) for m, some in both for i, ms in enumerate(some)]


def split(folder: Path, rows: list[dict[str, Any]]) -> pairs.Split | None:
    return pairs.split(table(folder, rows), "ev", "vl")


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
    found = pairs.split(table, "ev", "vl")
    assert found is not None
    around, unaccounted = parts(found)[pairs.AROUND], parts(found)[UNACCOUNTED]
    assert (around.a, around.b) == pytest.approx((4.0, 9.0))
    assert (unaccounted.a, unaccounted.b) == pytest.approx((1.0, 3.0))
    totals = table.groupby("label")["total_ms"].mean()
    assert (found.a_ms, found.b_ms) == pytest.approx((totals["ev"], totals["vl"]))
    assert [part.name for part in found.parts] == list(FACTORS)
    told = pairs.sentence(found, True)
    assert "decode outside its steps" in told and "unaccounted" in told
