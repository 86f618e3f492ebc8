"""Verdicts on times, from runs whose times are known because they are made up here."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from engine.machine.load import Moment
from engine.types import Generation, ModelInfo, RunRequest, RunResult, Sample, Source, Span
from engine.verify import stage_times
from engine.verify.answer_paths import RecordedAnswer
from engine.verify.stage_times import clocks_differ, token_faults

INFO = ModelInfo("m", "llava", "c", None, "float32", False)
REQUEST = RunRequest(Sample("s", "q"), "m", "Why?")


def result(
    vision: float = 10.0,
    rest: float = 0.0,
    source: Source = "measured",
    tokens: Sequence[float] = (),
) -> RunResult:
    """load 5, preprocess 5, vision, decode 80, and `rest` that no stage covers."""
    spans, start = [], 0.0
    for name, ms in (("load", 5.0), ("preprocess", 5.0), ("vision", vision), ("decode", 80.0)):
        spans.append(Span(name, start, ms, source))
        start += ms
    begin = start - 80
    tokens = tokens or (begin + 60, begin + 70)
    spans.append(Span("decode.prefill", begin, tokens[0] - begin, source))
    answer = Generation((1, 2), "", "eos", 9, tuple(tokens))
    return RunResult(REQUEST, INFO, tuple(spans), answer, start + rest, False)


def rounds(*results: tuple[RunResult, RunResult, RunResult]) -> list[dict[str, RunResult]]:
    return [dict(zip(("computed", "cached", "hooked"), row, strict=True)) for row in results]


def test_two_per_cent_that_no_stage_covers_fail() -> None:
    bad = result(rest=3)
    found = stage_times.accounted(rounds(*[(result(), bad, result())] * 6))
    assert found.outcome == "failed" and "cached" in found.sentence
    assert stage_times.accounted(rounds(*[(result(rest=-3),) * 3] * 6)).outcome == "failed"
    assert stage_times.accounted(rounds(*[(bad,) * 3] * 3)).outcome == "unresolved"


ANSWER_MS = 400.0  # a natural answer; the pairs are short answers


def pairs(costs: Sequence[float], answer: float = ANSWER_MS) -> stage_times.Pairs:
    return stage_times.Pairs(tuple((13.0, 13.0 + cost) for cost in costs), answer)


@pytest.mark.parametrize(
    ("cost", "answer", "outcome"),
    [
        (0.31, 420.0, "passed"),  # 2.4 % of a short answer, 0.07 % of the whole one
        (0.31, 15.0, "passed"),  # an answer of two tokens: 2 % of it, but 0.3 ms
        (1.55, 75.0, "failed"),  # the same on a machine of a fifth of the speed
        (3.0, 420.0, "passed"),  # a large model: 3 ms, but 0.7 %
        (30.0, 420.0, "failed"),
        (30.0, 4000.0, "passed"),
    ],
)
def test_the_probes_cost_fails_only_as_a_share_and_in_ms(
    cost: float, answer: float, outcome: str
) -> None:
    found = stage_times.observer(pairs([cost + 0.01 * (i % 3) for i in range(40)], answer))
    assert found.outcome == outcome, found.sentence
    assert found.figure == pytest.approx(cost / answer, rel=0.1)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [((10, 90), "not within the decode stage"), ((90, 80), "before that of the previous one")],
)
def test_a_token_outside_stage_4_or_out_of_order_fails(
    tokens: tuple[float, float], words: str
) -> None:
    found = stage_times.clock(rounds((result(), result(tokens=tokens), result())))
    assert any(words in fault for fault in found.evidence["faults"])


@pytest.mark.parametrize(
    ("probed", "outcome"),
    [
        ((10, 10.5, 9.8, 10.2, 10), "passed"),
        ((9,) * 5, "passed"),
        ((7,) * 5, "unresolved"),
        ((4,) * 5, "failed"),
        ((30,) * 5, "failed"),
        ((6, 14, 8, 11, 9), "unresolved"),
        ((8, 8, 8, 8), "unresolved"),
        ((3, 3, 3), "unresolved"),
    ],
)
def test_stage_3_by_probe_against_alone(probed: tuple[float, ...], outcome: str) -> None:
    rows = [(result(10), result(), result(ms)) for ms in (99, *probed)]
    found = stage_times.stage3(rounds(*rows))
    assert found.outcome == outcome
    assert found.evidence["probe_ms"] == list(probed) and found.evidence["n"] == len(probed)
    assert ("not resolved with n =" in found.sentence) == (outcome == "unresolved")


def test_a_clock_that_only_goes_forward_passes() -> None:
    found = stage_times.clock(rounds((result(),) * 3, (result(),) * 3))
    assert found.outcome == "passed" and found.evidence["runs"] == 6


@pytest.mark.parametrize(
    "bad",
    [
        result(vision=-1),
        result(rest=-10),
        RunResult(
            REQUEST,
            INFO,
            (Span("load", 0, 10), Span("vision", 5, 10)),
            Generation((), "", "eos", 9, ()),
            20,
            False,
        ),
    ],
)
def test_time_that_goes_back_fails(bad: RunResult) -> None:
    found = stage_times.clock(rounds((result(), bad, result())))
    assert found.outcome == "failed" and found.evidence["faults"]


@pytest.mark.parametrize(("alone", "outcome"), [(0.2, "passed"), (20.0, "failed")])
@pytest.mark.parametrize("factor", [0.2, 2.9])
def test_stage_3_of_a_tiny_tower_may_differ_by_what_a_hook_costs(
    alone: float, outcome: str, factor: float
) -> None:
    found = stage_times.stage3(rounds(*[(result(alone),) * 2 + (result(factor * alone),)] * 6))
    assert found.outcome == outcome, found.sentence


SEEN = (20.0, 30.0, 40.0, 50.0, 60.0)


def answer(said: Sequence[float], seen: Sequence[float]) -> RecordedAnswer:
    ids = tuple(range(len(seen)))
    one = result()
    generation = Generation(ids, "", "eos", 9, tuple(said))
    one = replace(one, generation=generation, clocks=(Moment(5, 9, 0), Moment(5.1, 9.1, 0)))
    nothing = torch.empty(0)
    return RecordedAnswer("decoupled", ids, nothing, nothing, (), one, tuple(seen))


@pytest.mark.parametrize(
    ("said", "seen", "words"),
    [
        ([one + 0.1 for one in SEEN], SEEN, None),
        ([one + 5 for one in SEEN], SEEN, None),  # may be a busy machine
        # A pause before one token is reported shifts no other.
        ([20.1, 30.1, 95.0, 100.2, 110.2], [20.0, 30.0, 40.0, 100.1, 110.1], None),
        ([1000.0 + 10 * i for i in range(5)], SEEN, "after they were computed"),
        ([1.0 * i for i in range(5)], SEEN, "before it was computed"),
        (SEEN[:3], SEEN, "3 token times are reported for 5 tokens"),
    ],
)
def test_tokens_are_reported_when_they_are_computed(
    said: Sequence[float], seen: Sequence[float], words: str | None
) -> None:
    found = list(token_faults(answer(said, seen)))
    assert len(found) == (words is not None)
    assert words is None or words in found[0]


def test_a_clock_that_runs_slow_is_a_fault_and_a_wide_bracket_is_none() -> None:
    total = result().total_ms / 1000
    began = Moment(5.0, 9.0, 1e-6)
    fine = replace(result(), clocks=(began, Moment(5 + total, 9 + total, 1e-6)))
    assert list(clocks_differ(fine)) == []
    slow = replace(result(), clocks=(began, Moment(5 + total, 9 + 10 * total, 1e-6)))
    (fault,) = clocks_differ(slow)
    assert "another clock" in fault
    wide = replace(slow, clocks=(began, Moment(5 + total, 9 + total + 0.01, 0.02)))
    assert list(clocks_differ(wide)) == []
    assert list(clocks_differ(result())) == []  # nothing was recorded
