"""What an earlier run tells about a planned one: costs per model, and the spread of differences.

The spread comes from values that the run really has, one per sequence: the ratio of two models'
values, as pairs.compare() uses it, centred on the median, because only the spread is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine.analysis import pairs, statistics
from engine.analysis.clustered_shares import clustered_difference
from engine.analysis.gate import ACCURACY
from engine.analysis.gate_values import accuracy
from engine.analysis.machine_loads import by_label
from engine.analysis.metrics import BY_NAME, Metric
from engine.analysis.results_table import frame, labels, measured
from engine.storage import plan_words
from engine.storage.plan import Plan
from engine.storage.run_store import Run, RunInfo

if TYPE_CHECKING:
    import pandas as pd

FEATURES = "features"  # the name, or its beginning, of the tensors that the feature cache stores
MIN_SEQUENCES = statistics.MIN_CLUSTERS
_NORMAL = 1.959964  # standard errors in half an interval


@dataclass(frozen=True)
class ModelCost:
    """Means of one model in a run; None if the run does not have them.

    result_ms, warmup_ms: per sample, also of a batch; load_ms: to load the checkpoint;
    row_bytes: of a line of results.jsonl; feature_bytes: of a sample in the feature cache.
    """

    model: str
    results: int = 0
    result_ms: float | None = None
    warmup_ms: float | None = None
    load_ms: float | None = None
    row_bytes: float | None = None
    feature_bytes: float | None = None


@dataclass(frozen=True)
class RatioSpread:
    """The ratios of two labels' values per sequence, divided by their median: ascending, positive.
    `reason`: why there are no ratios."""

    a: str
    b: str
    ratios: tuple[float, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class ShareSpread:
    """The standard error of a difference of two accuracies, times the root of its sequences."""

    a: str
    b: str
    sequences: int = 0
    error: float = 0.0
    reason: str = ""


@dataclass(frozen=True)
class EarlierRun:
    """A run as a source for planning.  `busy`: labels whose results ran on a busy machine."""

    run: Run
    results: int
    device: str
    costs: tuple[ModelCost, ...]
    spreads: tuple[RatioSpread, ...] = ()
    shares: tuple[ShareSpread, ...] = ()
    busy: tuple[str, ...] = field(default=())


def newest(plan: Plan, root: Path, runs: Sequence[RunInfo]) -> RunInfo | None:
    """The newest of `runs` (newest first) with results of the plan's models on this dataset; one
    with the same settings first."""
    wanted = {**plan_words.settings(plan), "repeat": ""}
    fitting = [
        info
        for info in runs
        if info.state in ("finished", "stopped")
        and info.results
        and info.settings.get("kind") == wanted["kind"]
        and set(plan.models) <= set(info.models)
        and Path(info.dataset) == root
    ]
    same = [info for info in fitting if {**info.settings, "repeat": ""} == wanted]
    return next(iter((*same, *fitting)), None)


def measure(run: Run, models: Sequence[str], metric: str = "total") -> EarlierRun:
    """What the run tells about these models."""
    table = frame([run], answers=metric == ACCURACY)
    lines = table[table["model"].isin(list(models))]
    known = _chosen_labels(lines, models)
    loads = by_label(lines) if len(lines) else {}
    return EarlierRun(
        run=run,
        results=len(measured(lines)),
        device=", ".join(dict.fromkeys(filter(None, lines["device"].astype(str)))),
        costs=tuple(_costs(run, lines, models)),
        spreads=tuple(
            _spread(lines, a, b, BY_NAME[metric])
            for a, b in combinations(known, 2)
            if metric in BY_NAME
        ),
        shares=tuple(_shares(lines, known)) if metric == ACCURACY else (),
        busy=tuple(label for label in known if (load := loads.get(label)) and load.busy),
    )


def _chosen_labels(lines: pd.DataFrame, models: Sequence[str]) -> list[str]:
    """The label of each model; with several devices, that with the most results."""
    found = []
    for model in models:
        own = lines[lines["model"] == model]
        names = labels(own) if len(own) else []
        counts = {name: int((own["label"] == name).sum()) for name in names}
        found += [max(names, key=lambda name: counts[name])] if names else []
    return found


def _costs(run: Run, lines: pd.DataFrame, models: Sequence[str]) -> Iterator[ModelCost]:
    rows, features = _sizes(run)
    for model in models:
        own = lines[(lines["model"] == model) & (lines["error"] == "")]
        counted = own[own["phase"] == "measured"]
        yield ModelCost(
            model=model,
            results=len(counted),
            result_ms=_mean(_single(counted)),
            warmup_ms=_mean(_single(own[own["phase"] == "warmup"])),
            load_ms=_load_ms(run, model),
            row_bytes=_mean(rows.get(model, [])),
            feature_bytes=_mean(features.get(model, [])),
        )


def _single(lines: pd.DataFrame) -> list[float]:
    """Milliseconds per sample; a sample of a batch has its share of the batch."""
    shared = lines["batch_ms"] / lines["batch"]
    return lines["total_ms"].fillna(shared).dropna().tolist()


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _load_ms(run: Run, model: str) -> float | None:
    """The longest time to load the model in this run."""
    events = [e for e in run.journal if e.get("event") == "loaded" and e.get("model") == model]
    times = [e["ms"] for e in events if isinstance(e.get("ms"), int | float)]
    return max(map(float, times), default=None)


def _sizes(run: Run) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Bytes of each row and of each answer's features, by model.

    The size of a row is the distance to the next one, so the last row has none.
    """
    rows: dict[str, list[float]] = {}
    features: dict[str, list[float]] = {}
    before: tuple[int, str] | None = None
    for offset, row in run.results():
        if before is not None:
            rows.setdefault(before[1], []).append(float(offset - before[0]))
        before = offset, row.model
        some = [one.bytes for one in row.tensors if one.name.startswith(FEATURES)]
        if some:
            features.setdefault(row.model, []).append(float(sum(some)))
    return rows, features


