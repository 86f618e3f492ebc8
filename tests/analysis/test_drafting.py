"""The figures of a drafting by hand, its sentences, and what a request refuses."""

import json
from dataclasses import replace
from typing import Any

import pytest

from engine.analysis import drafting, statistics
from engine.errors import BadInput
from engine.media_options import Split, perturbations, window
from engine.pipeline.drafts import AnswerPiece, Cycle, Difference, DraftRequest, SampleTrial, Timing
from engine.types import DecodeConfig, Sample

SAMPLE = Sample("s", "q")
REQUEST = DraftRequest((SAMPLE,), "target", "draft", gamma=3)
CYCLES = (Cycle((1, 2, 3), 3, 4), Cycle((4, 5, 6), 1, 2), Cycle((7,), 0, 1))
TRIED = SampleTrial(
    sample="s",
    text="so",
    ids=tuple(range(8)),
    cycles=CYCLES,
    marks=(AnswerPiece("so", "own"),),
    alone=(Timing(5, 70), Timing(5, 70), Timing(5, 84)),
    drafted=(Timing(9, 35, 12, 21), Timing(9, 35, 12, 21), Timing(9, 40, 12, 21)),
    prepare_ms=(20.0, 10.0),
    draft_ids=(0, 1, 2, 9, 9),
    draft_ms=8.0,
)
TIE = Difference(3, " a", " b", (1.0, 1.0), 0.1, True)


def test_the_settings_in_words_name_what_differs_from_the_default() -> None:
    assert REQUEST.how == "eager steps, at most 256 new tokens"
    changed = replace(REQUEST, window=window("1s+50ms"), split=Split("time", 3))
    assert changed.how == (f"{REQUEST.how}, window 1s+50ms, split into 3 parts by equal times")
    perturbed = replace(REQUEST, perturb=perturbations("drop:0.3"))
    assert perturbed.how == f"{REQUEST.how}, perturbed by drop:0.3 seed 0"


def test_figures_are_those_of_the_formulas() -> None:
    found = drafting.report(REQUEST, [TRIED])
    assert found.passes == 3
    assert found.tokens_per_pass == pytest.approx(7 / 3)
    assert found.mean_accepted == pytest.approx(4 / 3)
    assert found.rates == (pytest.approx(2 / 3), 0.5, 0.5)
    assert found.measured.median == 2.0 and found.measured.n == 3
    assert found.whole.median == pytest.approx((20 + 75) / (30 + 44))
    token_ms = 70 / 7
    assert found.own_prediction == pytest.approx(7 / 3 / (12 / 3 / token_ms + 1))
    assert found.pass_cost == pytest.approx(21 / 3 / token_ms)


def test_the_prediction_is_the_acceptance_analysis() -> None:
    found = drafting.report(REQUEST, [TRIED]).predicted
    assert found is not None and found.first_window == 1.0
    assert found.per_token == (8.0 / 4, 70.0 / 7)
    assert found.speedup.value == pytest.approx((1 + 3) / (0.2 * 3 + 1))


def test_lookup_has_no_prediction_from_separate_answers() -> None:
    found = drafting.report(replace(REQUEST, draft="lookup"), [replace(TRIED, draft_ids=None)])
    assert found.predicted is None and found.own_prediction is not None
    assert "by prompt lookup" in drafting.sentence(found)


def several(number: int, ms: float = 35.0, pairs: int = 6) -> list[SampleTrial]:
    """Samples whose pairs are all 70 ms alone and so many drafted."""
    times = {"alone": (Timing(5, 70),) * pairs, "drafted": (Timing(9, ms),) * pairs}
    return [replace(TRIED, sample=f"s{index}", **times) for index in range(number)]


def test_pairs_of_few_samples_do_not_make_up_for_samples() -> None:
    told = drafting.sentence(drafting.report(REQUEST, several(5)))
    assert "too few samples for a conclusion (5;" in told and "2.00x" in told
    assert "is faster" not in told and "interval" not in told


def test_too_few_pairs_and_samples_of_a_single_token_decide_nothing() -> None:
    assert REQUEST.runs == drafting.FEWEST  # the usual number of pairs is enough
    told = drafting.sentence(drafting.report(REQUEST, [TRIED]))
    assert "too few pairs for a conclusion (3;" in told
    single = replace(several(1, 0.0)[0], sample="single")
    told = drafting.sentence(drafting.report(REQUEST, [*several(5), single]))
    assert "too few samples for a conclusion (5;" in told


