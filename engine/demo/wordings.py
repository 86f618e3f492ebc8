"""The questions about demo scenes that the demo models were trained on, and the correct answers.

The wordings are in wordings.json; analysis/answer_reading.py does the reverse of an answer.  A
voice is what a kind of model can know: `event` has no colours and no time of day, `image` sees no
motion.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from engine.analysis.answer_reading import ATTRIBUTES
from engine.prompts import plain_question

Voice = Literal["event", "image", "video"]
Truth = Mapping[str, str]
VOICES: tuple[Voice, ...] = ("event", "image", "video")
Sentences = tuple[str, ...]
Values = dict[str, tuple[Sentences, Sentences]]  # of an attribute: brief sentences and long ones


class Wordings(msgspec.Struct, frozen=True):
    """`asked`: the wordings of each kind of question; the first of "describe" is the default of
    every model.  The others are sentences of answers."""

    asked: dict[str, tuple[str, ...]]
    curve: Values
    lead: Values
    motion: Values
    roadside: Values
    pedestrian: Values
    hour: dict[str, Sentences]
    opening: dict[str, Sentences]
    no_hour: Sentences
    no_motion: Sentences
    no_lead_motion: str
    road_detail: Sentences


SENTENCES = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=Wordings)
ASKED = SENTENCES.asked
# What a complete answer to each kind states.
ATTRIBUTES_ASKED: dict[str, frozenset[str]] = {
    "describe": frozenset(ATTRIBUTES),
    "road": frozenset({"curve"}),
    "vehicles": frozenset({"lead vehicle", "motion"}),
    "motion": frozenset({"lead vehicle", "motion"}),
    "roadside": frozenset({"roadside", "guardrail side"}),
    "pedestrian": frozenset({"pedestrian"}),
    "time": frozenset({"time of day"}),
}
DEFAULT_QUESTION = ASKED["describe"][0]
QUESTIONS: tuple[str, ...] = (
    *ASKED["describe"][:5],
    *(ASKED[kind][0] for kind in ("road", "vehicles", "motion", "roadside", "pedestrian", "time")),
)


def attributes_asked(question: str) -> frozenset[str] | None:
    """The attributes of a scene that this question asks for; None if it is not a trained one."""
    asked = plain_question(question).lower()
    for kind, wordings in ASKED.items():
        if any(asked == plain_question(wording).lower() for wording in wordings):
            return ATTRIBUTES_ASKED[kind]
    return None


def answer(truth: Truth, voice: Voice, kind: str, choose: Callable[[Sentences], str]) -> str:
    """The answer to one kind of question (a key of ASKED); `choose` picks among equal wordings."""
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

    def pick(values: Values, value: str, other: str = "") -> str:
        brief, long = values.get(value) or values[other]
        return say(brief if event else long)

    def road() -> list[str]:
        detail = [] if event else [say(SENTENCES.road_detail)]
        return [pick(SENTENCES.curve, truth["curve"], "turn"), *detail]

    def lead() -> list[str]:
        vehicle = pick(SENTENCES.lead, truth["lead vehicle"], "some")
        if alone:
            return [vehicle]
        if voice == "image":
            return [vehicle, say(SENTENCES.no_motion)]
        return [vehicle, pick(SENTENCES.motion, truth["motion"])]

    if kind == "describe":
        opening = [] if event else [say(SENTENCES.opening[truth["time of day"]])]
        beside, ahead = pick(SENTENCES.roadside, truth["roadside"]), lead()
        parts = [*opening, *road(), *ahead, beside]
        return " ".join([*parts, pick(SENTENCES.pedestrian, truth["pedestrian"], "some")])
    if kind == "road":
        return " ".join(road())
    if kind == "motion" and alone:
        return SENTENCES.no_lead_motion
    if kind in ("vehicles", "motion"):
        return " ".join(lead())
    if kind == "roadside":
        return pick(SENTENCES.roadside, truth["roadside"])
    if kind == "pedestrian":
        return pick(SENTENCES.pedestrian, truth["pedestrian"], "some")
    return say(SENTENCES.no_hour if event else SENTENCES.hour[truth["time of day"]])


def reference(truth: Truth, voice: Voice = "video", kind: str = "describe") -> str:
    """The answer in the first wording of every sentence."""
    return answer(truth, voice, kind, lambda sentences: sentences[0])
