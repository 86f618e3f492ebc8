"""Which attributes each kind of question asks for, against the reference answers."""

from __future__ import annotations

import pytest

from engine.demo.demo_questions import ASKED, ATTRIBUTES_ASKED, attributes_asked
from engine.demo.scene_answers import read_attributes, reference
from engine.prompts import COMMON_QUESTIONS

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
