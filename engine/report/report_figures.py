"""All figures of a report: counts, medians, comparisons, speed-ups, agreement."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from engine.analysis import agreement, machine_loads, model_summary, pairs, robustness
from engine.analysis.agreement import ChoicePair
from engine.analysis.pairs import Comparison, Split
from engine.analysis.results_table import LENSES, frame, labels, look, perturbed_alike
from engine.analysis.robustness import Robustness
from engine.errors import DatasetError
from engine.media import dataset
from engine.storage import provenance
from engine.storage.result_rows import Standing
from engine.storage.run_header import Header
from engine.storage.run_store import Run
from engine.types import Sample

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
Found = TypeVar("Found")


def _of_table(find: Callable[[pd.DataFrame], Found]) -> cached_property[Found]:
    return cached_property(lambda findings: find(findings.table))


class Findings:
    """Each figure is computed when it is first asked for; `titled`: labels for people."""

    def __init__(
        self, runs: Sequence[Run], table: pd.DataFrame | None = None, *, titled: bool = True
    ) -> None:
        self.runs = tuple(runs)
        self.table = frame(runs, titled=titled) if table is None else table

    counts = _of_table(model_summary.counts)
    figures = _of_table(model_summary.figures)
    throughputs = _of_table(model_summary.throughputs)
    attributes = _of_table(agreement.attributes)
    overlaps = _of_table(agreement.overlaps)
    choices = _of_table(agreement.choices)
    label_devices = _of_table(machine_loads.label_devices)
    loads = _of_table(machine_loads.by_label)  # by label, None if unknown

    @cached_property
    def verified(self) -> Mapping[str, Mapping[Standing, int]]:
        """By label: how many answers each certificate covers, or why none covers them."""
        wanted = self.table["label"].isin(labels(self.table))
        answered = self.table[(self.table["error"] == "") & wanted]
        counted: dict[str, Counter[Standing]] = {}
        columns = (answered[name] for name in ("label", "standing", "verified", "missing"))
        for label, state, certificate, missing in zip(*columns, strict=True):
            standing = Standing(state, certificate, tuple(missing.split(", ")) if missing else ())
            counted.setdefault(label, Counter())[standing] += 1
        return counted

    @cached_property
    def failures(self) -> dict[tuple[str, str], int]:
        """(label, reason) -> count, the most frequent first."""
        failed = self.table[self.table["error"] != ""]
        return dict(Counter(zip(failed["label"], failed["error"], strict=True)).most_common())

    @cached_property
    def couples(self) -> list[tuple[str, str]]:
        """The labels that can be compared with each other."""
        known = self.label_devices
        return [
            pair
            for pair in combinations(known, 2)
            if not machine_loads.only_shared(known, *pair) and perturbed_alike(self.table, *pair)
        ]

    @cached_property
    def devices(self) -> dict[str, str]:
        """By label the type, "" if unknown."""
        return {label: one.words for label, one in self.label_devices.items()}

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        return tuple(one for pair in self.couples for one in pairs.compare_all(self.table, *pair))

    @cached_property
    def splits(self) -> tuple[Split, ...]:
        every = (pairs.split(self.table, a, b) for a, b in self.couples)
        return tuple(split for split in every if split is not None)

    @cached_property
    def through_lenses(self) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
        """The medians of the n uncached results of each choice of lengths and label that has some,
        and a note per choice."""
        rows, notes = list[dict[str, Any]](), dict[str, None]()
        for name in LENSES:
            seen = look(self.table, name)
            fresh = seen.table[~seen.table["cached"].astype(bool)]
            for label in labels(seen.table):
                lines = fresh[fresh["label"] == label]
                if not lines.empty:
                    medians = lines[["new_tokens", "total_ms", "tpot_ms"]].astype(float).median()
                    tokens, total, tpot = map(float, medians)
                    known = {"tpot_ms": None if math.isnan(tpot) else tpot}
                    row = {"lens": name, "label": label, "n": len(lines)}
                    rows.append(row | {"tokens": tokens, "total_ms": total} | known)
                    notes[seen.note] = None
        return rows, tuple(notes)

    @cached_property
    def passages(self) -> list[dict[str, Any]]:
        """Per label and tensor the most frequent shapes, each n times, in the order of the stages;
        `others` counts the shapes that are not listed."""
        some = self.table[self.table["label"].isin(labels(self.table))]
        keys = zip(some["number"], some["offset"], strict=True)
        names = dict(zip(keys, some["label"], strict=True))
        counted = defaultdict[tuple[str, str], Counter[tuple[tuple[int, ...], str, int]]](Counter)
        for number, run in enumerate(self.runs):
            for offset, row in run.results():
                label = names.get((number, offset))
                for one in row.tensors if label is not None else ():
                    counted[str(label), one.name][one.shape, one.dtype, one.bytes] += 1
        order = {name: place for place, name in enumerate(BETWEEN)}
        found = list[dict[str, Any]]()
        for key in sorted(counted, key=lambda key: (key[0], order.get(key[1], len(order)))):
            others = max(0, len(counted[key]) - SHOWN)
            tensor = {"label": key[0], "name": key[1], "between": BETWEEN.get(key[1], "")}
            for (shape, dtype, size), n in counted[key].most_common(SHOWN):
                seen = {"shape": shape, "dtype": dtype, "bytes": size, "n": n, "others": others}
                found.append(tensor | seen)
        return found

    @cached_property
    def robustness(self) -> Robustness | None:
        """None if no run is perturbed."""
        return robustness.find(self.runs)

    @cached_property
    def choice_pairs(self) -> tuple[ChoicePair, ...]:
        return agreement.choice_pairs(self.table) if self.choices else ()


def certificate_text(standing: Standing) -> str:
    """What is proved, with the whole hash of the certificate, or why none covers the results."""
    if standing.state != "verified":
        return standing.words
    return f"{standing.words}, certificate {standing.certificate}. {standing.open_timing}".rstrip()


def samples_of(header: Header) -> list[Sample]:
    """The plan's samples; DatasetError unless the dataset is here and as it was."""
    found = dataset.read(Path(header.dataset.root))
    samples = [dataset.find(found, name) for name in header.plan.samples]
    if provenance.describe_dataset(found.root, samples).digest != header.dataset.digest:
        raise DatasetError(f"The samples in {found.root} have changed since the run.")
    return samples
