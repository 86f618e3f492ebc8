"""A model's runs, who was fastest and why, and every reason for which no model is named."""

import random
from dataclasses import replace
from typing import Any

import pytest

from engine.analysis import compared
from engine.analysis.compared import ComparedModel, RunRange, RunVerdict, verdict
from engine.machine.load import MachineLoad
from engine.types import DecodeConfig, RunResult, Sample, Source, Span
from tests.ui.answers import CACHED, result


def ran(*results: RunResult) -> ComparedModel:
    return ComparedModel("One", "llava", results)


def test_a_time_that_the_middle_run_lacks_is_none_and_runs_without_it_do_not_count() -> None:
    lasting = result(vision=(90.0, "measured", None))
    model = ran(result(tokens=1), result(), lasting)
    tpot = model.time("tpot")
    assert model.middle.new_tokens == 3 and tpot is not None and tpot.runs == 2
    assert ran(result(tokens=1), lasting).time("tpot") is None
    assert model.time("absent") is None


def cancelled(run: RunResult) -> RunResult:
    return replace(run, generation=replace(run.generation, stop="cancelled"))


def test_the_cold_run_is_left_out_and_said() -> None:
    runs = (result(cold=True, vision=(900.0, "measured", None)), result(), result())
    model = ran(*runs)
    assert model.counted == runs[1:]
    assert model.time("total") == RunRange(175.0, 175.0, 175.0, 2)
    assert model.left_out == {"cold, the first run after loading": 1}
    assert ran(*runs[1:], runs[0]).counted == runs[1:]  # loaded again in between


def test_a_computed_stage_is_not_mixed_with_cached_ones() -> None:
    runs = (result(), result(vision=CACHED), result(vision=CACHED))
    model = ran(*runs)
    assert model.time("vision") == RunRange(2.0, 2.0, 2.0, 2)
    assert model.left_out == {"vision measured": 1}
    computed = ran(result(), result(), result())  # control
    assert computed.left_out == {} and len(computed.counted) == 3


def test_cancelled_and_failed_runs_do_not_count() -> None:
    runs = (result(), result(), cancelled(result(tokens=1)))
    model = ComparedModel("One", "llava", runs, failures=("Out of memory.",))
    assert model.last is runs[1]
    assert model.left_out == {"cancelled before the end": 1, "failed": 1}
    queued = replace(model, unfinished=2)
    assert queued.left_out == {"cancelled before the end": 3, "failed": 1}


def test_a_single_run_counts_whatever_its_state() -> None:
    for run in (result(cold=True), cancelled(result(tokens=2)), result(vision=CACHED)):
        model = ran(run)
        assert model.last is run and model.left_out == {}


def test_the_times_without_cache() -> None:
    found = compared.uncached_times(ran(result(vision=CACHED)))
    assert found is not None and sum(found.values()) == pytest.approx(175)
    assert compared.uncached_times(ran(result())) is None


def test_segments_of_another_order_lie_end_to_end() -> None:
    found = compared.segments({"b": 2.0, "c": 3.0}, ("c", "b"))
    assert [(one.name, one.start_ms, one.ms) for one in found] == [("c", 0, 3), ("b", 3, 2)]


QUIET = MachineLoad(0.0, 1000.0, 990.0, 2, 1, waited_ms=1.0, others=0.1)
LOADED = replace(QUIET, waited_ms=600.0)


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
    answer = replace(made.generation, token_ids=tuple(range(tokens)), token_ms=times)
    found = replace(made, spans=spans, generation=answer, total_ms=start + prefill + steps + 5)
    return replace(found, **changes)


def about(found: RunResult, **changes: Any) -> RunResult:
    return replace(found, request=replace(found.request, **changes))


def asked(found: RunResult, **changes: Any) -> RunResult:
    return about(found, how=replace(found.request.how, **changes))


def model(label: str, *results: RunResult) -> ComparedModel:
    return ComparedModel(label, "llava", results)


def judged(*results: RunResult) -> RunVerdict:
    named = zip(("One", "Two", "Three"), results, strict=False)
    return verdict([model(label, found) for label, found in named], {})


def test_who_was_first_in_one_run_is_no_conclusion() -> None:
    found = judged(run(prefill=140.0), run())
    assert found.headline == "Two was first in this run: 205 ms, 110 ms less than One."
    assert found.winner == "" and found.repeats == 10 and not found.mixed
    assert [one.label for one in found.models] == ["One", "Two"]  # the order of the columns
    assert found.reason == "Less time for prefill (30.0 ms against 140 ms) saved 110 ms."
    assert found.notes == ("One run of each model: other runs take other times.",)
    assert judged(run(), run()).headline == "No difference shown between One and Two."


