"""What a set of result files leaves open, each point with the files that it concerns.

Boundary: ResultFiles and their findings in, sentences out; points that concern no file are left
out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.published.audit import AuditFinding
from engine.published.read import answer_pairs
from engine.published.read.record_types import ResultFile
from engine.published.read.who_answered import KEY_FAMILY

Audited = tuple[ResultFile, tuple[AuditFinding, ...]]
NAMED = 3  # at most so many files are named


def unknowns(audited: Sequence[Audited]) -> tuple[str, ...]:
    """The open points of the files with results, in a fixed order."""
    usable = [(file, found) for file, found in audited if file.status == "ok"]
    points = []
    for sentence, concerns in _POINTS:
        names = [file.name for file, found in usable if concerns(file, found)]
        if names:
            points.append(f"{sentence} ({_which(names, len(usable))}).")
    return tuple(points)


def _which(names: Sequence[str], every: int) -> str:
    if len(names) == every > 1:
        return f"all {every:,} files with results"
    return ", ".join(names) if len(names) <= NAMED else f"{len(names):,} of {every:,} files"


def _nameless(file: ResultFile, _found: Sequence[AuditFinding]) -> bool:
    return any(file.identities[model].family is None for model in file.models)


def _images(file: ResultFile, _found: Sequence[AuditFinding]) -> bool:
    mine = [r for r in file.records if KEY_FAMILY.get(r.model) == "eventgpt"]
    return bool(mine) and not any(record.context for record in mine)


def _answered(file: ResultFile, found: Sequence[AuditFinding]) -> bool:
    return _has_answers(file) and not _one_image(found)


def _answered_beside(file: ResultFile, found: Sequence[AuditFinding]) -> bool:
    return _has_answers(file) and _one_image(found)


def _has_answers(file: ResultFile) -> bool:
    return any(record.ids or record.text for record in file.records)


def _one_image(found: Sequence[AuditFinding]) -> bool:
    """EventGPT's answers in such a file are known to differ from those of generate()."""
    return any(finding.rule == "one_image" for finding in found)


def _sampling(file: ResultFile, _found: Sequence[AuditFinding]) -> bool:
    keys = {key.rsplit(".", 1)[-1] for key in file.config}
    return not keys & {"do_sample", "temperature", "seed"}


def _cut(_file: ResultFile, found: Sequence[AuditFinding]) -> bool:
    return any(finding.rule == "capped" for finding in found)


def _unmeasured(file: ResultFile, _found: Sequence[AuditFinding]) -> bool:
    """Whether a model has times but none of the vision tower."""
    timed = [
        {file.group.stages.get(key) for record in file.of(model, corrected=True)
         for key in record.times}
        for model in file.models
    ]  # fmt: skip
    return any(parts and "vision" not in parts for parts in timed)


def _drafted(file: ResultFile, _found: Sequence[AuditFinding]) -> bool:
    return answer_pairs.acceptance(file) is not None


_POINTS: tuple[tuple[str, Callable[[ResultFile, Sequence[AuditFinding]], bool]], ...] = (
    (
        "Which checkpoint answered, if only the label names the model: such names are shown as "
        "claimed",
        _nameless,
    ),
    ("How many event images EventGPT got, because no context is recorded", _images),
    ("Whether the answers equal those of generate(), because no file has both for one input",
     _answered),
    (
        "Whether the other model's answers equal those of generate(); EventGPT's cannot, because "
        "it got one event image",
        _answered_beside,
    ),
    ("Whether outputs were sampled, and with which seed, because the settings do not say",
     _sampling),
    ("The natural length and time of answers that a limit stopped", _cut),
    (
        "The time of the vision tower, which is measured for one model only or as part of a longer "
        "time",
        _unmeasured,
    ),
    (
        "The speed-up of drafting over several cycles, because finished answers show only the "
        "first cycle",
        _drafted,
    ),
)  # fmt: skip
