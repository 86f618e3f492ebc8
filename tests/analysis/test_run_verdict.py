"""Who was fastest and why, and every reason for which nobody is named."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from engine.analysis.compared import ComparedModel, RunVerdict, verdict
from engine.machine.load import MachineLoad
from engine.types import DecodeConfig, RunResult, Sample, Source, Span
from tests.ui.answers import CACHED, result

QUIET = MachineLoad(0.0, 1000.0, 990.0, 2, 1, waited_ms=1.0, others=0.1)
LOADED = dataclasses.replace(QUIET, waited_ms=600.0)


def run(
    tokens: int = 11,
    per_token: float = 10.0,
    prefill: float = 30.0,
    vision: tuple[float, Source, float | None] = (40.0, "measured", None),
    **changes: Any,
) -> RunResult:
    """load 10, preprocess 20, vision, prefill, the steps, 5 unaccounted."""
    start = 30 + vision[0]
    steps = (tokens - 1) * per_token
    times = tuple(start + prefill + per_token * index for index in range(tokens))
    spans = (
        Span("load", 0, 10),
        Span("preprocess", 10, 20),
        Span("vision", 30, *vision),
        Span("decode", start, prefill + steps),
        Span("decode.prefill", start, prefill),
        Span("decode.steps", start + prefill, steps),
    )
    made = result()
    generation = dataclasses.replace(
        made.generation, token_ids=tuple(range(tokens)), token_ms=times
    )
    found = dataclasses.replace(
        made, spans=spans, generation=generation, total_ms=start + prefill + steps + 5
    )
    return dataclasses.replace(found, **changes)


def asked(found: RunResult, **changes: Any) -> RunResult:
    return about(found, how=dataclasses.replace(found.request.how, **changes))


def about(found: RunResult, **changes: Any) -> RunResult:
    return dataclasses.replace(found, request=dataclasses.replace(found.request, **changes))


def model(label: str, *results: RunResult) -> ComparedModel:
    return ComparedModel(label, "llava", results)


def judged(*results: RunResult) -> RunVerdict:
    named = zip(("One", "Two", "Three"), results, strict=False)
    return verdict([model(label, found) for label, found in named], {})


def test_the_first_is_named_with_its_lead_and_the_models_are_ranked() -> None:
    found = judged(run(prefill=140.0), run())
    assert found.winner == "Two"
    assert found.headline == "Two was faster: 205 ms, 110 ms less than One."
    assert [one.label for one in found.models] == ["Two", "One"]
    reason = "Against One it saved 110 ms with shorter prefill (30.0 ms against 140 ms)."
    assert found.reason == reason and not found.mixed
    assert found.notes == ("One run of each model: other runs take other times.",)


def test_a_short_answer_is_told_from_a_fast_one() -> None:
    """32 tokens at 12 ms end before 77 tokens at 5.6 ms, but the second is faster per token."""
    found = judged(run(77, 5.6), run(32, 12.0), run(90, 12.0))
    assert found.headline.startswith("Two was fastest: ")
    assert "with fewer tokens (32 against 77)" in found.reason
    assert "but lost" in found.reason
    assert "with slower token steps (12.0 ms against 5.60 ms)." in found.reason
    assert found.reason.endswith("Per token, One took the least time: 5.67 ms.")


def test_the_shares_add_up_to_the_difference() -> None:
    first, second = run(32, 12.0), run(77, 5.6)
    parts = judged(first, second).reason.split("saved ")[1].split(" but lost ")
    saved, lost = (float(part.split(" ms")[0]) for part in parts)
    assert saved - lost == pytest.approx(second.total_ms - first.total_ms, abs=1)


def test_savings_are_named_until_they_explain_half() -> None:
    slow = run(prefill=50.0, vision=(60.0, "measured", None))
    reason = "Against Two it saved 20.0 ms with shorter vision (40.0 ms against 60.0 ms)."
    assert judged(run(), slow).reason == reason  # prefill saved as much
    slow = run(per_token=12.0, prefill=50.0, vision=(58.0, "measured", None))
    reason = judged(run(), slow).reason
    assert "20.0 ms with" in reason and " and " in reason
    assert "shorter prefill" in reason and "faster token steps" in reason


CASES: dict[str, tuple[RunResult, str]] = {
    "cache": (run(vision=CACHED), "vision read from the cache for Two"),
    "warm-up": (run(cold=True), "cold (first run after loading) for Two"),
    "mode": (asked(run(), mode="hooked"), "hooked for Two"),
    "token steps": (run(backend="compiled"), "compiled for Two"),
    "frames": (asked(run(), frames="spread"), "8 first-to-last frames for Two"),
    "event pictures": (asked(run(), extent="stream"), "event pictures sized by stream for Two"),
    "decoding": (
        asked(run(), decode=DecodeConfig(temperature=0.5, seed=3)),
        "sampled (temperature 0.5, top p 1, seed 3) for Two",
    ),
    "length": (asked(run(), decode=DecodeConfig(9)), "at most 9 new tokens for Two"),
    "device": (run(environment={"device": "cuda:0"}), "unknown for One; cuda:0 for Two"),
    "sample": (about(run(), sample=Sample("other", "q")), "other for Two"),
    "question": (about(run(), prompt="When?"), "When? for Two"),
}


@pytest.mark.parametrize("name", CASES)
def test_no_winner_where_a_condition_differs(name: str) -> None:
    changed, words = CASES[name]
    found = judged(run(prefill=500.0), changed)
    assert found.winner == "" and found.reason == ""
    assert found.headline == f"No winner: the runs differ in {name}."
    assert words in found.mixed[0]
    assert [one.label for one in found.models] == ["One", "Two"]  # not ranked
    assert judged(run(prefill=500.0), run()).winner == "Two"  # control


def test_no_winner_on_a_busy_machine() -> None:
    found = judged(run(prefill=500.0, machine_load=QUIET), run(machine_load=LOADED))
    assert found.winner == "" and [one.label for one in found.models] == ["Two", "One"]
    assert found.headline == (
        "Two was first: 205 ms, 470 ms less than One, but the machine was busy."
    )
    assert found.mixed == (
        "Other work on this machine slowed Two, so no model is called faster. "
        "Repeat on an idle machine.",
    )
    quiet = judged(run(prefill=500.0, machine_load=QUIET), run(machine_load=QUIET))
    assert quiet.winner == "Two"  # control


def test_several_differences_are_all_named() -> None:
    found = judged(run(), run(vision=CACHED, cold=True, machine_load=LOADED))
    assert found.headline == "No winner: the runs differ in cache and warm-up."
    assert len(found.mixed) == 3


def test_equal_conditions_name_a_winner_and_what_limits_all_times() -> None:
    slow = run(vision=(2.0, "cached", 400.0), cold=True, prefill=90.0)
    found = judged(run(vision=CACHED, cold=True), slow)
    assert found.winner == "One"
    assert found.notes[0] == (
        "All models read from the cache. Total without cache: One 205 ms, Two 625 ms."
    )
    assert "All runs were cold" in found.notes[1]


def test_repeats_use_medians_and_name_a_winner_only_without_overlap() -> None:
    slow = model("Slow", *(run(prefill=ms) for ms in (130.0, 140.0, 150.0)))
    fast = model("Fast", *(run(prefill=ms) for ms in (30.0, 20.0, 120.0)))
    found = verdict([slow, fast], {})
    assert found.winner == "Fast" and found.headline.startswith("Fast was faster: 205 ms, 110 ms")
    assert found.models[0].total.high == 295 and found.models[0].total.runs == 3
    assert found.notes == ("Medians and ranges of 3 runs of each model.",)

    wide = model("Fast", *(run(prefill=ms) for ms in (30.0, 20.0, 130.0)))
    found = verdict([slow, wide], {})
    assert found.winner == "" and found.headline == "No winner: the times of Fast and Slow overlap."
    assert judged(run(), run()).winner == judged(run(), run()).reason == ""  # equal times


def test_a_cold_run_among_warm_ones_of_a_model_is_named_and_not_counted() -> None:
    found = verdict([model("One", run(cold=True), run()), model("Two", run(prefill=99.0))], {})
    assert found.winner == "One" and found.models[0].total.runs == 1
    assert found.notes[0] == "Not counted: 1 run of One (cold, the first run after loading)."


def test_cancelled_and_failed_runs_are_named_and_not_counted() -> None:
    whole = run()
    cut = dataclasses.replace(
        run(2), generation=dataclasses.replace(run(2).generation, stop="cancelled")
    )
    found = verdict([model("One", whole, cut), model("Two", cut)], {"Three": "failed"})
    assert found.headline == "One took 205 ms for 11 tokens." and found.winner == ""
    assert [one.label for one in found.models] == ["One"]
    assert found.notes == (
        "Not counted: Three failed; 1 run of One (cancelled before the end); Two cancelled.",
    )
    assert verdict([], {"One": "failed"}).headline == "No model has finished."


def test_a_run_without_its_parts_gives_no_reason() -> None:
    bare = dataclasses.replace(run(), spans=run().spans[:3])
    found = judged(bare, run(prefill=90.0))
    assert found.winner == "One" and "it saved" not in found.reason


def test_one_token_has_no_time_per_token() -> None:
    found = judged(run(1), run(1, prefill=60.0))
    assert found.winner == "One" and found.models[0].per_token is None
    assert "Per token" not in found.reason
