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
    and the known machines.  `bare`: the label without the device."""

    bare: str
    kind: str
    shared: str
    machines: frozenset[str]

    @property
    def whole(self) -> str:
        return f"{self.kind}, {self.shared}" if self.shared else self.kind

    @property
    def share(self) -> str:
        """In words: "a shared device", "shared cores", both, or neither."""
        if not self.shared:
            return "a device for itself"
        return self.shared if self.shared == "shared cores" else f"a {self.shared}"


def label_devices(table: pd.DataFrame) -> dict[str, LabelDevice]:
    """By label; kind is "" if no result names a device."""
    few = table[["label", "bare", "device", "shared", "host", "address"]].drop_duplicates()
    known = {}
    for name, device in results_table.devices(table).items():
        lines = few[few["label"] == name]
        shared = " ".join(lines[lines["device"] == device]["shared"].unique()[:1] if device else ())
        named = zip(lines["host"], lines["address"], strict=True)
        machines = frozenset(" ".join(filter(None, place)) for place in named if any(place))
        kind = device.removesuffix(f", {shared}") if shared else device
        known[name] = LabelDevice(str(lines["bare"].iloc[0]), kind, shared, machines)
    return known


def couple(table: pd.DataFrame, a: str, b: str) -> str:
    """A sentence if the times of two labels come from different or differently shared devices."""
    known = label_devices(table)
    if a not in known or b not in known or not known[a].kind or not known[b].kind:
        return ""
    one, other = known[a], known[b]
    if one.kind != other.kind:
        how, what = "Different devices", "device"
        words = [f"ran on {place.whole}" for place in (one, other)]
    elif one.shared != other.shared:
        how, what, words = "Shared differently", "sharing", [f"had {p.share}" for p in (one, other)]
    elif one.machines and other.machines and not one.machines & other.machines:
        how, what = "Different machines", "machine"
        words = [f"ran on {', '.join(sorted(place.machines))}" for place in (one, other)]
    else:
        return ""
    sides = f"{one.bare} {words[0]}; {other.bare} {words[1]}"
    return f"{how}: {sides}. So {MEANING.format(f'the {what}')}."


def only_shared(known: Mapping[str, LabelDevice], a: str, b: str) -> bool:
    """Whether two labels differ only in whether their device was shared."""
    one, other = known[a], known[b]
    return bool(one.kind) and one.kind == other.kind and one.bare == other.bare


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
