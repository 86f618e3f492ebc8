"""On which devices and how busy machines results were measured, and whether times can be compared.
engine.machine.load decides when a machine is busy and when two loads differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.analysis.results_table import LOAD, answered, labels, measured, of_both
from engine.machine.load import MachineLoad, different, shares, words

if TYPE_CHECKING:
    import pandas as pd

ALWAYS = ("began_s", "wall_ms", "cpu_ms", "cores", "threads")  # present in every load
NEAR = 5.0  # times the longer of two runs: results of one sample closer than this ran in turns
NEAR_S = 10.0  # lower limit of that time
MEANING = "a difference in time may come from {}, not only from the models"
SHARED = {
    "device": "Shared device: another worker of the run used it at the same time.",
    "cores": "Shared cores: the workers of a machine had more threads than it has cores.",
}


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
    """Why the times of two labels cannot be compared, or "" (also if no load is known).  Over the
    samples that both have.  Times measured at different loads differ because of the load; on a busy
    machine a ratio holds for this load only."""
    one, other = (of(side) for side in of_both(measured(table), a, b))
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


@dataclass(frozen=True)
class LabelDevice:
    """The device of a label's results: its type ("" if no result names one), what other workers
    shared of it ("" for nothing), both in words, and the known machines.  `bare`: the label without
    the device."""

    bare: str
    kind: str
    shared: str
    words: str
    machines: frozenset[str]


def label_devices(table: pd.DataFrame) -> dict[str, LabelDevice]:
    few = table[["label", "bare", "device", "shared", "host", "address"]].drop_duplicates()
    known = {}
    for name in labels(table):
        lines = few[few["label"] == name]
        named = lines[lines["device"] != ""]  # all of one type
        device, shared = next(zip(named["device"], named["shared"], strict=True), ("", ""))
        places = zip(lines["host"], lines["address"], strict=True)
        machines = frozenset(" ".join(filter(None, place)) for place in places if any(place))
        kind = device.removesuffix(f", {shared}") if shared else device
        known[name] = LabelDevice(str(lines["bare"].iloc[0]), kind, shared, device, machines)
    return known


def only_shared(known: Mapping[str, LabelDevice], a: str, b: str) -> bool:
    """Whether two labels differ only in whether their device was shared."""
    one, other = known[a], known[b]
    return bool(one.kind) and one.kind == other.kind and one.bare == other.bare


def couple(table: pd.DataFrame, a: str, b: str) -> tuple[str, str]:
    """Notes for a comparison of two labels, each "" if there is nothing to say: on different or
    differently shared devices, and on the load."""
    return _device_note(table, a, b), _load_note(table, a, b)


def _device_note(table: pd.DataFrame, a: str, b: str) -> str:
    known = label_devices(table)
    if a not in known or b not in known or not known[a].kind or not known[b].kind:
        return ""
    one, other = known[a], known[b]
    if one.kind != other.kind:
        how, what = "Different devices", "device"
        words = [f"ran on {place.words}" for place in (one, other)]
    elif one.shared != other.shared:
        how, what = "Shared differently", "sharing"
        own = {"": "a device for itself", "shared cores": "shared cores"}
        words = [f"had {own.get(place.shared, f'a {place.shared}')}" for place in (one, other)]
    elif one.machines and other.machines and not one.machines & other.machines:
        how, what = "Different machines", "machine"
        words = [f"ran on {', '.join(sorted(place.machines))}" for place in (one, other)]
    else:
        return ""
    sides = f"{one.bare} {words[0]}; {other.bare} {words[1]}"
    return f"{how}: {sides}. So {MEANING.format(f'the {what}')}."


def _load_note(table: pd.DataFrame, a: str, b: str) -> str:
    """Load unknown, or measured at different times; "" if neither."""
    sides = of_both(measured(table), a, b)
    if not all(len(side) for side in sides):
        return ""
    unknown = [label for label, side in zip((a, b), sides, strict=True) if of(side) is None]
    if unknown:
        return f"Load unknown: {' and '.join(unknown)} ran without a record of the machine's load."
    first, second = (side.groupby("sample")["load_began_s"].median() for side in sides)
    longest = max(float(side["load_wall_ms"].median()) for side in sides) / 1000
    if float((first - second).abs().median()) <= max(NEAR_S, NEAR * longest):
        return ""
    order = f"{a} and {b} did not run in turns but one after the other"
    return f"{order}. If the machine changed in between, this is part of the difference."


def remarks(table: pd.DataFrame) -> Iterator[str]:
    """Notes on all labels: several types of devices, shared ones, and busy machines."""
    known = [place for place in label_devices(table).values() if place.kind]
    kinds = list(dict.fromkeys(place.kind for place in known))
    if len(kinds) > 1:
        several = f"Different devices answered: {'; '.join(kinds)}. No mean mixes their times"
        yield f"{several}. If they are compared, {MEANING.format('the device')}."
    shared = dict.fromkeys(place.shared for place in known)
    if len(shared) > 1 and "" in shared:
        yield (
            "For some results other workers of the run shared the device, for some not. No mean "
            "mixes their times."
        )
    notes = [note for name, note in SHARED.items() if any(name in part for part in shared)]
    if notes:
        alone = "Such times may be longer than on a device without other work."
        yield " ".join([*notes, alone])
    for label, load in by_label(table).items():
        if load is not None and load.busy:
            busy = f"{label} ran on a busy machine ({words(load)})"
            yield f"{busy}: its times may be longer than on an idle one."
