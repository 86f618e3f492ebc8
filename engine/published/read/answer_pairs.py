"""Pairs of answers that can be compared id by id, and their acceptance figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from engine.analysis.acceptance import GAMMA, Acceptance, Pair, analyse
from engine.analysis.acceptance_marks import Painting, from_text, learn
from engine.published.read.record_types import AnswerRecord, ResultFile

# How two models are compared: "" with corrected ids, "recorded", "raw" (recorded ids without
# times), "whole" (without answers whose first ids are missing), "shifted" (against the target from
# its second id, for a draft that begins later).
AS_RECORDED = ("recorded", "raw")


class Stated(NamedTuple):
    """An acceptance that the file states, beside the computed one (None without ids)."""

    path: str
    stated: float
    ours: float | None


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


def pairs_of(file: ResultFile, draft: str, target: str, way: str = "") -> tuple[Pair, ...]:
    """The pairs of two models by sample and question, in the draft's order."""
    sliced = {r.key for r in file.corrected if way == "whole" and "sliced" in r.marks}
    made = []
    for record, other in matched(file, draft, target, way not in AS_RECORDED):
        if record.ids is None or other.ids is None or record.key in sliced:
            continue
        mine, theirs = record.decoding(), other.decoding()
        timed = way != "raw" and mine and theirs and mine[0] == theirs[0]  # of the same parts
        made.append(
            Pair(
                record.sample,
                record.ids,
                other.ids[1:] if way == "shifted" else other.ids,
                record.question,
                mine[1] if mine and timed else None,
                theirs[1] if theirs and timed else None,
                record.tokens,
                other.tokens,
                record.clip,
            )
        )
    return tuple(made)


def drafts(file: ResultFile) -> tuple[str, ...]:
    """The models whose ids can be drafts for the file's target, the main draft first."""
    names = [file.draft, *(m for m in file.models if m in ("adapter", "adapted"))]
    return tuple(name for name in names if name and pairs_of(file, name, file.target))


def acceptance(
    file: ResultFile, draft: str = "", gamma: int = GAMMA, way: str = ""
) -> Acceptance | None:
    """The figures of a draft, by default the file's, against its target; None without ids.

    Computed once per file, because the audit, the figures and the report use it.
    """
    draft, target = draft or file.draft, file.target
    key = "acceptance", draft, gamma, way
    if key not in file.computed:
        pairs = pairs_of(file, draft, target, way)
        file.computed[key] = analyse(pairs, draft, target, gamma) if pairs else None
    found: Acceptance | None = file.computed[key]
    return found


def variants(file: ResultFile, gamma: int = GAMMA, corrected: bool = True) -> dict[str, Acceptance]:
    """Every comparison that a file allows, by name.

    "main"; "raw": ids including the prompt; "without_sliced": without answers whose first ids are
    missing; for each further draft its name, and NAME_shifted: against the target from its second
    id.  Recorded: one per draft, by its name.
    """
    names = drafts(file)
    marks = {mark for record in file.corrected for mark in record.marks}
    kinds = {name: (name, "recorded") for name in names}
    if corrected:
        kinds = {"main": (file.draft, "")} if file.draft in names else {}
        if kinds and "prompt" in marks:
            kinds["raw"] = (file.draft, "raw")
        if kinds and "sliced" in marks:
            kinds["without_sliced"] = (file.draft, "whole")
        for name in names:
            if name != file.draft:
                kinds |= {name: (name, ""), f"{name}_shifted": (name, "shifted")}
    found = {kind: acceptance(file, draft, gamma, way) for kind, (draft, way) in kinds.items()}
    return {kind: one for kind, one in found.items() if one is not None}


def painting(
    file: ResultFile, draft: AnswerRecord, target: str = "", corrected: bool = True
) -> Painting | None:
    """A draft's text, each piece accepted or rejected by the target's answer to the same sample.

    draft: a record with ids and text, corrected if `corrected` is True.  None if either answer has
    no ids.
    """
    others = [r for r in file.of(target or file.target, corrected) if r.key == draft.key]
    if draft.ids is None or not others or others[0].ids is None or not draft.text:
        return None
    if "spelling" not in file.computed:  # the text of each id, learnt from the file's answers
        whole = [r for r in file.corrected if "sliced" not in r.marks]
        spelling = learn([(r.ids, r.text) for r in whole if r.ids and r.text])
        file.computed["spelling"] = spelling
    pair = Pair(draft.sample, draft.ids, others[0].ids)
    return from_text(pair, draft.text, file.computed["spelling"])


def stated(file: ResultFile, corrected: bool = True) -> tuple[Stated, ...]:
    """The acceptance figures that the file states, beside the position match of its ids."""
    # files with an adapter state the rate of its draft
    names = [*(name for name in ("adapter", "adapted") if name in file.models), file.draft]
    every = (acceptance(file, name, way="" if corrected else "recorded") for name in names)
    ours = next((found.rate.value for found in every if found and found.rate), None)
    rows = []
    for claim in file.claims:
        key = claim.path.rsplit(".", 1)[-1]
        if "accept" in key and ("rate" in key or "estimate" in key) and not key.endswith("_std"):
            rows.append(Stated(claim.path, claim.stated, ours))
    return tuple(rows)
