"""Lengths of answers: which stopped at a limit, and how length contributes to a time difference."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from engine.published.read.answer_pairs import matched
from engine.published.read.cells import is_number
from engine.published.read.file_forms import Part
from engine.published.read.record_types import EOS, AnswerRecord, ResultFile

CUT_FROM, CUT_SHARE = 3, 0.2
_LIMIT = re.compile(r"(?i)(?=.*(max|limit|gamma)).*(tok|draft|length|gamma)")


class LengthCut(NamedTuple):
    """Answers of a model that stop at the same length without an end-of-text id.

    answers: the number of records with a length.  named: the setting with this value, "" for none.
    ended: whether ids show that the answers have no end.
    """

    tokens: int
    records: tuple[AnswerRecord, ...]
    answers: int
    named: str
    ended: bool


class Work(NamedTuple):
    """Over `pairs` pairs, the target's time divided by the draft's: tokens x time per token.

    per_token counts the tokens that the time covers (see `covered`).  If this is one less than all
    tokens, the product differs slightly from the ratio.
    """

    pairs: int
    part: Part
    ratio: float
    tokens: float
    per_token: float


def cut(file: ResultFile, model: str) -> LengthCut | None:
    """The answers that a limit stopped: at least a fifth and three of them have the greatest
    length and no EOS.

    Without ids the length must be a setting of the file.  With ids but without such a setting,
    three different answers or all answers must stop there, because equal texts have equal ends.
    """
    records = file.of(model, corrected=True)
    with_ids = any(record.ids for record in records)
    sized = [(len(r.ids or ()) if with_ids else r.tokens or 0.0, r) for r in records]
    lengths = [size for size, _ in sized if size]
    if not lengths:
        return None
    most = max(lengths)
    ended = [r for size, r in sized if size == most and not (r.ids and r.ids[-1] == EOS)]
    named = next((f"config.{key}" for key, value in file.config.items()
                  if is_number(value) and value == most and _LIMIT.match(key)), "")  # fmt: skip
    different = len({record.ids for record in ended}) >= CUT_FROM
    sure = named or (with_ids and (different or len(ended) == len(lengths)))
    if not sure or len(ended) < max(CUT_FROM, CUT_SHARE * len(lengths)):
        return None
    return LengthCut(int(most), tuple(ended), len(lengths), named, with_ids)


def covered(file: ResultFile, tokens: float) -> float:
    """The number of tokens that the decoding time covers.

    With five stages the first token belongs to the prefill: avg_token_time divides by N - 1, as
    TPOT does.  The others divide by N, or do not say.
    """
    return tokens - 1 if file.group.first_token_in_prefill else tokens


def definition(file: ResultFile) -> str:
    """The definition of time per token in this file, in words."""
    if file.group.first_token_in_prefill:
        return "over the N - 1 tokens after the first, which the prefill gives"
    return "over all N tokens"


def work(file: ResultFile, corrected: bool = True) -> Work | None:
    """The factors of the ratio of decoding times; None without times or counts of both."""
    rows = []
    for mine, other in matched(file, file.draft, file.target, corrected):
        fast, slow = mine.decoding(), other.decoding()
        if fast and slow and fast[0] == slow[0] and mine.tokens and other.tokens:
            rows.append((fast[1], slow[1], mine.tokens, other.tokens, fast[0]))
    if not rows or len({row[-1] for row in rows}) != 1:
        return None
    sums = [math.fsum(float(row[column]) for row in rows) for column in range(4)]
    counts = [covered(file, total / len(rows)) for total in sums[2:]]
    if min(counts) <= 0:
        return None
    ratio = sums[1] / sums[0]
    return Work(len(rows), rows[0][-1], ratio, sums[3] / sums[2], ratio * counts[0] / counts[1])
