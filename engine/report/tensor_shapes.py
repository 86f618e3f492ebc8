"""The tensors between the stages: shapes, dtypes and bytes, as the runs recorded them.

Boundary: rows in, frozen passages out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.analysis.results_table import labels
from engine.storage.run_store import Run

if TYPE_CHECKING:
    import pandas as pd

BETWEEN = {
    "images": "load -> preprocess",
    "pixels": "preprocess -> vision",
    "input_ids": "preprocess -> decode",
    "features": "vision -> decode",
    "embeddings": "inside decode: to the language model",
}
SHOWN = 3  # shapes of one name; prompts of many lengths have many


@dataclass(frozen=True)
class Passage:
    """One tensor of one model: how often it had this shape.  `others` are shapes not listed."""

    label: str
    name: str
    between: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    n: int
    others: int = 0


def passages(runs: Sequence[Run], table: pd.DataFrame) -> tuple[Passage, ...]:
    """Per label and tensor the most frequent shapes, in the order of the stages."""
    some = table[table["label"].isin(labels(table))]
    keys = zip(some["number"], some["offset"], strict=True)
    names = dict(zip(keys, some["label"], strict=True))
    counted: dict[tuple[str, str], Counter[tuple[tuple[int, ...], str, int]]] = {}
    for number, run in enumerate(runs):
        for offset, row in run.results():
            label = names.get((number, offset))
            for one in row.tensors if label is not None else ():
                shape = (one.shape, one.dtype, one.bytes)
                counted.setdefault((str(label), one.name), Counter())[shape] += 1
    order = {name: place for place, name in enumerate(BETWEEN)}
    every = sorted(counted, key=lambda key: (key[0], order.get(key[1], len(order))))
    return tuple(passage for key in every for passage in _listed(*key, counted[key]))


def _listed(
    label: str, name: str, counter: Counter[tuple[tuple[int, ...], str, int]]
) -> list[Passage]:
    between = BETWEEN.get(name, "")
    others = max(0, len(counter) - SHOWN)
    return [
        Passage(label, name, between, shape, dtype, size, n, others)
        for (shape, dtype, size), n in counter.most_common(SHOWN)
    ]