def test_control_six_samples_or_six_pairs_of_one_decide() -> None:
    six = drafting.sentence(drafting.report(REQUEST, several(6, pairs=1)))
    assert "is faster" in six and "6 samples, 6 pairs" in six
    one = drafting.sentence(drafting.report(REQUEST, several(1)))
    assert "is faster" in one and "6 pairs of this sample" in one


@pytest.mark.parametrize(("ms", "word"), [(69.8, "neither"), (70.2, "neither"), (71.0, "slower")])
def test_an_end_printed_as_one_does_not_exclude_equality(ms: float, word: str) -> None:
    found = drafting.report(REQUEST, several(6, ms))
    assert (found.measured.low > 1) == (ms < 70)  # the unrounded end would decide
    assert f"target is {word}" in drafting.sentence(found)


def test_samples_of_one_sequence_count_once() -> None:
    """Twelve samples of two sequences are two pieces of evidence."""
    tried = several(12, pairs=1)

    def told(*sequences: str) -> str:
        of = (sequences[n % len(sequences)] for n in range(12))
        samples = tuple(Sample(one.sample, q) for one, q in zip(tried, of, strict=True))
        return drafting.sentence(drafting.report(replace(REQUEST, samples=samples), tried))

    assert "too few sequences for a conclusion (2;" in told("q0", "q1")
    assert "is faster (2.00x, 95 % interval 2.00 to 2.00, 12 samples," in told("")
    assert "is faster" in told(*"012345") and "12 samples of 6 sequences" in told(*"012345")


def test_whole_runs_are_counted_by_sample_as_the_steps_are() -> None:
    """Four samples gain, two lose: pair by pair the interval would be a single point."""
    quick, slow = several(4, 35.0, 40), several(2, 140.0, 40)
    tried = [*quick, *(replace(one, sample=f"t{one.sample}") for one in slow)]
    found = drafting.report(REQUEST, tried)
    ratios = [one.whole_ratios()[0] for one in (quick[0], slow[0])]
    assert (found.whole.low, found.whole.high) == (min(ratios), max(ratios))
    assert found.measured.high - found.measured.low == 1.5
    assert "neither clearly faster nor clearly slower" in drafting.sentence(found)
    apart = statistics.median_interval([ratio for one in tried for ratio in one.whole_ratios()])
    assert apart.high == apart.low


def test_a_tie_is_no_fault_and_another_answer_is() -> None:
    tied = drafting.report(REQUEST, [replace(TRIED, difference=TIE)])
    wrong = drafting.report(REQUEST, [replace(TRIED, difference=replace(TIE, tied=False))])
    assert tied.equal and not wrong.equal
    assert "a fault" in drafting.sentence(wrong) and "a fault" not in drafting.sentence(tied)


def test_an_answer_of_one_token_has_nothing_to_draft() -> None:
    one = replace(
        TRIED, ids=(0,), cycles=(), draft_ids=(0,), draft_ms=0.0,
        alone=(Timing(5, 0),) * 3, drafted=(Timing(9, 0),) * 3,
    )  # fmt: skip
    found = drafting.report(REQUEST, [one])
    assert found.tokens_per_pass is None is found.measured is found.pass_cost
    assert found.rates == (None, None, None)
    assert "single token" in drafting.sentence(found)


def test_a_row_is_json_with_everything_in_it() -> None:
    told = json.dumps(drafting.as_row(drafting.report(REQUEST, [TRIED])), allow_nan=False)
    row = json.loads(told)
    assert row["samples"][0]["cycles"][0] == {"drafted": [1, 2, 3], "accepted": 3, "tokens": 4}
    assert row["how"] == "eager steps, at most 256 new tokens" and row["lost"] == []
    assert row["equal"] is True and row["sentence"] and row["predicted"]["ceiling"] == 2.5


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"gamma": 0}, "gamma is 0: choose"),
        ({"gamma": 17}, "gamma is 17: choose"),
        ({"runs": 0}, "runs is 0: choose"),
        ({"samples": ()}, "No sample is chosen"),
        ({"samples": (SAMPLE, SAMPLE)}, "Sample s is named twice: name it once"),
        ({"decode": DecodeConfig(temperature=0.5)}, "greedy, but temperature is 0.5: set it to 0"),
    ],
)
def test_a_request_refuses_in_one_sentence(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput) as caught:
        replace(REQUEST, **changed)
    assert words in str(caught.value)
