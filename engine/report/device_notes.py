"""What a reader must know of the devices that times are of: several types, or shared ones.

Boundary: wording; engine.analysis.results_table says which device a label's results are of.
Comparing devices is allowed, with a note that the devices are compared too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.analysis import results_table

if TYPE_CHECKING:
    import pandas as pd

MEANING = "a difference in time speaks of {} too, not of the models alone"
SHARED = {
    "device": "Shared device: another worker of the run had it at the same time.",
    "cores": "Shared cores: the workers of a machine had more threads than it has cores.",
}
NOT_ALONE = "Such times are not those of a device by itself."


@dataclass(frozen=True)
class LabelDevice:
    """Where a label's results come from: `kind` is the type of device, `shared` what others had of
    it at the same time, `machines` those that are known."""

    kind: str
    shared: str
    machines: frozenset[str]


def places(table: pd.DataFrame) -> dict[str, LabelDevice]:
    """Of each of frame.labels(); no kind where no result says it."""
    few = table[["label", "device", "shared", "host", "address"]].drop_duplicates()
    lines = dict(iter(few.groupby("label", sort=False)))
    return {
        name: _place(device, lines[name]) for name, device in results_table.devices(table).items()
    }


def _place(device: str, lines: pd.DataFrame) -> LabelDevice:
    shared = " ".join(lines[lines["device"] == device]["shared"].unique()[:1]) if device else ""
    named = zip(lines["host"], lines["address"], strict=True)
    machines = frozenset(f"{host} {address}".strip() for host, address in named if host or address)
    return LabelDevice(device.removesuffix(f", {shared}") if shared else device, shared, machines)


def couple(table: pd.DataFrame, a: str, b: str) -> str:
    """A sentence where two labels' times are not of one device, equally shared; else ""."""
    known = places(table)
    if a not in known or b not in known or not known[a].kind or not known[b].kind:
        return ""
    return _differ(_bare(a, known[a]), known[a], _bare(b, known[b]), known[b])


def _differ(a: str, one: LabelDevice, b: str, other: LabelDevice) -> str:
    if one.kind != other.kind:
        told = f"Different devices: {a} ran on {_whole(one)}; {b} ran on {_whole(other)}."
        return f"{told} So {MEANING.format('the device')}."
    if one.shared != other.shared:
        told = f"Shared differently: {a} had {_share(one)}; {b} had {_share(other)}."
        return f"{told} So {MEANING.format('that')}."
    if one.machines and other.machines and not one.machines & other.machines:
        on = [", ".join(sorted(place.machines)) for place in (one, other)]
        told = f"Different machines: {a} ran on {on[0]}; {b} ran on {on[1]}."
        return f"{told} So {MEANING.format('the machine')}."
    return ""


def _whole(place: LabelDevice) -> str:
    return f"{place.kind}, {place.shared}" if place.shared else place.kind


def _share(place: LabelDevice) -> str:
    """In words: "a shared device", "shared cores", both, or neither."""
    if not place.shared:
        return "a device that no other worker had"
    return place.shared if place.shared == "shared cores" else f"a {place.shared}"


def _bare(label: str, place: LabelDevice) -> str:
    """The label without the device at its end, which is said beside it."""
    return label.removesuffix(f" · {_whole(place)}").removesuffix(f" · {place.shared}")


def only_shared(known: Mapping[str, LabelDevice], a: str, b: str) -> bool:
    """Whether two labels are one model of one run, on one type of device, shared and not."""
    one, other = known[a], known[b]
    return bool(one.kind) and one.kind == other.kind and _bare(a, one) == _bare(b, other)


def remarks(table: pd.DataFrame) -> Iterator[str]:
    """What holds for all labels of a table; nothing for one type of device that nobody shared."""
    known = [place for place in places(table).values() if place.kind]
    kinds = list(dict.fromkeys(place.kind for place in known))
    if len(kinds) > 1:
        yield (
            f"Different devices answered: {'; '.join(kinds)}. Their times are in no mean together; "
            f"where they stand side by side, {MEANING.format('the device')}."
        )
    shared = dict.fromkeys(place.shared for place in known)
    if len(shared) > 1 and "" in shared:
        yield (
            "Some results are of a device that other workers of the run had too, and some are not. "
            "Their times are in no mean together."
        )
    told = [words for name, words in SHARED.items() if any(name in part for part in shared)]
    if told:
        yield " ".join([*told, NOT_ALONE])
