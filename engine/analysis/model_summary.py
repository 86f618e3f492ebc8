"""The metrics, whose formulas are shown beside figures; and summaries per model: counts, and for
each stage and metric median, spread and percentiles.

Values of different sources (measured, cached, hook, derived) or groups (measured, cold, warm-up,
after a pause) are never in one figure.  p90 needs 10 values, p99 needs 100.

Throughput is new tokens and samples per second of batches.  A batch is one value, whatever its
size.  Batches of different sizes, or with different numbers of cached samples, are never in one
figure.  Single runs count as batches of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.analysis import statistics
from engine.analysis.results_table import GROUPS, IN_A_BATCH, Group, answered, labels, measured
from engine.analysis.statistics import Spread
from engine.palette import UNACCOUNTED
from engine.types import SERVER, STAGES

if TYPE_CHECKING:
    import pandas as pd

PARTS: tuple[str, ...] = (*STAGES, SERVER, UNACCOUNTED)
StageTimes = Mapping[str, Mapping[str, float]]  # label -> part of PARTS -> ms
P90_FROM, P99_FROM = 10, 100
APART = (
    "Samples that were answered in a batch are not timed separately: only the batch is measured. "
    "They are in no figure, comparison or chart of single samples."
)
MEANING = (
    "Throughput: new tokens, or samples, of a whole batch divided by its seconds from start to "
    "end, all four stages included. It is not tok/s, which excludes the time to the first token."
)


@dataclass(frozen=True)
class Metric:
    """`cacheable`: a stage read from the cache changes it."""

    name: str
    label: str
    unit: str
    meaning: str
    cacheable: bool = False
    less_is_faster: bool = True

    @property
    def timed(self) -> bool:
        """Whether it is computed from times, so that a busy machine changes it."""
        return self.unit in ("ms", "tokens/s")

    @property
    def title(self) -> str:
        return f"{self.label} ({self.unit})"

    @property
    def column(self) -> str:
        return f"{self.name}_ms" if self.unit == "ms" else self.name


STAGE_MEANING: Mapping[str, str] = {
    "load": "read the files, choose the frames",
    "preprocess": "resize, normalise, tokenise",
    "vision": "vision tower and projector",
    "decode": "embed, prefill, token steps",
}
METRICS: tuple[Metric, ...] = (
    *(Metric(name, name, "ms", f"stage {number}: {STAGE_MEANING.get(name, name)}", name != "load")
      for number, name in enumerate(STAGES, 1)),
    Metric("prefill", "decode: prefill", "ms", "start of stage 4 to the first token", True),
    Metric("steps", "decode: token steps", "ms", "first to last token"),
    Metric(SERVER, "at the server", "ms", "from sending a request to the end of its answer"),
    Metric("unaccounted", "unaccounted", "ms", "the total minus the four stages, or the server's "
           "part"),
    Metric("total", "total", "ms", "start to end of the run, without time in the queue", True),
    Metric("uncached_total", "total without cache", "ms",
           "the total with each cached stage at the time of its computation"),
    Metric("ttft", "TTFT", "ms", "time to first token: start of the run to the first new token",
           True),
    Metric("tpot", "TPOT", "ms", "time per output token: (total - TTFT) / (new tokens - 1)"),
    Metric("itl", "ITL", "ms", "gaps between new tokens, pooled; of a server if each came alone"),
    Metric("tokens_per_s", "tok/s", "tokens/s", "(new tokens - 1) / (total - TTFT)",
           less_is_faster=False),
    Metric("cpu", "CPU time", "ms",
           "CPU time of this process during the run, all threads; for runs on the CPU", True),
    Metric("new_tokens", "new tokens", "tokens", "generated ids, including the end-of-text id",
           less_is_faster=False),
    Metric("context_tokens", "context", "tokens", "prompt ids including the visual tokens",
           less_is_faster=False),
)  # fmt: skip
BY_NAME = {metric.name: metric for metric in METRICS}
PAIRED = tuple(m for m in METRICS if m.name not in ("itl", "context_tokens", "uncached_total"))


def values_of(lines: pd.DataFrame, metric: Metric) -> npt.NDArray[np.float64]:
    """One value per result that has one; for ITL every gap of every result."""
    if metric.name == "itl":
        times = lines.get("token_ms", ())
        return np.concatenate([np.empty(0), *map(np.diff, times)])
    found: npt.NDArray[np.float64] = lines[metric.column].to_numpy(dtype=np.float64)
    return np.extract(np.isfinite(found), found)


def sources(lines: pd.DataFrame, metric: Metric) -> pd.Series[str]:
    """Where each result's value comes from: measured, cached, hook or derived."""
    own = f"{metric.name}_source"
    if own in lines:
        return lines[own].fillna("not measured").astype(str)
    touched = lines["cached"]
    if not metric.cacheable and metric.name != "uncached_total":
        touched = touched & False
    return touched.map({True: "cached", False: "measured"})


