"""Answers to one question compared attribute by attribute: with the known content and each other.

Boundary: texts in, frozen rows out; no wording and no drawing.  Attributes are read from key words,
so an answer may state something that is not found.  Contradictions need no known content.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.analysis.answer_reading import read_attributes, read_statements
from engine.analysis.scene_attributes import ATTRIBUTES

Judgement = Literal["right", "wrong", "unclear", "not said", "not asked", "not judged"]


@dataclass(frozen=True)
class Statement:
    """What one answer states of an attribute.

    values: none if it states none, several if it contradicts itself.  verdict: "right" or "wrong"
    if the question asks for the attribute and the content is known; "not asked": neither asked nor
    said; "not judged": said, but not asked for, or the content is not known.
    """

    values: tuple[str, ...]
    verdict: Judgement


@dataclass(frozen=True)
class AttributeRow:
    """One attribute: its known value (None if not known), and a statement per answer.

    contradicted: two answers state different values.
    """

    attribute: str
    truth: str | None
    statements: tuple[Statement, ...]
    contradicted: bool


def compare(
    answers: Sequence[str], truth: Mapping[str, str], asked: Collection[str]
) -> tuple[AttributeRow, ...]:
    """A row per attribute that an answer states or that is known and asked for.

    Contradictions come first.  `truth` and `asked` are empty where not known.
    """
    said = [read_statements(answer) for answer in answers]
    rows = [_row(name, said, truth.get(name), name in asked) for name in ATTRIBUTES]
    shown = [row for row in rows if row is not None]
    return tuple(sorted(shown, key=lambda row: not row.contradicted))


def contradictions(answers: Sequence[str]) -> dict[str, tuple[str | None, ...]]:
    """The attributes of which two answers state different values: each answer's value.

    An answer that states none, or two of them, has None and contradicts nobody.
    """
    claims = [read_attributes(answer) for answer in answers]
    values = {name: tuple(claim.get(name) for claim in claims) for name in ATTRIBUTES}
    return {name: said for name, said in values.items() if len({*said} - {None}) > 1}


def _row(
    name: str, said: Sequence[Mapping[str, tuple[str, ...]]], truth: str | None, asked: bool
) -> AttributeRow | None:
    values = [statements.get(name, ()) for statements in said]
    if not any(values) and not (asked and truth is not None):
        return None
    cells = tuple(Statement(some, _verdict(some, truth, asked)) for some in values)
    return AttributeRow(name, truth, cells, len({some for some in values if len(some) == 1}) > 1)


def _verdict(values: tuple[str, ...], truth: str | None, asked: bool) -> Judgement:
    if not values:
        return "not said" if asked else "not asked"
    if len(values) > 1:
        return "unclear"
    if truth is None or not asked:
        return "not judged"
    return "right" if values[0] == truth else "wrong"
