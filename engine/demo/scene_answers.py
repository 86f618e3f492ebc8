"""The correct answers about a demo scene.

Boundary: truth (attribute -> value) in, sentences out; analysis/answer_reading.py does the reverse.
A voice is what a kind of model can know: `event` has no colours and no time of day, `image` sees
no motion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np

from engine.analysis.answer_reading import read_attributes
from engine.demo.demo_questions import ASKED, DEFAULT_QUESTION, QUESTIONS

__all__ = [
    "ASKED", "DEFAULT_QUESTION", "QUESTIONS", "VOICES", "Speaker", "Truth", "Voice", "draw_answer",
    "read_attributes", "reference",
]  # fmt: skip

Voice = Literal["event", "image", "video"]
Truth = Mapping[str, str]
VOICES: tuple[Voice, ...] = ("event", "image", "video")

# Each value of an attribute in words: the brief sentences, then the long ones.
Sentences = tuple[str, ...]
CURVE: dict[str, tuple[Sentences, Sentences]] = {
    "straight": (
        ("The road runs straight ahead.", "The road ahead is straight."),
        ("The road ahead runs straight.", "Ahead, the road is straight."),
    ),
    "turn": (
        ("The road curves to the {curve}.", "The road bends to the {curve}."),
        ("The road ahead curves to the {curve}.", "Ahead, the road bends to the {curve}."),
    ),
}
LEAD: dict[str, tuple[Sentences, Sentences]] = {
    "none": (
        ("There is no vehicle ahead.", "No vehicle is ahead."),
        (
            "There is no other vehicle in the lane ahead.",
            "The lane ahead is free of other vehicles.",
        ),
    ),
    "some": (
        ("There is a {lead} ahead.", "A {lead} is ahead."),
        (
            "There is a {lead} in the same lane, driving ahead of the camera.",
            "A {lead} is driving ahead of the camera in the same lane.",
        ),
    ),
}
MOTION: dict[str, tuple[Sentences, Sentences]] = {
    "approaching": (
        ("It is coming closer.", "It is getting closer."),
        ("It is coming closer during the clip.", "It is getting closer to the camera."),
    ),
    "steady": (
        ("It keeps a steady distance.", "It stays at a steady distance."),
        ("It keeps a steady distance to the camera.", "It stays at a steady distance."),
    ),
    "pulling away": (
        ("It is pulling away.", "It is moving away."),
        ("It is pulling away from the camera.", "It is moving away during the clip."),
    ),
}
ROADSIDE: dict[str, tuple[Sentences, Sentences]] = {
    "trees": (
        ("Trees line the road.", "There are trees along the road."),
        ("Trees stand along both sides of the road.", "Both sides of the road are lined by trees."),
    ),
    "buildings": (
        ("Buildings line the road.", "There are buildings along the road."),
        (
            "Buildings stand along both sides of the road.",
            "Both sides of the road are lined by buildings.",
        ),
    ),
    "guardrail": (
        ("A guardrail runs along the {rail} side.", "There is a guardrail on the {rail} side."),
        (
            "A metal guardrail runs along the {rail} side of the road.",
            "There is a metal guardrail on the {rail} side of the road.",
        ),
    ),
    "open field": (
        ("Open fields lie beside the road.", "There are open fields along the road."),
        (
            "Open fields lie on both sides of the road.",
            "On both sides of the road there are open fields.",
        ),
    ),
}
PEDESTRIAN: dict[str, tuple[Sentences, Sentences]] = {
    "none": (
        ("There are no pedestrians.", "No pedestrians are in sight."),
        ("There are no pedestrians along the road.", "No pedestrians can be seen."),
    ),
    "some": (
        ("A pedestrian is on the {walker}.", "There is a pedestrian on the {walker}."),
        (
            "A pedestrian is walking on the {walker} side of the road.",
            "There is a pedestrian walking on the {walker} side of the road.",
        ),
    ),
}
HOUR: dict[str, Sentences] = {
    "day": ("It is day.", "It is daytime.", "The scene is in daylight."),
    "night": ("It is night.", "It is dark, at night.", "The scene is at night."),
}
OPENING: dict[str, Sentences] = {
    "day": (
        "The {medium} shows a road by day, seen from a driving car.",
        "This {medium} was taken from a driving car in daylight.",
    ),
    "night": (
        "The {medium} shows a road at night, seen from a driving car.",
        "This {medium} was taken from a driving car at night.",
    ),
}
NO_HOUR: Sentences = (
    "Events record changes of brightness, so they do not show the time of day.",
    "The time of day cannot be told from events.",
)
NO_MOTION: Sentences = (
    "A single image does not show how it moves.",
    "Its motion cannot be told from a single image.",
)
NO_LEAD_MOTION = "There is no vehicle ahead whose motion could be described."
ROAD_DETAIL: Sentences = (
    "It has a dashed line in the middle and solid lines at its edges.",
    "Solid lines mark its edges and a dashed line its middle.",
)


class Speaker:
    """Answers for one scene in one voice; `choose` picks among equal wordings."""

    def __init__(self, truth: Truth, voice: Voice, choose: Callable[[Sentences], str]):
        self._truth, self._voice, self._choose = truth, voice, choose
        self._words = {
            "curve": truth["curve"],
            "lead": truth["lead vehicle"],
            "rail": truth.get("guardrail side", ""),
            "walker": truth["pedestrian"],
            "medium": "video" if voice == "video" else "image",
        }

    def answer(self, kind: str) -> str:
        """The answer to one kind of question (a key of ASKED)."""
        parts: dict[str, Callable[[], list[str]]] = {
            "describe": self._describe,
            "road": self._road,
            "vehicles": lambda: [self._lead(), *self._motion()],
            "motion": self._asked_motion,
            "roadside": lambda: [self._pick(ROADSIDE[self._truth["roadside"]])],
            "pedestrian": lambda: [self._pedestrian()],
            "time": self._hour,
        }
        return " ".join(parts[kind]())

    def _describe(self) -> list[str]:
        opening = []
        if self._voice != "event":
            opening = [self._fill(OPENING[self._truth["time of day"]])]
        roadside = self._pick(ROADSIDE[self._truth["roadside"]])
        lead = [self._lead(), *self._motion()]
        return [*opening, *self._road(), *lead, roadside, self._pedestrian()]

    def _road(self) -> list[str]:
        detail = [] if self._voice == "event" else [self._choose(ROAD_DETAIL)]
        return [self._curve(), *detail]

    def _curve(self) -> str:
        straight = self._truth["curve"] == "straight"
        return self._pick(CURVE["straight" if straight else "turn"])

    def _lead(self) -> str:
        return self._pick(LEAD["none" if self._truth["lead vehicle"] == "none" else "some"])

    def _motion(self) -> list[str]:
        if self._truth["lead vehicle"] == "none":
            return []
        if self._voice == "image":
            return [self._choose(NO_MOTION)]
        return [self._pick(MOTION[self._truth["motion"]])]

    def _asked_motion(self) -> list[str]:
        if self._truth["lead vehicle"] == "none":
            return [NO_LEAD_MOTION]
        return [self._lead(), *self._motion()]

    def _pedestrian(self) -> str:
        return self._pick(PEDESTRIAN["none" if self._truth["pedestrian"] == "none" else "some"])

    def _hour(self) -> list[str]:
        if self._voice == "event":
            return [self._choose(NO_HOUR)]
        return [self._fill(HOUR[self._truth["time of day"]])]

    def _pick(self, wordings: tuple[Sentences, Sentences]) -> str:
        brief, long = wordings
        return self._fill(brief if self._voice == "event" else long)

    def _fill(self, sentences: Sentences) -> str:
        return self._choose(sentences).format(**self._words)


def reference(truth: Truth, voice: Voice = "video", kind: str = "describe") -> str:
    """The answer in the first wording of every sentence."""
    return Speaker(truth, voice, lambda sentences: sentences[0]).answer(kind)


def draw_answer(truth: Truth, voice: Voice, kind: str, rng: np.random.Generator) -> str:
    """The answer in randomly chosen wordings."""
    return Speaker(truth, voice, lambda s: s[int(rng.integers(len(s)))]).answer(kind)
