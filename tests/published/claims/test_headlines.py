"""Three claims beside what files say, and what a difference is made of."""

import json
import math
from dataclasses import asdict
from typing import Any

import pytest

from engine.published.claims.headlines import Headline, headlines, waterfall
from engine.published.read import answer_pairs
from tests.published.read import synthetic as made
from tests.published.read.synthetic import read


def test_each_claim_has_the_files_that_have_both_times() -> None:
    files = [read(value, f"{name}.json") for name, value in made.EVERY.items()]
    overall, decoding, loading = headlines(files)
    assert [h.stated for h in (overall, decoding, loading)] == [3.3, 1.9, 8.0]
    assert {one.file[0] for one in overall.evidence} == {"A", "B", "C", "D"}
    assert {one.file[0] for one in decoding.evidence} == {"A", "B", "C", "D", "E"}
    assert {one.file[0] for one in loading.evidence} == {"A", "B", "D"}


def test_ratios_are_the_others_time_over_eventgpts() -> None:
    overall, decoding, loading = headlines([read(made.flat(6))])
    assert overall.evidence[0].recorded == pytest.approx(2.3 / 1.03)
    assert decoding.evidence[0].corrected == pytest.approx(2.0)
    assert loading.evidence[0].paired and loading.evidence[0].paired.median == pytest.approx(10.0)
    assert decoding.verdict == "1 file gives 2.00x; 1 of 1 within 10 % of 1.9x."


def test_a_claim_is_judged_only_if_all_files_agree() -> None:
    near = read(made.flat(6))  # decoding 2.0x, which is within 10 % of 1.9x
    far = read(scaled(0.5, "stage3_time"), "far.json")
    overall, decoding, _ = headlines([near])
    assert (overall.outcome, decoding.outcome) == ("not supported", "supported")
    assert decoding.line == (
        "Supported: EventGPT is 1.9x faster in decoding. "
        "1 file gives 2.00x; 1 of 1 within 10 % of 1.9x."
    )
    assert headlines([near, far])[1].outcome == "cannot be judged"
    assert {claim.outcome for claim in headlines([])} == {"cannot be judged"}


def only_means(tokens: float, **config: float) -> dict[str, Any]:
    """G with means of both models: 350 ms with so many tokens, and 700 with 50."""
    value = made.wallclock()
    value["config"] |= config
    value["stage_timing"] = {
        "eventgpt": {"decode_ms": 350.0, "avg_tokens": tokens},
        "videollava": {"decode_ms": 700.0, "avg_tokens": 50.0},
    }
    return value


def test_means_without_rows_are_evidence_of_decoding_alone() -> None:
    overall, decoding, loading = headlines([read(only_means(25.0))])
    (one,) = decoding.evidence
    assert one.recorded == 2.0 and one.samples == 0 and one.paired is None
    assert "2.00x the tokens at 1.00x the time per token" in one.notes
    assert not overall.evidence and not loading.evidence


def test_means_at_the_limit_are_cut_answers() -> None:
    told = headlines([read(only_means(50.0, max_new_tokens=50))])[1].evidence[0].notes
    assert "EventGPT: all answers stopped at 50 tokens" in told
    assert any("(baseline): all 4 answers stop at 50 tokens" in note for note in told)
    told = headlines([read(only_means(34.0, max_new_tokens=50))])[1].evidence[0].notes
    assert not any(note.startswith("EventGPT: ") for note in told)


def parts(value: object, corrected: bool = True) -> dict[str, float]:
    fall = waterfall(read(value), corrected)
    return fall.parts if fall else {}


@pytest.mark.parametrize("value", [made.five(), made.parallel()])
def test_a_stage_that_was_not_measured_is_no_0(value: object) -> None:
    """Video-LLaVA's vision tower ran in its prefill."""
    found = parts(value)
    assert "vision" not in found and "prefill" not in found
    theirs, mine = (320.0, 98.0) if "load" in found else (300.0, 78.0)
    assert found["prefill + vision"] == pytest.approx(theirs - mine, abs=0.01)