def _spread(lines: pd.DataFrame, a: str, b: str, metric: Metric) -> RatioSpread:
    both = pairs.paired(lines, a, b, metric)
    if both.empty:
        return RatioSpread(a, b, reason="no sample has a measured value of both")
    if min(both["a"].min(), both["b"].min()) <= 0:
        return RatioSpread(a, b, reason="some values are 0, so that there is no ratio")
    ratios, sequences = (both["a"] / both["b"]).tolist(), both["sequence"].tolist()
    medians = statistics.cluster_medians(ratios, sequences, ratios=True)
    if len(medians) < MIN_SEQUENCES:
        reason = f"it has {len(medians):,} sequences of both, and {MIN_SEQUENCES} are needed"
        return RatioSpread(a, b, reason=reason)
    middle = statistics.median_interval(medians.tolist(), ratios=True).median
    return RatioSpread(a, b, tuple((medians / middle).tolist()))


def _shares(lines: pd.DataFrame, known: Sequence[str]) -> Iterator[ShareSpread]:
    """The error of a difference from its interval, which shrinks with the root of the sequences."""
    answers = lines[(lines["phase"] == "measured") & (lines["error"] == "")]
    sequences = dict(zip(answers["sample"], answers["sequence"], strict=True))
    right = {label: accuracy(answers[answers["label"] == label]) for label in known}
    for a, b in combinations(known, 2):
        both = [sample for sample in right[a] if sample in right[b]]
        if not both:
            yield ShareSpread(a, b, reason="no sample of both has a known right answer")
            continue
        found = clustered_difference(
            [right[a][sample] - right[b][sample] for sample in both],
            [str(sequences[sample] or sample) for sample in both],
        )
        if found.low is None or found.high is None:
            reason = f"it has {found.clusters:,} sequences of both, and {MIN_SEQUENCES} are needed"
            yield ShareSpread(a, b, reason=reason)
        else:
            error = (found.high - found.low) / (2 * _NORMAL)
            yield ShareSpread(a, b, found.clusters, error * found.clusters**0.5)
