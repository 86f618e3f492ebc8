"""Kept figures as rows: which medians are taken, and that a missing target stays missing."""

from __future__ import annotations

from typing import Any

from benchmarks import ratios
from benchmarks.machine import spread


def way(ms: float, times: float) -> dict[str, Any]:
    return {"times_of_own_cpu": spread([ms / 20]), "times_less_cpu": spread([times])}


def test_a_clip_stands_against_decoding_everything_and_against_each_rival() -> None:
    cell = {"decode all": way(60, 1), "StageScope": way(20, 3), "OpenCV": way(50, 1.2)}
    found = ratios.rows("video", dict.fromkeys(ratios.CLIPS, cell))
    assert len(found) == 2 * len(ratios.CLIPS)
    whole, rival = found[:2]
    assert (whole["against"], whole["ratio"], whole["target"]) == ("decoding everything", 3.0, 1.5)
    assert (rival["against"], rival["ratio"], rival["target"]) == ("OpenCV", 2.5, 1.0)
    assert rival["repeat"] == "python -m benchmarks.video"


def test_a_recording_that_was_not_there_has_no_row() -> None:
    (one,) = ratios.rows("events", {"demo": {"events": 1000, "times_less": spread([20])}})
    assert one["what"].startswith("1,000 events") and one["target"] == 18


def test_pixels_have_a_row_for_each_setting() -> None:
    ways = {"exact": {"times_less": spread([1.2])}, "fast": {"times_less": spread([6])}}
    kept = {"measured": "today", "8 x 1x1 -> 2": {"CLIP": ways}, "stages 1 and 2, 1 s": ways}
    found = ratios.rows("preprocessing", kept)
    assert [(row["ratio"], row.get("target")) for row in found] == [
        (1.2, 1.15), (6, 5.0), (1.2, None), (6, None)
    ]  # fmt: skip


def test_decoding_is_judged_by_processor_time() -> None:
    over = {"eager": spread([1.6]), "compiled": spread([4])}
    one = {"new_tokens": 48, "answer": {"generate_over_cpu": over}}
    found = ratios.rows("decoding", {"models": {"m": one}})
    assert [(row["ratio"], row["target"]) for row in found] == [(1.6, 1.5), (4, 3.0)]


def test_only_the_model_that_has_a_target_for_a_second_question_shows_one() -> None:
    lower = {"computed": spread([5]), "features_read": spread([4])}
    models = {one: {"ttft_times_lower_than": lower} for one in ("video-llava-demo", "llava-demo")}
    found = ratios.rows("again", {"models": models})
    assert [row.get("target") for row in found] == [3.0, None, None, None]


def test_drafting_shows_the_prediction_beside_and_wants_nothing() -> None:
    one = {"measured": {"median": 0.5}, "predicted_in_the_loop": 0.6}
    (row,) = ratios.rows("drafting", {"target": "m", "drafts": {"lookup": {"4": one}}})
    assert row["ratio"] == 0.5 and "0.60x" in row["against"] and "target" not in row


def test_batches_stand_against_single_runs() -> None:
    size = {"cpu": {"times_single_runs": spread([2.5])}}
    (row,) = ratios.rows("batches", {"models": {"m": {"batch of 1": size, "batch of 4": size}}})
    assert row["ratio"] == 2.5 and "batch of 4" in row["what"]


def test_families_stand_against_generate_with_and_without_cached_features() -> None:
    ways = {"generate": spread([1]), "computed": spread([1.1]), "cached": spread([1.5])}
    kept = {"pictures": 8, "new_tokens": 64, "models": {"m": {"generate_over_cpu": ways}}}
    found = ratios.rows("families", kept)
    assert [(row["ratio"], row["against"]) for row in found] == [
        (1.1, "generate()"), (1.5, "generate()")
    ]  # fmt: skip
    assert found[1]["what"] == "8 pictures and 64 tokens, from cached features, m"


def test_a_files_own_rows_go_before_and_an_unknown_kind_has_none() -> None:
    assert ratios.rows("video", {"rows": [{"what": "a"}]}) == [{"what": "a"}]
    assert ratios.rows("zoo", {"figure": 3}) == []
    assert ratios.rows("runs", {"rows": 506}) == []  # a count of another meaning
