"""Sentences and the parser that reads them back agree on every wording."""

import pytest

from engine.analysis.answer_reading import read_attributes
from engine.demo.wordings import (
    ASKED,
    ATTRIBUTES_ASKED,
    reference,
)

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
