"""How busy the machine was while results were measured, and whether times can be compared.

engine.machine.load decides when a machine is busy and when two loads differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.analysis.results_table import LOAD, answered, labels, measured
from engine.machine.load import MachineLoad, different, shares, words

if TYPE_CHECKING:
    import pandas as pd

ALWAYS = ("began_s", "wall_ms", "cpu_ms", "cores", "threads")  # present in every load
NEAR = 5.0  # times the longer of two runs: results of one sample closer than this ran in turns
NEAR_S = 10.0  # lower limit of that time


def of(lines: pd.DataFrame) -> MachineLoad | None:
    """The load over all these results; None if a result lacks it, or without results."""
    load = lines[[f"load_{name}" for name in LOAD]].rename(columns=lambda name: name[5:])
    wall, total = load["wall_ms"], float(load["wall_ms"].sum())
    if load[list(ALWAYS)].isna().any(axis=None) or total <= 0:
        return None
    known: dict[str, float] = {}  # over all results, if each has it
    for name in ("others", "steal"):
        if load[name].notna().all():
            known[name] = float((load[name] * wall).sum()) / total
    if load["waited_ms"].notna().all():
        known["waited_ms"] = float(load["waited_ms"].sum())
    return MachineLoad(
        began_s=float(load["began_s"].min()),
        wall_ms=total,
        cpu_ms=float(load["cpu_ms"].sum()),
        cores=int(load["cores"].max()),
        threads=int(load["threads"].max()),
        **known,
    )


def by_label(table: pd.DataFrame) -> dict[str, MachineLoad | None]:
    """The load of each label's answers, with batches and without warm-up."""
    lines = answered(table)
    return {label: of(lines[lines["label"] == label]) for label in labels(table)}


def incomparable(table: pd.DataFrame, a: str, b: str) -> str:
    """Why the times of two labels cannot be compared, or "" (also if no load is known).

    Over the samples that both have.  Times measured at different loads differ because of the load;
    on a busy machine a ratio holds for this load only.
    """
    one, other = (of(side) for side in _sides(table, a, b))
    return incomparable_loads(a, one, b, other)


def incomparable_loads(a: str, one: MachineLoad | None, b: str, other: MachineLoad | None) -> str:
    """The same of two known loads; `a` and `b` name the sides."""
    if one is None or other is None:
        return ""
    disturbed = bool(one.busy), bool(other.busy)
    if not any(disturbed) and not different(one, other):
        return ""
    why = "the machine was busy" if all(disturbed) else "the load differed"
    first, second = (" and ".join(shares(load, "it")) for load in (one, other))
    return f"{why}: {a} ran while {first}, and {b} while {second}"


def couple(table: pd.DataFrame, a: str, b: str) -> str:
    """A note for a comparison of two labels: load unknown, or measured at different times."""
    sides = _sides(table, a, b)
    if not all(len(side) for side in sides):
        return ""
    unknown = [label for label, side in zip((a, b), sides, strict=True) if of(side) is None]
    if unknown:
        return f"Load unknown: {' and '.join(unknown)} ran without a record of the machine's load."
    first, second = (side.groupby("sample")["load_began_s"].median() for side in sides)
    longest = max(float(side["load_wall_ms"].median()) for side in sides) / 1000
    if float((first - second).abs().median()) <= max(NEAR_S, NEAR * longest):
        return ""
    return (
        f"{a} and {b} did not run in turns but one after the other. If the machine changed in "
        "between, this is part of the difference."
    )


def remarks(table: pd.DataFrame) -> Iterator[str]:
    """A sentence for each label that was measured on a busy machine."""
    for label, load in by_label(table).items():
        if load is not None and load.busy:
            yield (
                f"{label} ran on a busy machine ({words(load)}): its times may be longer than "
                "on an idle one."
            )


def _sides(table: pd.DataFrame, a: str, b: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The measured results of two labels for the samples that both have."""
    lines = measured(table)
    one, other = lines[lines["label"] == a], lines[lines["label"] == b]
    shared = set(one["sample"]) & set(other["sample"])
    return one[one["sample"].isin(shared)], other[other["sample"].isin(shared)]
