"""The correct answers about a demo scene; analysis/answer_reading.py does the reverse.

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
    "ASKED", "DEFAULT_QUESTION", "QUESTIONS", "VOICES", "Truth", "Voice", "draw_answer",
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


def answer(truth: Truth, voice: Voice, kind: str, choose: Callable[[Sentences], str]) -> str:
    """The answer to one kind of question (a key of ASKED) about a scene; `choose` picks among equal
    wordings."""
    event, alone = voice == "event", truth["lead vehicle"] == "none"
    words = {
        "curve": truth["curve"],
        "lead": truth["lead vehicle"],
        "rail": truth.get("guardrail side", ""),
        "walker": truth["pedestrian"],
        "medium": "video" if voice == "video" else "image",
    }

    def say(sentences: Sentences) -> str:
        return choose(sentences).format(**words)

    def pick(wordings: tuple[Sentences, Sentences]) -> str:
        return say(wordings[0] if event else wordings[1])

    def road() -> list[str]:
        detail = [] if event else [say(ROAD_DETAIL)]
        return [pick(CURVE["straight" if truth["curve"] == "straight" else "turn"]), *detail]

    def lead() -> list[str]:
        vehicle = pick(LEAD["none" if alone else "some"])
        if alone:
            return [vehicle]
        return [vehicle, say(NO_MOTION) if voice == "image" else pick(MOTION[truth["motion"]])]

    def pedestrian() -> str:
        return pick(PEDESTRIAN["none" if truth["pedestrian"] == "none" else "some"])

    if kind == "describe":
        opening = [] if event else [say(OPENING[truth["time of day"]])]
        beside, ahead = pick(ROADSIDE[truth["roadside"]]), lead()
        return " ".join([*opening, *road(), *ahead, beside, pedestrian()])
    if kind == "road":
        return " ".join(road())
    if kind == "motion" and alone:
        return NO_LEAD_MOTION
    if kind in ("vehicles", "motion"):
        return " ".join(lead())
    if kind == "roadside":
        return pick(ROADSIDE[truth["roadside"]])
    if kind == "pedestrian":
        return pedestrian()
    return say(NO_HOUR if event else HOUR[truth["time of day"]])


def reference(truth: Truth, voice: Voice = "video", kind: str = "describe") -> str:
    """The answer in the first wording of every sentence."""
    return answer(truth, voice, kind, lambda sentences: sentences[0])


def draw_answer(truth: Truth, voice: Voice, kind: str, rng: np.random.Generator) -> str:
    """The answer in randomly chosen wordings."""
    return answer(truth, voice, kind, lambda one: one[int(rng.integers(len(one)))])
