"""Reads the attributes that an answer about a demo scene claims, and scores them.

It looks for key words only, so that slightly different wordings are read too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

MOTION_ASKED = "motion, asked"  # from the answer to the question about it
Claims = dict[str, str]
Score = dict[str, float]
_CURVES = re.compile(r"\b(?:curves?|bends?|turns?)\b[^.]*\bto the (left|right)\b")
_MOTIONS = (
    ("approaching", re.compile(r"\b(?:coming|getting|comes|gets) closer\b")),
    ("steady", re.compile(r"\bsteady distance\b")),
    ("pulling away", re.compile(r"\b(?:pulling|moving|pulls|moves) away\b")),
)
_HOURS = (
    ("day", re.compile(r"\b(?:day|daytime|daylight)\b")),
    ("night", re.compile(r"\bnight\b")),
)
_PLACES = (
    ("trees", re.compile(r"\btrees\b")),
    ("buildings", re.compile(r"\bbuildings\b")),
    ("guardrail", re.compile(r"\bguardrail\b")),
    ("open field", re.compile(r"\bopen fields?\b")),
)
_SIDE = re.compile(r"\bon the (left|right)\b|\bthe (left|right) side\b")


def read_statements(text: str) -> dict[str, tuple[str, ...]]:
    """attribute -> its stated values, each once; two or more contradict each other."""
    found: dict[str, dict[str, None]] = {}
    for sentence in re.split(r"(?<=[.!?])\s+", text.strip().lower()):
        for attribute, value in _claims(sentence):
            found.setdefault(attribute, {})[value] = None
    return {attribute: tuple(values) for attribute, values in found.items()}


def read_attributes(text: str) -> dict[str, str]:
    """The claims of an answer, attribute -> value, without those that contradict each other."""
    statements = read_statements(text)
    return {name: values[0] for name, values in statements.items() if len(values) == 1}


def score(
    truths: Sequence[Mapping[str, str]], claims: Sequence[Claims], names: Iterable[str]
) -> dict[str, Score]:
    """Claims about each scene against its content, per attribute.

    accuracy: right answers / n; claimed: the share of answers that state the attribute; n: the
    scenes that have it; majority: the accuracy of always naming the most frequent value.
    """
    table: dict[str, Score] = {}
    for name in names:
        attribute = "motion" if name == MOTION_ASKED else name
        applies = [row for row, truth in enumerate(truths) if attribute in truth]
        if not applies:
            continue
        wanted = [truths[row][attribute] for row in applies]
        given = [claims[row].get(name) for row in applies]
        right = sum(claim == value for claim, value in zip(given, wanted, strict=True))
        common = Counter(wanted).most_common(1)[0][1]
        table[name] = {
            "accuracy": right / len(applies),
            "majority": common / len(applies),
            "n": len(applies),
            "claimed": sum(claim is not None for claim in given) / len(applies),
        }
    return table


def _claims(sentence: str) -> list[tuple[str, str]]:
    """The claims of one sentence, in lower case."""
    found: list[tuple[str, str]] = []
    turn = _CURVES.search(sentence)
    if "road" in sentence and turn:
        found.append(("curve", turn[1]))
    elif re.search(r"\broad\b[^.]*\bstraight\b", sentence):
        found.append(("curve", "straight"))
    if re.search(r"\bno (?:other )?vehicle|\bfree of (?:other )?vehicles", sentence):
        found.append(("lead vehicle", "none"))
    elif lead := re.search(r"\ba (car|truck)\b[^.]*\bahead\b", sentence):
        found.append(("lead vehicle", lead[1]))
    found += [("motion", value) for value, words in _MOTIONS if words.search(sentence)]
    found += [("roadside", value) for value, words in _PLACES if words.search(sentence)]
    side = _SIDE.search(sentence)
    if side and "guardrail" in sentence:
        found.append(("guardrail side", side[1] or side[2]))
    if "pedestrian" in sentence:
        none = "no pedestrian" in sentence
        if none or side:
            found.append(("pedestrian", "none" if none else (side[1] or side[2]) if side else ""))
    if "cannot be told" not in sentence and "not show" not in sentence:
        found += [("time of day", value) for value, words in _HOURS if words.search(sentence)]
    return found


ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "curve": ("left", "straight", "right"),
    "lead vehicle": ("none", "car", "truck"),
    "motion": ("approaching", "steady", "pulling away"),
    "roadside": ("trees", "buildings", "guardrail", "open field"),
    "guardrail side": ("left", "right"),
    "pedestrian": ("none", "left", "right"),
    "time of day": ("day", "night"),
}


def asked_content(truth: Mapping[str, str], task: str) -> dict[str, str]:
    """The content that a question asks for: the attribute that is its task, else everything."""
    return {name: value for name, value in truth.items() if task not in ATTRIBUTES or name == task}


def is_scene(truth: object) -> bool:
    """Whether this is the ground truth of a demo scene."""
    return isinstance(truth, dict) and bool(truth) and set(truth) <= set(ATTRIBUTES)
