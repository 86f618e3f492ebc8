"""What the audit finds, how rules for each model or record are made, and words they share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import wraps
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

from engine.published.read import plausible_units
from engine.published.read.record_types import AnswerRecord, ResultFile
from engine.quoting import count

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class AuditFinding:
    """One problem in one sentence, with its evidence.

    paths: the records concerned; correction: how they were corrected, "" for not at all.  `audit`
    sets rule and severity.
    """

    message: str
    figures: Mapping[str, float] = field(default_factory=dict)
    correction: str = ""
    model: str = ""
    paths: tuple[str, ...] = ()
    rule: str = ""
    severity: Severity = "error"

    def as_dict(self) -> dict[str, Any]:
        """As `import --json` prints it; `records` is their number."""
        first = {"rule": self.rule, "severity": self.severity, "records": len(self.paths)}
        return first | asdict(self) | {"paths": list(self.paths[:200])}


class HasPath(Protocol):
    """A record, figure, claim, problem or failure: what has a place in the file."""

    @property
    def path(self) -> str: ...


def finding(
    message: str,
    concerned: Iterable[HasPath],
    correction: str = "",
    model: str = "",
    figures: Mapping[str, float] = MappingProxyType({}),
) -> AuditFinding:
    paths = tuple(item.path for item in concerned)
    numbers = {name: float(value) for name, value in figures.items()}
    return AuditFinding(message, numbers, correction, model, paths)


Findings = Iterator[AuditFinding]
Check = Callable[[ResultFile], Findings]
ModelCheck = Callable[[ResultFile, str], Findings]
# None for a right record, otherwise its figures, and texts for the message
Values = Mapping[str, float | str]
WrongRecord = Callable[[ResultFile, AnswerRecord], Values | None]


class Rule(NamedTuple):
    """severity: "error" if a figure is false, "warning" if it is misleading, "note" for additional
    information."""

    name: str
    severity: Severity
    sentence: str
    check: Check


def each_model(check: ModelCheck) -> Check:
    """A check of each model; its messages begin with the model's name."""

    @wraps(check)
    def every(file: ResultFile) -> Findings:
        for model in file.models:
            for found in check(file, model):
                message = f"{name_of(file, model)}: {found.message}"
                yield replace(found, message=message, model=model)

    return every


def timed(check: ModelCheck) -> ModelCheck:
    """Not for models whose times are in another unit."""

    @wraps(check)
    def usable(file: ResultFile, model: str) -> Findings:
        if not plausible_units.doubts_times(file, model):
            yield from check(file, model)

    return usable


def each_record(
    message: str,
    *,
    noun: str = "answer",
    of: Callable[[ResultFile, str], Sequence[AnswerRecord]] = ResultFile.of,
    least: Callable[[int], float] = lambda _: 1,
    worst: Callable[[Mapping[str, Any]], float] | None = None,
    correction: Callable[[ResultFile, str, Sequence[AnswerRecord]], str] | str = "",
) -> Callable[[WrongRecord], Check]:
    """Makes a check of each record of each model from a function that finds a wrong one.

    message: {share} is "2 of 5 answers", {count} "2 answers", {is|are} the verb for this number;
    other names are those of the `worst` record, by default the first.  of: the records to check.
    least: how many of them have to be wrong.  Without other figures a finding has the number of
    records.
    """

    def made(wrong: WrongRecord) -> Check:
        def check(file: ResultFile, model: str) -> Findings:
            records = of(file, model)
            every = ((record, wrong(file, record)) for record in records)
            found = [(record, values) for record, values in every if values is not None]
            if not found or len(found) < least(len(records)):
                return
            values = [values for _, values in found]
            shown = max(values, key=worst) if worst else values[0]
            figures = {key: value for key, value in shown.items() if not isinstance(value, str)}
            mine = [record for record, _ in found]
            yield finding(
                filled(message, len(mine), len(records), noun).format(**shown),
                mine,
                correction if isinstance(correction, str) else correction(file, model, mine),
                figures=figures or {f"{noun}s": len(mine)},
            )

        return each_model(check)

    return made


def filled(message: str, part: int, whole: int, noun: str) -> str:
    """The message with {share}, {count} and the verbs {is|are} of this number."""
    chosen = re.sub(r"\{([^{}|]*)\|([^{}|]*)\}", lambda m: verb(part, m[1], m[2]), message)
    return chosen.replace("{share}", share(part, whole, noun)).replace("{count}", count(part, noun))


def name_of(file: ResultFile, model: str) -> str:
    """A model in a sentence: its claimed name, followed by the file's key if they differ."""
    claimed = file.identities[model].claimed
    return claimed if claimed.lower() == model.lower() else f"{claimed} ({model})"


def share(part: int, whole: int, noun: str) -> str:
    """ "all 5 answers", "1 of 5 answers", "the only answer"."""
    if part == whole:
        return f"all {count(whole, noun)}" if whole > 1 else f"the only {noun}"
    return f"{part:,} of {count(whole, noun)}"


def verb(count: int, one: str, several: str) -> str:
    """The form of a verb for this number of subjects."""
    return one if count == 1 else several