def test_vision_inside_of_decoding_is_not_divided() -> None:
    value = made.legacy()
    for row in value["videollava_results"]:
        row["stage3_time"] = 0.0
    fall = waterfall(read(value))
    assert fall is not None and fall.per_token_ratio is None and fall.tokens_ratio
    found = fall.parts
    assert set(found) >= {"vision + decode"} and not set(found) & {"vision", "time per token"}
    assert found["vision + decode"] == pytest.approx(1600 - 805)


def test_what_no_stage_covers_is_a_part_however_small() -> None:
    value = made.flat()
    assert "unaccounted" not in parts(value)
    for row in value:
        row["llava_time"] += 0.0013
    assert parts(value)["unaccounted"] == pytest.approx(1.3)
    for row in value:
        del row["llava_stage1_time"]  # of 200 ms: a stage of one model is a part of its own
    found = parts(value)
    assert "load" not in found and found["unaccounted"] == pytest.approx(201.3)
    assert found["load, timed for one model only"] == pytest.approx(-20.0)
    loading = headlines([read(value, "a")])[2]
    assert "loading is timed for one model only" in reasons(loading)["a"]


def test_decoding_that_cannot_be_divided_is_no_unaccounted_time() -> None:
    value = made.five()
    for row in value["results"]:
        row["eventgpt"]["output_tokens"] = [5]
        row["eventgpt"]["num_output_tokens"] = 1
        row["eventgpt"]["output_text"] = "Road"
    found = parts(value)
    assert "unaccounted" not in found and found["decode"] == pytest.approx(750 - 440)


def test_fewer_tokens_are_told_from_faster_tokens() -> None:
    """The first token of D is its prefill's: 440 ms over 39 tokens against 750 over 49."""
    file, all_tokens = read(made.five()), read(made.parallel())
    fall = waterfall(file)
    assert fall and fall.per_token_ratio == pytest.approx((750 / 49) / (440 / 39))
    assert fall.tokens_ratio == pytest.approx(50 / 40) and "N - 1" in answer_pairs.definition(file)
    found = fall.parts
    assert found["fewer tokens"] == pytest.approx(10 * 440 / 39)
    assert found["fewer tokens"] + found["time per token"] == pytest.approx(750 - 440)
    other = waterfall(all_tokens)
    assert other and other.per_token_ratio == pytest.approx((800 / 40) / (500 / 28))
    assert "all N" in answer_pairs.definition(all_tokens)
    equal = waterfall(read(made.flat()))
    assert equal and equal.tokens_ratio == 2.0 and equal.per_token_ratio == pytest.approx(1.0)
    found = equal.parts
    assert found["fewer tokens"] == pytest.approx(1000.0)
    assert found["time per token"] == pytest.approx(0.0, abs=1e-6)
    for value in (made.texts(), made.failed(), made.speculation()):
        assert waterfall(read(value)) is None
    (one,) = headlines([read(made.speculation())])[1].evidence  # its lengths are told even so
    assert one.notes[0] == "1.67x the tokens at 1.58x the time per token"


def test_recorded_values_keep_label_prompt_and_warm_up() -> None:
    """As recorded the prompt counts as output: 617 tokens against 11."""
    file = read(made.legacy())
    (overall, *_), (as_recorded, *_) = headlines([file]), headlines([file], corrected=False)
    one = as_recorded.evidence[0]
    assert one.ratio(True) == one.corrected != one.recorded == one.ratio(False)
    assert overall.verdict != as_recorded.verdict
    assert "is not plausible" in "; ".join(one.notes)
    recorded, corrected = waterfall(file, corrected=False), waterfall(file)
    assert recorded and corrected and recorded.tokens_ratio and corrected.tokens_ratio
    labels = ("Video-LLaVA, label disputed", "LLaVA-1.5")
    assert (one.other, overall.evidence[0].other) == labels == (recorded.slow, corrected.slow)
    assert recorded.tokens_ratio > 20 * corrected.tokens_ratio
    assert recorded.fast_ms > corrected.fast_ms and corrected.nonsense == ""
    assert "implausible parts" in recorded.nonsense and "fewer tokens" in recorded.nonsense
    saved = math.fsum(recorded.parts.values())
    assert saved == pytest.approx(recorded.slow_ms - recorded.fast_ms)


