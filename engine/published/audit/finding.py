"""What a rule finds, and what a rule is.

Boundary: types and the sentence's small parts; no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from engine.analysis.number_text import count
from engine.published.read.record_types import AnswerRecord, ResultFile

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class AuditFinding:
    """One thing that is wrong, in one sentence, with its evidence.

    error: a figure is false.  warning: a figure misleads.  note: something to know.
    paths: where in the file its records are; correction: what was done or can be ("" for nothing).
    """

    rule: str
    severity: Severity
    message: str
    paths: tuple[str, ...] = ()
    figures: dict[str, float] = field(default_factory=dict)
    correction: str = ""
    model: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As `import --json` prints it; `records` is their number."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "records": len(self.paths),
            "message": self.message,
            "figures": self.figures,
            "correction": self.correction,
            "model": self.model,
            "paths": list(self.paths[:200]),
        }


@dataclass(frozen=True)
class CheckResult:
    """What a check yields; the rule adds its name and severity."""

    message: str
    records: Sequence[AnswerRecord] = ()
    figures: dict[str, float] = field(default_factory=dict)
    correction: str = ""
    model: str = ""
    paths: tuple[str, ...] = ()


Check = Callable[[ResultFile], Iterator[CheckResult]]


@dataclass(frozen=True)
class Rule:
    """A name, what it looks for in plain words, how bad it is, and the check itself."""

    name: str
    sentence: str
    severity: Severity
    check: Check

    def apply(self, file: ResultFile) -> Iterator[AuditFinding]:
        for found in self.check(file):
            yield AuditFinding(
                self.name,
                self.severity,
                found.message,
                found.paths or tuple(record.path for record in found.records),
                found.figures,
                found.correction,
                found.model,
            )


def name_of(file: ResultFile, model: str) -> str:
    """What sentences call a model: the name it claims, with the file's key where they differ."""
    identity = file.identities.get(model)
    claimed = identity.claimed if identity else model
    return claimed if claimed.lower() == model.lower() else f"{claimed} ({model})"


def share(part: int, whole: int, noun: str) -> str:
    """ "all 5 answers", "1 of 5 answers", "the only answer"."""
    if part == whole:
        return f"all {count(whole, noun)}" if whole > 1 else f"the only {noun}"
    return f"{part:,} of {count(whole, noun)}"


def verb(count: int, one: str, several: str) -> str:
    """The form of a verb that so many things take."""
    return one if count == 1 else several