def test_a_short_answer_is_told_from_a_fast_one() -> None:
    """32 tokens at 12 ms end before 77 tokens at 5.6 ms, but the second is faster per token."""
    found = judged(run(77, 5.6), run(32, 12.0), run(90, 12.0))
    assert found.headline.startswith("Two was first in this run: ")
    assert found.reason.startswith("Fewer tokens (32 against 77) saved ")
    assert "everything else together cost " in found.reason
    assert found.notes[0] == "Per token, One took the least time: 5.67 ms."


def any_runs(label: str, rng: random.Random) -> ComparedModel:
    """Up to six runs of any times, some with a cached stage, a rest and parts that are no time."""
    cached, made = rng.random() < 0.5, []
    for _ in range(rng.randint(1, 6)):
        load, preprocess, vision, prefill, per_token, rest = (
            rng.choice((0.0, rng.uniform(0, 500))) for _ in range(6)
        )
        start, tokens = load + preprocess + vision, rng.randint(1, 90)
        steps = (tokens - 1) * per_token
        spans = (
            Span("load", 0, load),
            Span("preprocess", load, preprocess),
            Span("vision", load + preprocess, vision, "cached" if cached else "measured", 70.0),
            Span("decode", start, prefill + steps + rest),
            Span("decode.prefill", start, prefill),
            Span("decode.steps", start + prefill, steps),
        )
        times = tuple(start + prefill + per_token * index for index in range(tokens))
        answer = replace(run(tokens).generation, token_ms=times)
        total = start + prefill + steps + 2 * rest + 1
        made.append(replace(run(), spans=spans, generation=answer, total_ms=total))
    return model(label, *made)


@pytest.mark.parametrize("seed", range(15))
def test_all_parts_add_up(seed: int) -> None:
    """The waterfall to the difference that the headline names, each bar to its total."""
    rng = random.Random(seed)
    models = [any_runs("One", rng), any_runs("Two", rng)]
    for shown in models:
        total = shown.total
        assert total.low <= total.middle <= total.high
        assert sum(compared.run_times(shown).values()) == pytest.approx(total.middle)
        without, whole = compared.uncached_times(shown), shown.time("uncached_total")
        assert whole is not None
        if without is not None:
            assert sum(without.values()) == pytest.approx(whole.middle)
    fall = compared.split(*models)
    assert fall is not None
    difference = models[1].total.middle - models[0].total.middle
    assert sum(part.ms for part in fall.parts) == pytest.approx(difference, abs=1e-6)
    for side, shown in zip("ab", models, strict=True):
        tpot = shown.time("tpot")
        values = {part.name: getattr(part, side) for part in fall.parts}
        assert tpot is None or values["time per token"] == pytest.approx(tpot.middle)


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
    assert found.reason == "" and found.split is None
    assert found.repeats == (10 if name in ("cache", "warm-up") else 0)  # these pass
    assert found.headline == f"No winner: the runs differ in {name}."
    assert words in found.mixed[0]
    assert judged(run(prefill=500.0), run()).split  # control


def test_several_differences_are_all_named() -> None:
    found = judged(run(), run(vision=CACHED, cold=True, machine_load=LOADED))
    assert found.headline == "No winner: the runs differ in cache and warm-up."
    assert len(found.mixed) == 3 and found.mixed[-1] == "Other work slowed Two."


def test_equal_conditions_are_compared_and_what_limits_all_times_is_said() -> None:
    slow = run(vision=(2.0, "cached", 400.0), cold=True, prefill=90.0)
    found = judged(run(vision=CACHED, cold=True), slow)
    assert found.headline.startswith("One was first in this run")
    assert found.notes[0] == (
        "All models read from the cache. Total without cache: One 205 ms, Two 625 ms."
    )
    assert "All runs were cold" in found.notes[1]


def repeated(
    label: str, *totals: float, load: MachineLoad | None = None, after: float = 0.0
) -> ComparedModel:
    """Runs with these times of prefill, by turns; `after`: seconds that they begin later."""
    loads = [load and replace(load, began_s=i + after) for i in range(len(totals))]
    made = (run(prefill=ms, machine_load=one) for ms, one in zip(totals, loads, strict=True))
    return model(label, *made)


FAST, SLOW = (30.0, 20.0, 40.0, 35.0, 33.0), (130.0, 140.0, 150.0, 145.0, 120.0)


def test_repeats_name_a_winner_by_an_exact_test() -> None:
    found = verdict([repeated("Slow", *SLOW), repeated("Fast", *FAST)], {})
    assert found.winner == "Fast" and not found.repeats
    assert found.headline == (
        "Fast is faster on this sample: 208 ms, 107 ms less than Slow (95 % interval 87.0 ms to "
        "120 ms)."
    )
    assert found.notes == ("Times of the median run of 5, with the ranges of all.",)
    third = repeated("Third", *(ms + 300 for ms in SLOW))
    found = verdict([repeated("Slow", *SLOW), third, repeated("Fast", *FAST)], {})
    assert found.headline.startswith("Fast is fastest on this sample: ")


