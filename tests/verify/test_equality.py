"""Exact, tie, mismatch: told apart by margins and rounding, not by wishes.  Natural ends and long
answers, judged on recordings that are made up."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from engine.types import Generation, ModelInfo, RunRequest, RunResult, Sample, Stop
from engine.verify import checks
from engine.verify.answer_paths import ModuleCalls, RecordedAnswer

ROUNDING = 0.01
EOS = (2,)
INFO = ModelInfo("m", "llava", "c", None, "float32", False)
REQUEST = RunRequest(Sample("s", "q"), "m", "Why?")


def answer(way: str, *rows: list[float], ids: tuple[int, ...] | None = None) -> RecordedAnswer:
    """An answer whose ids are the best of their rows, unless others are given."""
    logits = torch.tensor(rows)
    best = tuple(int(i) for i in logits.argmax(dim=-1))
    seen = (ModuleCalls("Tower", 1, 1),)
    return RecordedAnswer(way, best if ids is None else ids, logits, torch.zeros(1, 2, 3), seen)


PLAIN = answer("plain", [0.0, 3.0, 1.0], [2.0, 1.999, 0.0], [0.0, 0.0, 5.0])


def test_equal_ids_are_exact_only_if_the_logits_are_equal_up_to_rounding() -> None:
    other = answer("other", [0.0, 3.0, 1.25], [2.0, 1.999, 0.0], [0.0, 0.0, 5.0])
    found = checks.compare(PLAIN, other, ROUNDING)
    assert (found.result, found.position, found.logit_difference) == ("DRIFT", None, 0.25)
    near = checks.compare(PLAIN, other, 0.2)
    assert (near.result, near.position) == ("EXACT", None)


@pytest.mark.parametrize(
    ("second", "rounding", "result"),
    [
        ([2.0, 2.001, 0.0], ROUNDING, "NUMERIC TIE"),
        ([2.0, 2.5, 0.0], ROUNDING, "MISMATCH"),
        ([2.0, 2.5, 0.0], 0.6, "NUMERIC TIE"),
        ([2.0, 2.001, 1.5], ROUNDING, "MISMATCH"),  # the logits lie apart elsewhere
        # A sampler that takes the second best of equal logits has no rounding to excuse it.
        ([2.0, 1.999, 0.0], 1e-6, "MISMATCH"),
    ],
)
def test_a_tie_has_margins_and_logits_within_rounding_on_both_sides(
    second: list[float], rounding: float, result: str
) -> None:
    other = answer("other", [0.0, 3.0, 1.0], second, [9.0, 0.0, 0.0], ids=(1, 1, 0))
    found = checks.compare(PLAIN, other, rounding)
    assert (found.result, found.position) == (result, 1)
    assert "token 2 of 3 differs" in found.sentence


def test_ids_that_are_not_the_best_are_found() -> None:
    assert checks.not_the_best(PLAIN) == []
    nothing = answer("nothing", [float("nan")] * 3)
    assert checks.not_the_best(nothing) == [0]
    assert checks.compare(PLAIN, nothing, float("nan")).result == "MISMATCH"
    odd = answer("odd", *PLAIN.logits.tolist(), ids=(1, 1, 2))
    assert checks.not_the_best(odd) == [1] and checks.greedy([odd]).outcome == "failed"


LONG = 300  # tokens


@pytest.mark.parametrize("place", [0, 8, LONG // 2, LONG - 1])
@pytest.mark.parametrize("what", ["token", "logits"])
def test_a_difference_is_found_wherever_it_stands(what: str, place: int) -> None:
    logits = torch.eye(5).repeat(LONG // 5, 1)
    plain = answer("plain", *logits.tolist())
    ids, moved = list(plain.ids), plain.logits.clone()
    if what == "token":
        ids[place] = (ids[place] + 1) % 5
    else:
        moved[place] += 0.05
    found = checks.compare(plain, replace(plain, ids=tuple(ids), logits=moved), ROUNDING)
    assert found.result == ("MISMATCH" if what == "token" else "DRIFT")
    assert checks.compare(plain, replace(plain, way="copy"), ROUNDING).result == "EXACT"


def stopped(way: str, ids: tuple[int, ...], stop: Stop = "eos") -> RecordedAnswer:
    """An answer whose ids are the best of random logits over 8 tokens."""
    logits = torch.rand(len(ids), 8, generator=torch.Generator().manual_seed(1))
    for place, one in enumerate(ids):
        logits[place, one] = 2.0
    generation = Generation(ids, "", stop, 9, ())
    result = None if way == "plain" else RunResult(REQUEST, INFO, (), generation, 1.0, False)
    return RecordedAnswer(
        way, ids, logits, torch.zeros(1, 9, 3), (ModuleCalls("Tower", 1, 1),), result
    )


WHOLE = stopped("plain", (5, 6, 2))


@pytest.mark.parametrize(
    ("ids", "stop", "outcome", "words"),
    [
        ((5, 6, 2), "eos", "passed", "All ways end after 3 tokens"),
        ((5, 6), "length", "failed", "end token of plain's answer is missing"),
        ((5, 6, 2, 2), "eos", "failed", "there is an end token before the last token"),
        ((5, 6, 2), "length", "failed", "reports a stop by 'length'"),
    ],
)
def test_every_way_ends_where_generate_does(
    ids: tuple[int, ...], stop: Stop, outcome: str, words: str
) -> None:
    found = checks.ends({"plain": WHOLE, "hooked": stopped("hooked", ids, stop)}, EOS)
    assert found.outcome == outcome and words in found.sentence
    assert found.evidence["natural_end"]


def test_a_long_answer_says_how_far_it_reached_and_is_open_where_the_context_ends() -> None:
    def pieces(ids: Sequence[int]) -> list[str]:
        return [str(one) for one in ids]

    whole = stopped("plain", (5,) * 272)
    found = checks.long((whole, replace(whole, way="decoupled")), 1e-5, pieces)
    assert found.outcome == "passed"
    assert (found.evidence["new_tokens"], found.evidence["positions"]) == (272, 281)
    short = stopped("plain", (5,) * 200)
    found = checks.long((short, replace(short, way="decoupled")), 1e-5, pieces)
    assert found.outcome == "unresolved" and "too short" in found.sentence
    wrong = replace(whole, way="decoupled", ids=(*whole.ids[:-1], 4))
    assert checks.long((whole, wrong), 1e-5, pieces).outcome == "failed"
