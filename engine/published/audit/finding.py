"""What the audit finds, how rules for each model or record are made, and words they share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from engine.published.read import plausible_units
from engine.published.read.record_types import AnswerRecord, ResultFile
from engine.quoting import count

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class AuditFinding:
    """One problem in one sentence, with its evidence.

    paths: the records concerned; correction: how they were corrected, "" for not at all.  `Rule`
    sets rule and severity.
    """

    message: str
    paths: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    correction: str = ""
    model: str = ""
    rule: str = ""
    severity: Severity = "error"

    def as_dict(self) -> dict[str, Any]:
        """As `import --json` prints it; `records` is their number."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "records": len(self.paths),
            "message": self.message,
            "figures": dict(self.figures),
            "correction": self.correction,
            "model": self.model,
            "paths": list(self.paths[:200]),
        }


Check = Callable[[ResultFile], Iterable[AuditFinding]]
ModelCheck = Callable[[ResultFile, str], Iterable[AuditFinding]]
# None for a right record, otherwise its figures, and texts for the message
WrongRecord = Callable[[ResultFile, AnswerRecord], Mapping[str, float | str] | None]


@dataclass(frozen=True)
class Rule:
    """A row of the table of rules.

    severity: "error" if a figure is false, "warning" if it is misleading, "note" for additional
    information.
    """

    name: str
    sentence: str
    severity: Severity
    check: Check

    def apply(self, file: ResultFile) -> Iterator[AuditFinding]:
        for found in self.check(file):
            yield replace(found, rule=self.name, severity=self.severity)


def each_model(*checks: ModelCheck, timed: bool = False) -> Check:
    """Checks of each model; their messages begin with the model's name.

    timed: not for models whose times are in another unit.
    """

    def every(file: ResultFile) -> Iterator[AuditFinding]:
        for model in file.models:
            if timed and plausible_units.doubts_times(file, model):
                continue
            for check in checks:
                for found in check(file, model):
                    message = f"{name_of(file, model)}: {found.message}"
                    yield replace(found, message=message, model=model)

    return every


def each_record(
    message: str,
    *,
    noun: str = "answer",
    of: Callable[[ResultFile, str], Sequence[AnswerRecord]] = ResultFile.of,
    least: Callable[[int], float] = lambda _: 1,
    worst: Callable[[Mapping[str, Any]], float] | None = None,
    correction: Callable[[ResultFile, str, Sequence[AnswerRecord]], str] | str = "",
) -> Callable[[WrongRecord], ModelCheck]:
    """Makes a check of each record from a function that finds a wrong one.

    message: {share} is "2 of 5 answers", {count} "2 answers", {is|are} the verb for this number;
    other names are those of the `worst` record, by default the first.  of: the records to check.
    least: how many of them have to be wrong.  Without other figures a finding has the number of
    records.
    """

    def made(wrong: WrongRecord) -> ModelCheck:
        def check(file: ResultFile, model: str) -> Iterator[AuditFinding]:
            records = of(file, model)
            every = ((record, wrong(file, record)) for record in records)
            found = [(record, values) for record, values in every if values is not None]
            if not found or len(found) < least(len(records)):
                return
            values = [values for _, values in found]
            shown = max(values, key=worst) if worst else values[0]
            figures = {key: float(v) for key, v in shown.items() if not isinstance(v, str)}
            mine = [record for record, _ in found]
            yield AuditFinding(
                filled(message, len(mine), len(records), noun).format(**shown),
                paths_of(mine),
                figures or {f"{noun}s": float(len(mine))},
                correction if isinstance(correction, str) else correction(file, model, mine),
            )

        return check

    return made


def filled(message: str, part: int, whole: int, noun: str) -> str:
    """The message with {share}, {count} and the verbs {is|are} of this number."""
    chosen = re.sub(r"\{([^{}|]*)\|([^{}|]*)\}", lambda m: m[1] if part == 1 else m[2], message)
    return chosen.replace("{share}", share(part, whole, noun)).replace("{count}", count(part, noun))


def paths_of(records: Iterable[AnswerRecord]) -> tuple[str, ...]:
    return tuple(record.path for record in records)


def name_of(file: ResultFile, model: str) -> str:
    """A model in a sentence: its claimed name, followed by the file's key if they differ."""
    identity = file.identities.get(model)
    claimed = identity.claimed if identity else model
    return claimed if claimed.lower() == model.lower() else f"{claimed} ({model})"


def share(part: int, whole: int, noun: str) -> str:
    """ "all 5 answers", "1 of 5 answers", "the only answer"."""
    if part == whole:
        return f"all {count(whole, noun)}" if whole > 1 else f"the only {noun}"
    return f"{part:,} of {count(whole, noun)}"


def verb(count: int, one: str, several: str) -> str:
    """The form of a verb for this number of subjects."""
    return one if count == 1 else several
