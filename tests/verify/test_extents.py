"""Natural ends, long answers and batches, judged on recordings that are made up."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from engine.types import Generation, ModelInfo, RunRequest, RunResult, Sample, Stop
from engine.verify import checks
from engine.verify.answer_paths import ModuleCalls, RecordedAnswer

EOS = (2,)
INFO = ModelInfo("m", "llava", "c", None, "float32", False)
REQUEST = RunRequest(Sample("s", "q"), "m", "Why?")


def answer(way: str, ids: tuple[int, ...], stop: Stop = "eos") -> RecordedAnswer:
    """An answer whose ids are the best of random logits over 8 tokens."""
    logits = torch.rand(len(ids), 8, generator=torch.Generator().manual_seed(1))
    for place, one in enumerate(ids):
        logits[place, one] = 2.0
    generation = Generation(ids, "", stop, 9, ())
    result = None if way == "plain" else RunResult(REQUEST, INFO, (), generation, 1.0, False)
    return RecordedAnswer(
        way, ids, logits, torch.zeros(1, 9, 3), (ModuleCalls("Tower", 1, 1),), result
    )


PLAIN = answer("plain", (5, 6, 2))


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
    found = checks.ends({"plain": PLAIN, "hooked": answer("hooked", ids, stop)}, EOS)
    assert found.outcome == outcome and words in found.sentence
    assert found.evidence["natural_end"]


def test_a_long_answer_says_how_far_it_reached_and_is_open_where_the_context_ends() -> None:
    def pieces(ids: Sequence[int]) -> list[str]:
        return [str(one) for one in ids]

    whole = answer("plain", (5,) * 272)
    found = checks.long((whole, replace(whole, way="decoupled")), 1e-5, pieces)
    assert found.outcome == "passed"
    assert (found.evidence["new_tokens"], found.evidence["positions"]) == (272, 281)
    short = answer("plain", (5,) * 200)
    found = checks.long((short, replace(short, way="decoupled")), 1e-5, pieces)
    assert found.outcome == "unresolved" and "too short" in found.sentence
    wrong = replace(whole, way="decoupled", ids=(*whole.ids[:-1], 4))
    assert checks.long((whole, wrong), 1e-5, pieces).outcome == "failed"