def test_repeats_that_a_test_does_not_tell_apart_show_no_difference() -> None:
    wide = repeated("Fast", 30.0, 20.0, 160.0, 155.0, 33.0)
    found = verdict([repeated("Slow", *SLOW), wide], {})
    assert found.headline == "No difference shown between Fast and Slow."
    assert (found.winner, found.repeats) == ("", 10)
    assert found.reason == (
        "Fast took 208 ms and Slow 315 ms, but these runs do not decide: the 95 % interval of the "
        "difference, −30.0 ms to 120 ms, includes 0."
    )
    third = repeated("Third", *(ms + 300 for ms in SLOW))
    among = verdict([repeated("Slow", *SLOW), third, wide], {})
    assert among.headline == found.headline
    assert among.reason == f"{found.reason} Fast is faster than Third."


def test_three_repeats_are_too_few_to_decide_and_four_are_not() -> None:
    found = verdict([repeated("Slow", *SLOW[:3]), repeated("Fast", *FAST[:3])], {})
    assert found.headline.startswith("Fast was first by the medians of 3 runs: ")
    assert found.winner == "" and found.repeats == 10
    found = verdict([repeated("Slow", *SLOW[:4]), repeated("Fast", *FAST[:4])], {})
    assert found.winner == "Fast"


def test_other_work_is_a_note_if_the_models_took_turns() -> None:
    fast, slow = repeated("Fast", *FAST, load=LOADED), repeated("Slow", *SLOW, load=LOADED)
    found = verdict([slow, fast], {})
    assert found.winner == "Fast"
    assert found.mixed == ("Other work slowed all models; they took turns, so the order holds.",)
    later = repeated("Slow", *SLOW, load=LOADED, after=5.0)
    apart = verdict([later, fast], {})
    assert (apart.winner, apart.repeats) == ("", 10)
    assert apart.headline.startswith("Fast was first by the medians of 5 runs: ")
    assert apart.mixed == ("Other work slowed all models; without it the order may differ.",)
    single = judged(run(prefill=500.0, machine_load=QUIET), run(machine_load=LOADED))
    assert single.headline == "Two was first in this run: 205 ms, 470 ms less than One."
    assert single.mixed[0].startswith("Other work slowed Two; ")


def test_who_is_first_with_the_time_that_the_cache_saved_is_said_if_it_is_another() -> None:
    slow = (*CACHED[:2], 400.0)
    found = judged(run(vision=slow), run(vision=CACHED, prefill=90.0))
    assert found.headline.startswith("One was first in this run: 167 ms, 60.0 ms less than Two")
    assert found.mixed == (
        "Vision came from the cache; with its own time, measured once, Two took the least: 265 ms.",
    )
    same = judged(run(vision=CACHED), run(vision=CACHED, prefill=90.0))  # the control
    assert same.headline == found.headline and same.mixed == ()


def test_a_cold_run_among_warm_ones_of_a_model_is_named_and_not_counted() -> None:
    found = verdict([model("One", run(cold=True), run()), model("Two", run(prefill=99.0))], {})
    assert found.headline.startswith("One was first") and found.models[0].total.runs == 1
    assert found.notes[0] == "Not counted: 1 run of One (cold, the first run after loading)."


def test_cancelled_and_failed_runs_are_named_and_not_counted() -> None:
    whole = run()
    cut = cancelled(run(2))
    found = verdict([model("One", whole, cut), model("Two", cut)], {"Three": "failed"})
    assert found.headline == "One took 205 ms for 11 tokens." and found.winner == ""
    assert [one.label for one in found.models] == ["One"]
    assert found.mixed == ("Not counted: Three failed; Two cancelled.",) and found.repeats == 10
    assert found.notes == ("Not counted: 1 run of One (cancelled before the end).",)
    none = verdict([], {"One": "cancelled"})
    assert none.headline == "No model has finished." and not none.repeats  # Run does the same


def test_a_run_without_its_parts_gives_no_reason() -> None:
    bare = replace(run(), spans=run().spans[:3])
    found = judged(bare, run(prefill=90.0))
    assert found.headline.startswith("One was first")
    assert "saved" not in found.reason and found.split is None


def test_one_token_has_no_time_per_token() -> None:
    found = judged(run(1), run(1, prefill=60.0))
    assert found.split and found.models[0].time("tpot") is None
    assert "Per token" not in found.reason
