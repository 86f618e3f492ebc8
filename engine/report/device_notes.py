"""Notes on the devices of the compared times: different types, or shared devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.analysis import results_table

if TYPE_CHECKING:
    import pandas as pd

MEANING = "a difference in time may come from {}, not only from the models"
SHARED = {
    "device": "Shared device: another worker of the run used it at the same time.",
    "cores": "Shared cores: the workers of a machine had more threads than it has cores.",
}
NOT_ALONE = "Such times may be longer than on a device without other work."


@dataclass(frozen=True)
class LabelDevice:
    """The device of a label's results: its type, what other workers shared of it ("" for nothing),
    and the known machines."""

    kind: str
    shared: str
    machines: frozenset[str]


def label_devices(table: pd.DataFrame) -> dict[str, LabelDevice]:
    """By label; kind is "" if no result names a device."""
    few = table[["label", "device", "shared", "host", "address"]].drop_duplicates()
    lines = dict(iter(few.groupby("label", sort=False)))
    return {
        name: _label_device(device, lines[name])
        for name, device in results_table.devices(table).items()
    }


def _label_device(device: str, lines: pd.DataFrame) -> LabelDevice:
    shared = " ".join(lines[lines["device"] == device]["shared"].unique()[:1]) if device else ""
    named = zip(lines["host"], lines["address"], strict=True)
    machines = frozenset(f"{host} {address}".strip() for host, address in named if host or address)
    return LabelDevice(device.removesuffix(f", {shared}") if shared else device, shared, machines)


def couple(table: pd.DataFrame, a: str, b: str) -> str:
    """A sentence if the times of two labels come from different or differently shared devices."""
    known = label_devices(table)
    if a not in known or b not in known or not known[a].kind or not known[b].kind:
        return ""
    return _differ(_bare(a, known[a]), known[a], _bare(b, known[b]), known[b])


def _differ(a: str, one: LabelDevice, b: str, other: LabelDevice) -> str:
    if one.kind != other.kind:
        note = f"Different devices: {a} ran on {_whole(one)}; {b} ran on {_whole(other)}."
        return f"{note} So {MEANING.format('the device')}."
    if one.shared != other.shared:
        note = f"Shared differently: {a} had {_share(one)}; {b} had {_share(other)}."
        return f"{note} So {MEANING.format('the sharing')}."
    if one.machines and other.machines and not one.machines & other.machines:
        on = [", ".join(sorted(place.machines)) for place in (one, other)]
        note = f"Different machines: {a} ran on {on[0]}; {b} ran on {on[1]}."
        return f"{note} So {MEANING.format('the machine')}."
    return ""


def _whole(place: LabelDevice) -> str:
    return f"{place.kind}, {place.shared}" if place.shared else place.kind


def _share(place: LabelDevice) -> str:
    """In words: "a shared device", "shared cores", both, or neither."""
    if not place.shared:
        return "a device for itself"
    return place.shared if place.shared == "shared cores" else f"a {place.shared}"


def _bare(label: str, place: LabelDevice) -> str:
    """The label without the device at its end."""
    return label.removesuffix(f" · {_whole(place)}").removesuffix(f" · {place.shared}")


def only_shared(known: Mapping[str, LabelDevice], a: str, b: str) -> bool:
    """Whether two labels differ only in whether their device was shared."""
    one, other = known[a], known[b]
    return bool(one.kind) and one.kind == other.kind and _bare(a, one) == _bare(b, other)


def remarks(table: pd.DataFrame) -> Iterator[str]:
    """Notes on all labels of a table; none for one type of device without sharing."""
    known = [place for place in label_devices(table).values() if place.kind]
    kinds = list(dict.fromkeys(place.kind for place in known))
    if len(kinds) > 1:
        yield (
            f"Different devices answered: {'; '.join(kinds)}. No mean mixes their times. If they "
            f"are compared, {MEANING.format('the device')}."
        )
    shared = dict.fromkeys(place.shared for place in known)
    if len(shared) > 1 and "" in shared:
        yield (
            "For some results other workers of the run shared the device, for some not. No mean "
            "mixes their times."
        )
    notes = [words for name, words in SHARED.items() if any(name in part for part in shared)]
    if notes:
        yield " ".join([*notes, NOT_ALONE])
