"""Rules that find wrong numbers in published result files; corrections are made in reading."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from msgspec import convert

from engine import settings
from engine.published.audit import answers, times
from engine.published.audit.findings import AuditFinding, Rule, Severity
from engine.published.read.record_types import ResultFile

__all__ = ["RULES", "SEVERITIES", "AuditFinding", "Audited", "Rule", "Severity", "audit", "audited"]
CHECKED = (answers, times)  # the modules of the checks
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
_TABLE = settings.read_toml(Path(__file__).with_name("rules.toml"))
RULES = convert(_TABLE["rules"], tuple[Rule, ...])


def audit(file: ResultFile) -> tuple[AuditFinding, ...]:
    """The findings of all rules in their order, errors first."""
    models = [*file.models, ""]
    every = (sorted(rule.findings(file), key=lambda f: models.index(f.model)) for rule in RULES)
    return tuple(finding for some in every for finding in some)


class Audited(NamedTuple):
    """A file and its findings."""

    file: ResultFile
    findings: tuple[AuditFinding, ...]


def audited(file: ResultFile) -> Audited:
    return Audited(file, audit(file))
