"""Acceptance figures by hand, baselines that know chance, intervals, and what cannot be known."""

from dataclasses import replace

import numpy as np
import pytest

from engine.analysis.acceptance import Pair, Range, analyse, pairs_of_rows, shuffled
from tests import fabricate


def pair(draft: str, target: str, sample: str = "s", **more: object) -> Pair:
    """Letters as ids."""
    codes = [tuple(map(ord, text)) for text in (draft, target)]
    return Pair(sample, *codes, **more)  # type: ignore[arg-type]


def test_ceiling_and_speedup_by_hand() -> None:
    times = {"draft_ms": 40.0, "target_ms": 80.0}  # 10 and 20 ms per token
    found = analyse([pair("abcd", "abcd", "1", **times)] * 2, "d", "t", gamma=4)
    assert found.cost_ratio == pytest.approx(0.5)
    assert found.ceiling == pytest.approx(5 / 3)
    assert found.speedup and found.speedup.value == pytest.approx(found.ceiling)
    nothing = analyse([pair("xxxx", "abcd", "1", **times)], "d", "t", gamma=4)
    assert nothing.speedup and nothing.speedup.value == pytest.approx(1 / 3)
    cut = pair("ab", "abcd", draft_ms=620.0, target_ms=80.0, draft_tokens=62.0)
    assert analyse([cut], "d", "t").per_token == (10.0, 20.0)  # by its count, not by the ids left
    untimed = analyse([pair("abcd", "abcd", "1", **times), pair("a", "a", "2")], "d", "t")
    assert untimed.per_token is None and untimed.ceiling is None and untimed.speedup is None


def test_the_shuffled_value_is_the_ratio_over_every_mismatched_pair() -> None:
    """Sum of matches / sum compared, by brute force, over questions, clips and lengths."""
    generator = np.random.default_rng(3)

    def answer() -> tuple[int, ...]:
        return tuple(generator.integers(0, 3, generator.integers(1, 12)).tolist())

    pairs = [
        Pair(f"{clip}-{question}", answer(), answer(), question, clip=clip)
        for clip in ("a", "a", "b", "c", "d")
        for question in ("x", "y")
    ]
    crossed = [
        (sum(m == n for m, n in zip(one.draft, two.target, strict=False)),
         min(len(one.draft), len(two.target)))
        for one in pairs for two in pairs
        if one.question == two.question and one.clip != two.clip
    ]  # fmt: skip
    found = shuffled(pairs)
    assert found == shuffled(pairs) and analyse(pairs, "d", "t").clips == 4  # of 8 names
    expected = sum(matched for matched, _ in crossed) / sum(many for _, many in crossed)
    assert found and found.value == pytest.approx(expected, rel=1e-12)
    assert found.interval and found.interval[0] <= found.value <= found.interval[1]
    assert found.value != pytest.approx(np.mean([m / n for m, n in crossed]), rel=1e-3)


def test_the_shuffled_value_is_no_median_of_draws() -> None:
    """One target matches all drafts, and one draft in three is long: 12 of 39, not 1 of 13."""
    drafts = ("a", "a" * 10, "a", "a")
    pairs = [pair(draft, ("b" if i else "a") * 10, str(i)) for i, draft in enumerate(drafts)]
    found = shuffled(pairs)
    assert found and found.value == pytest.approx(12 / 39)
    assert found.interval == pytest.approx((1 / 13, 10 / 13))


def questions(clips: int, asked: int = 10) -> list[Pair]:
    """Each clip's answers all match or none does: its questions tell one thing, not ten."""
    return [
        pair("aaaa", "aaaa" if clip % 2 else "bbbb", str(clip), question=str(question),
             draft_ms=4.0, target_ms=8.0)
        for clip in range(clips) for question in range(asked)
    ]  # fmt: skip


def test_questions_about_one_clip_are_drawn_together() -> None:
    """100 records of 10 clips have the interval of 10 clips; as 100 clips it is far narrower."""
    found = analyse(questions(10), "d", "t")
    alone = analyse([replace(one, sample=f"{one.sample}{one.question}") for one in questions(10)],
                    "d", "t")  # fmt: skip
    few = analyse(questions(10, 1), "d", "t")
    assert found.amount == "100 records of 10 clips" and alone.amount == "100"
    for name in ("rate", "speedup"):
        wide, narrow, same = (width(getattr(one, name)) for one in (found, alone, few))
        assert wide == pytest.approx(same, rel=0.05) and wide > 2.5 * narrow
    assert width(found.shuffled) == pytest.approx(width(few.shuffled), abs=0.05)


def width(found: Range | None) -> float:
    assert found is not None and found.interval is not None
    return found.interval[1] - found.interval[0]


def test_one_clip_gives_a_value_and_no_interval() -> None:
    found = analyse(questions(1), "d", "t")
    assert found.amount == "10 records of 1 clip" and found.shuffled is None
    assert found.rate and found.rate.interval is None and found.rate.value == 0.0
    assert found.speedup and found.speedup.interval is None and found.says_something is None


def test_a_rate_within_the_interval_of_shuffled_pairs_says_nothing() -> None:
    found = replace(analyse(questions(10), "d", "t"), shuffled=Range(0.4, 0.2, 0.6))
    assert replace(found, rate=Range(0.5, 0.3, 0.7)).says_something is False
    assert replace(found, rate=Range(0.7, 0.5, 0.9)).says_something is True  # control


@pytest.mark.parametrize("gamma", [0, 65])
def test_an_impossible_draft_length_is_refused(gamma: int) -> None:
    with pytest.raises(ValueError, match="choose 1 to 64"):
        analyse([pair("a", "a")], "d", "t", gamma)
    with pytest.raises(ValueError, match="at least one pair"):
        analyse([], "d", "t")


def test_no_match_at_all_has_an_interval_above_zero() -> None:
    found = analyse([pair("xxxx", "abcd", str(i)) for i in range(8)], "d", "t").rate
    assert found and found.value == found.low == 0.0 and found.high and found.high > 0.0


def test_answers_of_a_run_become_pairs_of_two_models() -> None:
    told = [*fabricate.pair(3), fabricate.failed(sample="s9"), fabricate.row("ev", "alone")]
    rows = fabricate.parsed([*told, fabricate.row("ev", "s0", repeat=1, gaps=[2.0])])
    pairs = pairs_of_rows(rows, "ev", "vl")
    assert [one.sample for one in pairs] == ["s0", "s1", "s2"]
    ev, vl = (next(r for r in rows if (r.model, r.sample) == (name, "s0")) for name in ("ev", "vl"))
    first = pairs[0]
    assert (first.draft, first.target, first.clip) == (ev.token_ids, vl.token_ids, ev.sequence)
    assert (first.draft_ms, first.draft_tokens) == (ev.spans["steps"].ms, len(ev.token_ids) - 1)
    found, turned = analyse(pairs, "ev", "vl"), analyse(pairs_of_rows(rows, "vl", "ev"), "vl", "ev")
    assert found.cost_ratio and turned.cost_ratio == pytest.approx(1 / found.cost_ratio)


def test_pairs_of_answers_of_a_token_or_of_batches_have_no_time() -> None:
    short = [fabricate.row("ev", gaps=[]), fabricate.row("vl")]
    both = ["s0", "s1"]
    batched = fabricate.batch(both) + fabricate.batch(both, model="vl")
    for told in (short, batched):
        one, *_ = pairs_of_rows(fabricate.parsed(told), "ev", "vl")
        assert one.draft_ms is one.target_ms is None
