"""Sentences and the parser that reads them back agree on every wording."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from engine.analysis.answer_reading import read_attributes, score
from engine.demo.evaluate import SCORED
from engine.demo.scenes import draw_truth
from engine.demo.wordings import (
    ASKED,
    ATTRIBUTES_ASKED,
    SENTENCES,
    VOICES,
    Voice,
    attributes_asked,
    reference,
)
from engine.prompts import COMMON_QUESTIONS
from tools.demo_training.tokenizer import draw_answer


def knowable(truth: dict[str, str], voice: Voice) -> dict[str, str]:
    hidden = {"event": "time of day", "image": "motion", "video": ""}[voice]
    return {name: value for name, value in truth.items() if name != hidden}


@pytest.mark.parametrize("voice", VOICES)
def test_description_tells_all_that_the_voice_can_know(voice: Voice) -> None:
    rng = np.random.default_rng(1)
    for _ in range(400):
        truth = draw_truth(rng)
        text = draw_answer(truth, voice, "describe", rng)
        assert read_attributes(text) == knowable(truth, voice), text


WORDINGS = [
    (table, key, sentence)
    for name in ("curve", "lead", "motion", "roadside", "pedestrian")
    for table in [getattr(SENTENCES, name)]
    for key, groups in table.items()
    for sentence in itertools.chain(*groups)
]


@pytest.mark.parametrize(("table", "key", "sentence"), WORDINGS)
def test_every_wording_is_read(table: dict[str, object], key: str, sentence: str) -> None:
    text = sentence.format(curve="left", lead="truck", rail="right", walker="left")
    found = read_attributes(text)
    wanted = {
        id(SENTENCES.curve): {"curve": "left" if key == "turn" else "straight"},
        id(SENTENCES.lead): {"lead vehicle": "truck" if key == "some" else "none"},
        id(SENTENCES.motion): {"motion": key},
        id(SENTENCES.roadside): {"roadside": key}
        | ({"guardrail side": "right"} if key == "guardrail" else {}),
        id(SENTENCES.pedestrian): {"pedestrian": "left" if key == "some" else "none"},
    }[id(table)]
    assert found == wanted


def test_what_cannot_be_seen_claims_nothing() -> None:
    for sentence in (*SENTENCES.no_hour, *SENTENCES.no_motion, *SENTENCES.road_detail):
        assert read_attributes(sentence) == {}
    assert read_attributes("") == {}


def test_contradictions_count_as_no_claim() -> None:
    text = "The road curves to the left. The road ahead is straight. It is day."
    assert read_attributes(text) == {"time of day": "day"}


def test_score_counts_only_where_an_attribute_applies() -> None:
    truths = [
        {"curve": "left", "lead vehicle": "car", "motion": "steady"},
        {"curve": "right", "lead vehicle": "none"},
    ]
    claims = [{"curve": "left", "motion": "steady", "motion, asked": "approaching"}, {}]
    table = score(truths, claims, SCORED)
    assert table["curve"] == {"accuracy": 0.5, "majority": 0.5, "n": 2, "claimed": 0.5}
    assert table["motion"]["n"] == 1 and table["motion"]["accuracy"] == 1.0
    assert table["motion, asked"]["accuracy"] == 0.0
    assert "roadside" not in table


SCENE = {
    "curve": "left",
    "lead vehicle": "car",
    "motion": "steady",
    "roadside": "guardrail",
    "guardrail side": "right",
    "pedestrian": "left",
    "time of day": "night",
}


@pytest.mark.parametrize("kind", ASKED)
def test_a_question_asks_for_what_its_reference_answer_states(kind: str) -> None:
    stated = read_attributes(reference(SCENE, kind=kind))
    assert stated == {name: SCENE[name] for name in ATTRIBUTES_ASKED[kind]}


def test_a_question_is_recognised_without_its_punctuation_and_case() -> None:
    assert attributes_asked("does the road curve") == {"curve"}
    assert attributes_asked("What colour is the car?") is None
    assert all(attributes_asked(question) is not None for question in COMMON_QUESTIONS)
    wordings = [wording for some in ASKED.values() for wording in some]
    assert len({wording.lower() for wording in wordings}) == len(wordings)  # of one kind each
