"""Pairs of answers that can be compared id by id, and their acceptance figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from weakref import WeakKeyDictionary

from engine.analysis.acceptance import GAMMA, Acceptance, Pair, analyse
from engine.analysis.acceptance_marks import Painting, Spelling, from_text, learn
from engine.published.read.record_types import AnswerRecord, ResultFile


class Stated(NamedTuple):
    """An acceptance that the file states, beside the computed one (None without ids)."""

    path: str
    stated: float
    ours: float | None


def pairs_of(
    file: ResultFile,
    draft: str,
    target: str,
    corrected: bool = True,
    shift: int = 0,
    timed: bool | None = None,
) -> tuple[Pair, ...]:
    """The pairs of two models by sample and question, in the draft's order.

    corrected: the ids without the prompt.  shift: leaves out so many first ids of the target, for a
    draft that begins later.  timed: with times, by default if corrected.
    """
    timed = corrected if timed is None else timed
    found = []
    for record, other in matched(file, draft, target, corrected):
        if record.ids is not None and other.ids is not None:
            times = _times(record, other) if timed else (None, None)
            found.append(
                Pair(
                    record.sample,
                    record.ids,
                    other.ids[shift:],
                    record.question,
                    *times,
                    record.tokens,
                    other.tokens,
                    record.clip,
                )
            )
    return tuple(found)


def matched(
    file: ResultFile, draft: str, target: str, corrected: bool = True
) -> Iterator[tuple[AnswerRecord, AnswerRecord]]:
    """The answers of two models to the same sample and question, in the draft's order.

    A sample that appears twice counts once, by the first record of each model.
    """
    mine, others = (
        {record.key: record for record in reversed(file.of(model, corrected))}
        for model in (draft, target)
    )
    for record in file.of(draft, corrected):
        if record.key in others and mine[record.key] is record:
            yield record, others[record.key]


def _times(draft: AnswerRecord, target: AnswerRecord) -> tuple[float | None, float | None]:
    """Decoding ms of both, or (None, None) if they cover different parts."""
    found, other = draft.decoding(), target.decoding()
    if found is None or other is None or found[0] != other[0]:
        return None, None
    return found[1], other[1]


def drafts(file: ResultFile) -> tuple[str, ...]:
    """The models whose ids can be drafts for the file's target, the main draft first."""
    names = [file.draft, *(m for m in file.models if m in ("adapter", "adapted"))]
    return tuple(name for name in names if name and pairs_of(file, name, file.target))


def acceptance(
    file: ResultFile, draft: str = "", target: str = "", gamma: int = GAMMA
) -> Acceptance | None:
    """The figures of two models of a file, by default the compared ones; None without ids."""
    return _analysed(file, draft or file.draft, target or file.target, gamma)


def as_recorded(file: ResultFile, gamma: int = GAMMA) -> dict[str, Acceptance]:
    """By draft, the figures against the target with recorded ids, counts and times."""
    every = {name: _analysed(file, name, file.target, gamma, "recorded") for name in drafts(file)}
    return {name: one for name, one in every.items() if one is not None}


def variants(file: ResultFile, gamma: int = GAMMA) -> dict[str, Acceptance]:
    """Every comparison that a file allows, by name.

    "main"; "raw": ids including the prompt; "without_sliced": without answers whose first ids are
    missing; for each further draft its name, and NAME_shifted: against the target from its second
    id.
    """
    names = drafts(file)
    kinds = {"main": (file.draft, "")}
    if any("prompt" in record.marks for record in file.corrected):
        kinds["raw"] = (file.draft, "raw")
    if any("sliced" in record.marks for record in file.corrected):
        kinds["without_sliced"] = (file.draft, "whole")
    for name in names:
        if name != file.draft:
            kinds |= {name: (name, ""), f"{name}_shifted": (name, "shifted")}
    found = {
        kind: _analysed(file, draft, file.target, gamma, way)
        for kind, (draft, way) in kinds.items()
        if draft in names
    }
    return {kind: one for kind, one in found.items() if one is not None}


_KNOWN: WeakKeyDictionary[ResultFile, dict[tuple[str, str, int, str], Acceptance | None]] = (
    WeakKeyDictionary()
)


def _analysed(
    file: ResultFile, draft: str, target: str, gamma: int, way: str = ""
) -> Acceptance | None:
    """Computed once per file, because the audit, the figures and the report use it."""
    known = _KNOWN.setdefault(file, {})
    key = draft, target, gamma, way
    if key not in known:
        mended, shift = way not in ("raw", "recorded"), int(way == "shifted")
        pairs = pairs_of(file, draft, target, mended, shift, timed=way != "raw")
        if way == "whole":
            cut = {record.key for record in file.corrected if "sliced" in record.marks}
            pairs = tuple(pair for pair in pairs if (pair.sample, pair.question) not in cut)
        known[key] = analyse(pairs, draft, target, gamma) if pairs else None
    return known[key]


def painting(
    file: ResultFile, draft: AnswerRecord, target: str = "", corrected: bool = True
) -> Painting | None:
    """A draft's text, each piece accepted or rejected by the target's answer to the same sample.

    draft: a record with ids and text, corrected if `corrected` is True.  None if either answer has
    no ids.
    """
    others = [r for r in file.of(target or file.target, corrected) if r.key == draft.key]
    other = others[0].ids if others else None
    if draft.ids is None or other is None or not draft.text:
        return None
    return from_text(Pair(draft.sample, draft.ids, other), draft.text, _spelling(file))


_SPELLED: WeakKeyDictionary[ResultFile, Spelling] = WeakKeyDictionary()


def _spelling(file: ResultFile) -> Spelling:
    """The text of each id, learnt once from the file's answers."""
    if file not in _SPELLED:
        whole = [r for r in file.corrected if r.ids and r.text and "sliced" not in r.marks]
        _SPELLED[file] = learn([(r.ids or (), r.text or "") for r in whole])
    return _SPELLED[file]


def stated(file: ResultFile, corrected: bool = True) -> tuple[Stated, ...]:
    """The acceptance figures that the file states, beside the position match of its ids."""
    way = "" if corrected else "recorded"
    # files with an adapter state the rate of its draft
    names = [*(name for name in ("adapter", "adapted") if name in file.models), file.draft]
    every = (_analysed(file, name, file.target, GAMMA, way) for name in names)
    ours = next((found.rate.value for found in every if found and found.rate), None)
    rows = []
    for claim in file.claims:
        key = claim.path.rsplit(".", 1)[-1]
        if "accept" in key and ("rate" in key or "estimate" in key) and not key.endswith("_std"):
            rows.append(Stated(claim.path, claim.stated, ours))
    return tuple(rows)
