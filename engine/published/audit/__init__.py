"""Rules that find wrong numbers in published result files; corrections are made in reading."""

from pathlib import Path

from msgspec import convert

from engine import settings
from engine.published.audit import answers, times
from engine.published.audit.findings import AuditFinding, Rule, Severity
from engine.published.read.record_types import ResultFile

__all__ = ["RULES", "SEVERITIES", "AuditFinding", "Rule", "Severity", "audit"]
CHECKED = (answers, times)  # the modules of the checks
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
_TABLE = settings.read_toml(Path(__file__).with_name("rules.toml"))
RULES = convert(_TABLE["rules"], tuple[Rule, ...])


def audit(file: ResultFile) -> tuple[AuditFinding, ...]:
    """The findings of all rules in their order, errors first; kept with the file."""
    if "audit" not in file.computed:
        models = [*file.models, ""]
        every = (sorted(rule.findings(file), key=lambda f: models.index(f.model)) for rule in RULES)
        file.computed["audit"] = tuple(finding for some in every for finding in some)
    found: tuple[AuditFinding, ...] = file.computed["audit"]
    return found
