"""Timing checks on a busy machine: they are repeated, and left open if load may be the reason.

A finding with "beyond_load" in its evidence is a failure under any load: it remains after the
thread's waits for a core are subtracted, or it concerns the order of events, not their length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.machine.load import MachineLoad, together, words
from engine.verify.verdict import CheckFinding

TRIES = 3
BEYOND = "beyond_load"  # a key of the evidence


@dataclass(frozen=True)
class Attempt:
    """One attempt at a check, and the machine's load (None: not measured)."""

    finding: CheckFinding
    load: MachineLoad | None

    @property
    def excused(self) -> bool:
        """Whether it failed and load may be the reason."""
        failed = self.finding.outcome == "failed" and not self.finding.evidence.get(BEYOND)
        return failed and self.load is not None and bool(self.load.busy)


def needs_retry(tries: Sequence[Attempt]) -> bool:
    """Whether the check should be repeated."""
    return not tries or (len(tries) < TRIES and all(one.excused for one in tries))


def final_finding(tries: Sequence[Attempt]) -> CheckFinding:
    """The last finding, or an open one if every attempt failed on a busy machine."""
    found, load = tries[-1].finding, tries[-1].load
    evidence = dict(found.evidence) | {"tries": len(tries)}
    evidence |= {"machine_load": vars(load)} if load is not None else {}
    if not all(one.excused for one in tries):
        sentence, failed = found.sentence, len(tries) - 1
        if failed:
            often = "once" if failed == 1 else f"{failed} times"
            sentence += f" (Repeated: it had failed {often} on a busy machine.)"
        return replace(found, sentence=sentence, evidence=evidence)
    all_loads = together([one.load for one in tries if one.load is not None])
    load_text = words(all_loads) if all_loads is not None else ""
    often = "once" if len(tries) == 1 else f"{len(tries)} times"
    sentence = f"Open: machine busy ({load_text}). Tried {often}; the last result: {found.sentence}"
    return replace(found, outcome="unresolved", sentence=sentence, evidence=evidence)