def fair(lines: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    """The results whose value of this metric was measured here, not read from the cache."""
    return lines[sources(lines, metric) != "cached"] if metric.cacheable else lines


@dataclass(frozen=True)
class Figure:
    """n values of one metric of one model.  sd divides by n - 1; mad is not scaled."""

    label: str
    metric: str
    unit: str
    group: Group
    source: str
    n: int
    median: float
    mean: float
    sd: float | None
    mad: float
    p90: float | None
    p99: float | None
    low: float
    high: float


@dataclass(frozen=True)
class Count:
    """Results of one model.  texts: the number of different answers among the measured results."""

    label: str
    results: int
    answered: int
    failed: int
    cold: int
    warm_up: int
    after_pause: int
    cached: int
    capped: int  # stopped at the length limit
    texts: int | None
    samples: int
    batched: int = 0  # answered in a batch, so in no figure of single samples
    off_script: int = 0  # answers to questions that the model was not trained on


def counts(table: pd.DataFrame) -> tuple[Count, ...]:
    """One per label; results, answered and failed count the measured phase only."""
    found = []
    for label in labels(table):
        lines = table[table["label"] == label]
        done, results = answered(lines), int((lines["phase"] == "measured").sum())
        capped = (done["stop"] == "length") & ~done["forced"].astype(bool)
        found.append(
            Count(
                label=label,
                results=results,
                answered=len(done),
                failed=results - len(done),
                cold=int((done["group"] == "cold").sum()),
                warm_up=int((lines["group"] == "warm-up").sum()),
                after_pause=int((done["group"] == "after a pause").sum()),
                cached=int(done["cached"].sum()),
                capped=int(capped.sum()),
                texts=int(done["text"].nunique()) if "text" in done else None,
                samples=int(done["sample"].nunique()),
                batched=int((done["batch"] > 1).sum()),
                off_script=int(done["off_script"].sum()),
            )
        )
    return tuple(found)


def figures(table: pd.DataFrame) -> tuple[Figure, ...]:
    """Every figure of every label, in the order of METRICS, groups and labels."""
    parts = dict(iter(table[table["error"] == ""].groupby(["label", "group"], sort=False)))
    found = []
    keys = [key for key in product(labels(table), GROUPS) if key in parts]
    for (label, group), metric in product(keys, METRICS):
        lines = parts[label, group]
        if metric.name == "uncached_total" and not lines["cached"].any():
            continue  # it equals the total
        for source, some in lines.groupby(sources(lines, metric), sort=True):
            values = values_of(some, metric)
            if not (n := len(values)):
                continue
            found.append(
                Figure(
                    label=label,
                    metric=metric.name,
                    unit=metric.unit,
                    group=group,
                    source=str(source),
                    mean=float(values.mean()),
                    sd=float(values.std(ddof=1)) if n > 1 else None,
                    p90=float(np.percentile(values, 90)) if n >= P90_FROM else None,
                    p99=float(np.percentile(values, 99)) if n >= P99_FROM else None,
                    **vars(statistics.spread(values)),
                )
            )
    return tuple(found)


def stage_medians(found: tuple[Figure, ...], names: Sequence[str]) -> StageTimes:
    """By label, the medians in ms of the parts of a bar that were not read from the cache."""
    parts = {name: {part: find(found, name, part) for part in PARTS} for name in names}
    return {
        name: {part: figure.median for part, figure in own.items() if figure is not None}
        for name, own in parts.items()
    }


def find(found: tuple[Figure, ...], label: str, metric: str) -> Figure | None:
    """The figure of a metric that was not read from the cache, if there is one."""
    wanted = label, metric, "measured"
    fresh = (one for one in found if one.source != "cached")
    return next((one for one in fresh if (one.label, one.metric, one.group) == wanted), None)


@dataclass(frozen=True)
class Throughput:
    """n batches of one size by one model, in each of which `cached` samples had their features from
    the cache.  `samples` and `tokens` are those of the results that were kept: a batch that ended
    with the run's process may have lost some.  The rates are of whole batches."""

    label: str
    batch: int
    cached: int
    n: int
    samples: int
    tokens: int
    ms: Spread
    tokens_per_s: Spread
    samples_per_s: Spread


def throughputs(table: pd.DataFrame) -> tuple[Throughput, ...]:
    """By label, size and cache, the smallest first; empty without batches."""
    import pandas as pd

    together = table[(table["group"] == IN_A_BATCH) & (table["error"] == "")]
    batch = together.groupby(["number", "batch_id"])
    together = together.assign(
        kept=batch["sample"].transform("size"),
        kept_tokens=batch["new_tokens"].transform("sum"),
        ms=together["batch_ms"],
        tokens=together["batch_tokens"],
        cached=together["batch_cached"],
    ).drop_duplicates(["number", "batch_id"])
    if not (together["ms"] > 0).any():
        return ()
    alone = measured(table)
    tokens = alone["new_tokens"]
    alone = alone.assign(kept=1, kept_tokens=tokens, ms=alone["total_ms"], tokens=tokens)
    batches = pd.concat([together, alone]) if len(alone) else together
    batches = batches[batches["ms"] > 0].astype({"cached": int})
    order = labels(table)
    found = []
    for _, lines in batches.groupby(["label", "batch", "cached"], sort=False):
        first, seconds = lines.iloc[0], lines["ms"] / 1000
        found.append(
            Throughput(
                label=str(first["label"]),
                batch=int(first["batch"]),
                cached=int(first["cached"]),
                n=len(lines),
                samples=int(lines["kept"].sum()),
                tokens=int(lines["kept_tokens"].sum()),
                ms=statistics.spread(lines["ms"].tolist()),
                tokens_per_s=statistics.spread((lines["tokens"] / seconds).tolist()),
                samples_per_s=statistics.spread((lines["batch"] / seconds).tolist()),
            )
        )
    return tuple(sorted(found, key=lambda one: (order.index(one.label), one.batch, one.cached)))


def alone(table: pd.DataFrame) -> dict[str, str]:
    """By label, a sentence on the results outside of batches, which alone are in its figures of
    single samples; empty if the run has no batches."""
    found = {}
    for _, lines in answered(table).groupby(["number", "model"], sort=False):
        if (lines["batch"] > 1).any():
            for label, n in measured(lines)["label"].value_counts(sort=False).items():
                found[str(label)] = (
                    f"{label}: {n:,} of {len(lines):,} answers ran alone, the others in batches; "
                    f"figures and charts of single samples are of {n:,} alone."
                )
    return found


def batched(table: pd.DataFrame) -> list[str]:
    """The labels with results of batches, in their order."""
    return labels(table[table["batch"] > 1])
