"""All figures of a report, computed once: counts, medians, comparisons, speed-ups, agreement."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from engine.analysis import (
    agreement,
    choice_accuracy,
    model_summary,
    pairs,
    robustness,
    speedup,
    vote_counts,
)
from engine.analysis import machine_loads as loads
from engine.analysis.agreement import AttributeScore, OverlapScore
from engine.analysis.choice_accuracy import ChoiceAccuracy, ChoicePair
from engine.analysis.model_summary import Count, Figure, Throughput
from engine.analysis.pairs import Comparison
from engine.analysis.results_table import (
    LENSES,
    LensName,
    devices,
    frame,
    labels,
    look,
    perturbed_alike,
)
from engine.analysis.robustness import Robustness
from engine.analysis.speedup import Split
from engine.analysis.vote_counts import VoteCount
from engine.machine.load import MachineLoad
from engine.report import named_baselines
from engine.report.device_notes import label_devices, only_shared
from engine.report.named_baselines import Baselines
from engine.storage.annotations import votes
from engine.storage.run_store import Run
from engine.storage.schemas import Standing

if TYPE_CHECKING:
    import pandas as pd

NO_BASELINES = Baselines()
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


@dataclass(frozen=True)
class LensRow:
    """One label at one choice of lengths: medians over n results."""

    lens: LensName
    label: str
    n: int
    tokens: float
    total_ms: float
    tpot_ms: float | None


@dataclass(frozen=True)
class Findings:
    """The figures of a report.  By label: verified: its certificates, or why none covers it, and
    their counts; devices: its type of device, "" if unknown; loads: how busy the machine was, None
    if unknown."""

    runs: tuple[Run, ...]
    table: pd.DataFrame
    counts: tuple[Count, ...]
    figures: tuple[Figure, ...]
    verified: Mapping[str, Mapping[Standing, int]]
    failures: Mapping[tuple[str, str], int]  # (label, reason) -> count, the most frequent first
    devices: Mapping[str, str] = field(default_factory=dict)
    throughputs: tuple[Throughput, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    splits: tuple[Split, ...] = ()
    lenses: tuple[LensRow, ...] = ()
    lens_notes: tuple[str, ...] = ()
    attributes: tuple[AttributeScore, ...] = ()
    overlaps: tuple[OverlapScore, ...] = ()
    passages: tuple[Passage, ...] = ()
    loads: Mapping[str, MachineLoad | None] = field(default_factory=dict)
    votes: tuple[VoteCount, ...] = ()
    choices: tuple[ChoiceAccuracy, ...] = ()
    choice_pairs: tuple[ChoicePair, ...] = ()
    baselines: Baselines = NO_BASELINES
    robustness: Robustness | None = None  # None if no run is perturbed


def gather(
    runs: Sequence[Run], titled: bool = True, baselines: Baselines | None = None
) -> Findings:
    """All figures over all results of the runs; titled: labels for people.

    baselines: published figures; None: those beside the runs' datasets.
    """
    found = outline(runs, frame(runs, titled=titled))
    table = found.table
    known = label_devices(table)
    couples = [
        pair
        for pair in combinations(labels(table), 2)
        if not only_shared(known, *pair) and perturbed_alike(table, *pair)
    ]
    splits = [speedup.split(table, a, b) for a, b in couples]
    rows, notes = _through_lenses(table)
    found = with_choices(found, baselines)
    return replace(
        found,
        comparisons=tuple(one for a, b in couples for one in pairs.compare_all(table, a, b)),
        splits=tuple(split for split in splits if split is not None),
        lenses=rows,
        lens_notes=notes,
        attributes=agreement.attributes(table),
        overlaps=agreement.overlaps(table),
        passages=passages(runs, table),
        robustness=robustness.find(runs),
        votes=vote_counts.tally((one for run in runs for one in votes(run.folder)), table),
    )


def with_choices(found: Findings, baselines: Baselines | None = None) -> Findings:
    """The same with the figures of multiple-choice questions, if there are any."""
    choices = choice_accuracy.accuracies(found.table)
    if not choices:
        return found
    return replace(
        found,
        choices=choices,
        choice_pairs=choice_accuracy.compare_all(found.table),
        baselines=named_baselines.of_runs(found.runs) if baselines is None else baselines,
    )


def outline(runs: Sequence[Run], table: pd.DataFrame) -> Findings:
    """The figures that are quick to compute: counts, medians, certificates, failures."""
    failed = table[table["error"] != ""]
    return Findings(
        runs=tuple(runs),
        table=table,
        counts=model_summary.counts(table),
        figures=model_summary.figures(table),
        verified=_verified(table),
        failures=dict(Counter(zip(failed["label"], failed["error"], strict=True)).most_common()),
        devices=devices(table),
        throughputs=model_summary.throughputs(table),
        loads=loads.by_label(table),
    )


def figures(table: pd.DataFrame) -> dict[str, Any]:
    """Counts and figures for the JSON report."""
    return {
        "counts": model_summary.counts(table),
        "figures": model_summary.figures(table),
        "throughput": model_summary.throughputs(table),
        "choice_accuracy": choice_accuracy.accuracies(table),
        "machine_load": loads.by_label(table),
    }


def _through_lenses(table: pd.DataFrame) -> tuple[tuple[LensRow, ...], tuple[str, ...]]:
    """A row per choice of lengths and label with uncached results, and a note per choice."""
    rows, notes = list[LensRow](), dict[str, None]()
    for name in LENSES:
        seen = look(table, name)
        for label in labels(seen.table):
            lines = seen.table[(seen.table["label"] == label) & ~seen.table["cached"].astype(bool)]
            if lines.empty:
                continue
            medians = lines[["new_tokens", "total_ms", "tpot_ms"]].astype(float).median()
            tokens, total, tpot = map(float, medians)
            known = None if math.isnan(tpot) else tpot
            rows.append(LensRow(name, label, len(lines), tokens, total, known))
            notes[seen.note] = None
    return tuple(rows), tuple(notes)


def _verified(table: pd.DataFrame) -> dict[str, dict[Standing, int]]:
    """By label: how many answers have each certificate, none, or one that does not cover them."""
    answered = table[(table["error"] == "") & table["label"].isin(labels(table))]
    counted: dict[str, dict[Standing, int]] = {}
    columns = (answered[name] for name in ("label", "standing", "verified", "missing"))
    for label, state, certificate, missing in zip(*columns, strict=True):
        lacking = tuple(missing.split(", ")) if state == "not covered" else ()
        standing = Standing(state, certificate if state == "verified" else None, lacking)
        counter = counted.setdefault(label, {})
        counter[standing] = counter.get(standing, 0) + 1
    return counted


def certificate_text(standing: Standing) -> str:
    """The whole hash of the certificate, or why none covers the results."""
    verified = standing.state == "verified" and standing.certificate
    return verified or standing.words


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
    return tuple(
        Passage(
            *key, BETWEEN.get(key[1], ""), shape, dtype, size, n, max(0, len(counted[key]) - SHOWN)
        )
        for key in every
        for (shape, dtype, size), n in counted[key].most_common(SHOWN)
    )
