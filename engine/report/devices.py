"""What a reader must know of the devices that times are of: several types, or shared ones.

Boundary: wording; which device a label's results are of is engine.figures.frame's.  Comparing
devices is a fair question, so nothing is refused: but it is said that not the models alone are
compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from engine.figures import frame

if TYPE_CHECKING:
    import pandas as pd

MEANING = "a difference in time speaks of model and device together, not of the models alone"
SHARED = {
    "device": "Shared device: another worker of the run had it at the same time.",
    "cores": "Shared cores: the workers of a machine had more threads than it has cores.",
}
NOT_ALONE = "Such times are not those of a device by itself."


def couple(devices: Mapping[str, str], a: str, b: str) -> str:
    """A sentence where two labels' times are of different types of devices, else ""."""
    first, second = devices.get(a, ""), devices.get(b, "")
    if not first or not second or first == second:
        return ""
    # Such labels end with their device: it is said once.
    one, other = a.removesuffix(f" · {first}"), b.removesuffix(f" · {second}")
    return f"Different devices: {one} ran on {first}; {other} ran on {second}. So {MEANING}."


def remarks(table: pd.DataFrame) -> Iterator[str]:
    """What holds for all labels of a table; nothing for one type of device that nobody shared."""
    known = frame.devices(table)
    types = list(dict.fromkeys(device for device in known.values() if device))
    if len(types) > 1:
        yield (
            f"Different devices answered: {'; '.join(types)}. Their times are in no mean together; "
            f"where they stand side by side, {MEANING}."
        )
    shared = " ".join(table[table["label"].isin(list(known))]["shared"].unique())
    told = [sentence for name, sentence in SHARED.items() if name in shared]
    if told:
        yield " ".join([*told, NOT_ALONE])
