"""Acceptance figures by hand, baselines that know chance, intervals, and what cannot be known."""

from __future__ import annotations

import numpy as np
import pytest

from engine.acceptance import Pair, analyse, paint, shuffled


def pair(draft: str, target: str, sample: str = "s", **more: object) -> Pair:
    """Letters as ids."""
    codes = [tuple(map(ord, text)) for text in (draft, target)]
    return Pair(sample, *codes, **more)  # type: ignore[arg-type]


def test_the_formulas_by_hand() -> None:
    found = analyse([pair("abcx", "abcd", "1"), pair("zb", "ab", "2")], "d", "t", gamma=4)
    assert (found.matched, found.compared) == (4, 6) and found.rate
    assert found.rate.value == pytest.approx(4 / 6)
    assert found.mean_prefix == 1.5 and found.max_prefix == 3
    assert found.first_window == pytest.approx((3 / 4 + 0) / 2)
    assert found.expected_tokens == pytest.approx(1 + 4 * 3 / 8)
    assert found.first_windows[5] == pytest.approx((3 / 5 + 0) / 2)


def test_ceiling_and_speedup_by_hand() -> None:
    times = {"draft_ms": 40.0, "target_ms": 80.0}  # 10 and 20 ms per token
    found = analyse([pair("abcd", "abcd", "1", **times)] * 2, "d", "t", gamma=4)
    assert found.cost_ratio == pytest.approx(0.5)
    assert found.ceiling == pytest.approx(5 / 3)
    assert found.speedup and found.speedup.value == pytest.approx(found.ceiling)
    nothing = analyse([pair("xxxx", "abcd", "1", **times)], "d", "t", gamma=4)
    assert nothing.speedup and nothing.speedup.value == pytest.approx(1 / 3)


def test_counts_may_differ_from_the_ids_that_are_left() -> None:
    found = analyse(
        [pair("ab", "abcd", draft_ms=620.0, target_ms=80.0, draft_tokens=62.0)], "d", "t"
    )
    assert found.per_token == (10.0, 20.0)


def test_without_all_times_there_is_no_speedup() -> None:
    found = analyse([pair("a", "a", "1", draft_ms=1.0, target_ms=1.0), pair("a", "a", "2")],
                    "d", "t")  # fmt: skip
    assert found.per_token is None and found.ceiling is None and found.speedup is None


def test_the_shuffled_baseline_knows_phrases_from_images() -> None:
    """Answers that begin alike match shuffled too; answers of their own do not."""
    alike = [pair(f"the road {c}", f"the road {c}", str(i)) for i, c in enumerate("abcdef")]
    own = [pair(c * 9, c * 9, str(i)) for i, c in enumerate("abcdef")]
    phrases, images = analyse(alike, "d", "t"), analyse(own, "d", "t")
    assert phrases.rate and phrases.shuffled and images.shuffled
    assert phrases.shuffled.value == pytest.approx(9 / 10)
    assert images.shuffled.value == 0.0 and images.says_something
    same = analyse([pair("the road", "the road", str(i)) for i in range(4)], "d", "t")
    assert same.says_something is False


def test_shuffles_stay_within_a_question() -> None:
    pairs = [
        pair(f"{q}{q}{q}", f"{q}{q}{q}", str(sample), question=q) for sample in (1, 2) for q in "ab"
    ]
    found = shuffled(pairs)
    assert found and found.value == 1.0
    assert shuffled([pair("a", "a", "1", question=q) for q in "ab"]) is None


def test_a_sample_never_meets_itself() -> None:
    """One sample asked twice is no other image."""
    twice = [pair("aa", "aa", "1"), pair("aa", "aa", "1"), pair("bb", "bb", "2")]
    found = shuffled(twice)
    assert found and found.value == 0.0
    assert shuffled([pair("aa", "aa", "1")]) is None


def test_the_interval_covers_the_truth() -> None:
    generator = np.random.default_rng(1)
    inside = 0
    for _ in range(40):
        hits = generator.random((60, 10)) < 0.3
        pairs = [Pair(str(i), tuple(range(10)), tuple(np.where(row, np.arange(10), -1).tolist()))
                 for i, row in enumerate(hits)]  # fmt: skip
        rate = analyse(pairs, "d", "t").rate
        assert rate is not None and rate.low <= rate.value <= rate.high
        inside += rate.low <= 0.3 <= rate.high
    assert inside >= 34


def test_equal_seeds_give_equal_figures() -> None:
    pairs = [pair(a, b, a) for a, b in (("abc", "abd"), ("bcd", "bbb"), ("xyz", "xyz"))]
    assert analyse(pairs, "d", "t") == analyse(pairs, "d", "t")


def test_empty_answers_are_no_division_by_zero() -> None:
    found = analyse([pair("", "abc", "1"), pair("", "", "2")], "d", "t")
    assert found.rate is None and found.compared == 0 and found.shuffled is None


@pytest.mark.parametrize("gamma", [0, 65, -1])
def test_an_impossible_draft_length_is_refused(gamma: int) -> None:
    with pytest.raises(ValueError, match="choose 1 to 64"):
        analyse([pair("a", "a")], "d", "t", gamma)
    with pytest.raises(ValueError, match="at least one pair"):
        analyse([], "d", "t")


def test_painting_ids() -> None:
    states = [one.state for one in paint(pair("abxdef", "abcd"))]
    assert states == ["accepted", "accepted", "rejected", "matched", "beyond", "beyond"]
    assert paint(pair("abx", "abc"))[2].target == ord("c")