def reasons(headline: Headline) -> dict[str, str]:
    """By file, why it says nothing."""
    return {file: why for why, files in headline.without.items() for file in files}


def test_every_file_without_both_times_says_why() -> None:
    alone = made.five()
    for row in alone["results"]:
        del row["videollava"]
    value = made.EVERY | {"F3": made.pairs("F3"), "alone": alone, "other": {"a": 1}}
    files = [read(one, name) for name, one in value.items()]
    overall, decoding, loading = headlines(files)
    for headline in (overall, decoding, loading):
        told = reasons(headline)
        assert set(told) | {one.file for one in headline.evidence} == set(value)
        assert not set(told) & {one.file for one in headline.evidence}
        assert "the run failed" in told["Z"] and "not usable" in told["other"]
        assert "one model only" in told["alone"] and "no times" in told["F3"]
    assert "not include loading" in reasons(overall)["E"] and "loading" in reasons(overall)["H"]
    assert "no rows of EventGPT" in reasons(overall)["G"]
    assert "together with preprocessing" in reasons(loading)["C"]
    assert "only whole answers" in reasons(decoding)["H"]


def scaled(by: float, *keys: str) -> object:
    """A whose EventGPT times under these keys are that many times as long."""
    value = made.flat()
    for row in value:
        for key in keys:
            row[f"egpt_{key}"] *= by
    return value


EVERY_TIME = ("time", "stage1_time", "stage2_time", "stage3_time")


@pytest.mark.parametrize("models", [("egpt",), ("egpt", "llava")])  # both: the ratio looks right
def test_a_file_whose_units_cannot_be_right_is_in_no_verdict(models: tuple[str, ...]) -> None:
    rows = made.flat()
    for row in rows:
        row |= {f"{model}_{key}": 1000 * row[f"{model}_{key}"] for model in models
                for key in EVERY_TIME}  # fmt: skip
    good, bad = read(made.flat(), "good"), read(rows, "bad")
    for headline in headlines([good, bad]):
        doubted = {one.file: one.doubted for one in headline.evidence}
        assert doubted == {"good": False, "bad": True}
        assert "1 file gives" in headline.verdict and "1 more not counted" in headline.verdict
        (noted,) = [one for one in headline.evidence if one.doubted]
        assert "units in doubt" in noted.notes[0]
    assert "a token of egpt takes 90,909 ms" in headlines([bad])[0].evidence[0].notes[0]
    (alone, *_) = headlines([bad])
    assert "so there is no evidence" in alone.verdict and "not counted" in alone.verdict


def test_a_stage_far_faster_is_believed_where_it_adds_up() -> None:
    """Loading in 0.2 ms against 200: the stages still make up the totals, in one unit."""
    value = made.flat()
    for row in value:
        row["egpt_stage1_time"], row["egpt_time"] = 0.0002, 1.0102
    assert headlines([read(value)])[2].evidence[0].doubted is False
    _, decoding, loading = headlines([read(scaled(1000, "stage1_time"))])
    assert loading.evidence[0].doubted and decoding.evidence[0].notes
    value = made.flat()
    for key in EVERY_TIME:
        value[2][f"llava_{key}"] *= 1000  # of one record
    assert all(claim.evidence[0].doubted for claim in headlines([read(value)]))


def test_claims_go_into_json() -> None:
    found = [asdict(one) for one in headlines([read(made.flat(6), "a"), read(made.failed(), "z")])]
    evidence = json.loads(json.dumps(found, allow_nan=False))[0]["evidence"][0]
    assert evidence["file"] == "a" and evidence["paired"]["low"] <= evidence["paired"]["median"]
    assert [*found[1]["without"].values()] == [("z",)]
