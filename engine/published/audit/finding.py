"""The types of rules and findings, and helpers for their sentences.

Boundary: no rule.
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
    """One problem in one sentence, with its evidence.

    error: a figure is false.  warning: a figure is misleading.  note: additional information.
    paths: the records concerned; correction: how they were corrected, "" for not at all.
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
    """A finding without its rule's name and severity."""

    message: str
    records: Sequence[AnswerRecord] = ()
    figures: dict[str, float] = field(default_factory=dict)
    correction: str = ""
    model: str = ""
    paths: tuple[str, ...] = ()


Check = Callable[[ResultFile], Iterator[CheckResult]]


@dataclass(frozen=True)
class Rule:
    """A check with its name, description and severity."""

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
