"""Timing checks on a busy machine: looked at again, and left open where load may be the reason.

Boundary: findings and loads in, one finding out.  A finding whose evidence says "beyond_load" is a
failure whatever the load: it stands after the time was taken off in which the run's thread waited
for a core, or it is one of order, not of length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.machine.load import MachineLoad, busy, together, words
from engine.verify.verdict import CheckFinding

TRIES = 3
BEYOND = "beyond_load"  # key of evidence


@dataclass(frozen=True)
class Attempt:
    """One look at a check, and how busy the machine was; None: nothing was measured."""

    finding: CheckFinding
    load: MachineLoad | None

    @property
    def excused(self) -> bool:
        """Whether it failed, and a busy machine may be why."""
        failed = self.finding.outcome == "failed"
        return failed and not self.finding.evidence.get(BEYOND) and bool(busy(self.load))


def needs_retry(tries: Sequence[Attempt]) -> bool:
    """Whether the check is to be looked at once more."""
    return not tries or (len(tries) < TRIES and all(one.excused for one in tries))


def final_finding(tries: Sequence[Attempt]) -> CheckFinding:
    """The last finding, or "open" where every try failed on a busy machine."""
    found, load = tries[-1].finding, tries[-1].load
    evidence = dict(found.evidence) | {"tries": len(tries)}
    evidence |= {"machine_load": vars(load)} if load is not None else {}
    if not all(one.excused for one in tries):
        return replace(found, sentence=_tried(found, tries), evidence=evidence)
    all_loads = together([one.load for one in tries if one.load is not None])
    told = words(all_loads) if all_loads is not None else ""
    often = "once" if len(tries) == 1 else f"{len(tries)} times"
    sentence = f"Open: machine busy ({told}). Looked at {often}; the last time: {found.sentence}"
    return replace(found, outcome="unresolved", sentence=sentence, evidence=evidence)


def _tried(found: CheckFinding, tries: Sequence[Attempt]) -> str:
    if len(tries) == 1:
        return found.sentence
    before = "once" if len(tries) == 2 else f"{len(tries) - 1} times"
    return f"{found.sentence} (Looked at again: before, it had failed {before} on a busy machine.)"
