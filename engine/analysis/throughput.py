"""The throughput of batches: new tokens and samples per second, by model and batch size.

A batch is one value, whatever its size. Batches of different sizes, or with different numbers of
cached samples, are never in one figure. Single runs count as batches of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.analysis import statistics
from engine.analysis.results_table import IN_A_BATCH, labels, measured
from engine.analysis.statistics import Spread

if TYPE_CHECKING:
    import pandas as pd

APART = (
    "Samples that were answered in a batch are not timed separately: only the batch is measured. "
    "They are in no figure, comparison or chart of single samples."
)
MEANING = (
    "Throughput: new tokens, or samples, of a whole batch divided by its seconds from start to "
    "end, all four stages included. It is not tok/s, which excludes the time to the first token."
)


@dataclass(frozen=True)
class Throughput:
    """n batches of one size by one model, in each of which `cached` samples had their features
    from the cache.

    `samples` and `tokens` are those of the results that were kept: a batch that ended with the
    run's process may have lost some.  The rates are of whole batches.
    """

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
    batches = _batches(table)
    if not (batches["batch"] > 1).any():
        return ()
    order = labels(table)
    parts = batches.groupby(["label", "batch", "cached"], sort=False)
    found = [_throughput(part) for _, part in parts]
    return tuple(sorted(found, key=lambda one: (order.index(one.label), one.batch, one.cached)))


_BATCH_COLUMNS = ("label", "batch", "cached", "ms", "tokens", "kept", "kept_tokens")


def _batches(table: pd.DataFrame) -> pd.DataFrame:
    """A line per batch, with _BATCH_COLUMNS.  A single run is a batch of one; `kept` is the number
    of its results in the run."""
    import pandas as pd

    together = table[(table["group"] == IN_A_BATCH) & (table["error"] == "")]
    batch = together.groupby(["number", "batch_id"])
    together = together.assign(
        kept=batch["sample"].transform("size"), kept_tokens=batch["new_tokens"].transform("sum")
    ).drop_duplicates(["number", "batch_id"])
    together = together.assign(
        ms=together["batch_ms"],
        tokens=together["batch_tokens"],
        cached=together["batch_cached"],
    )
    alone = measured(table)
    alone = alone.assign(ms=alone["total_ms"], tokens=alone["new_tokens"])
    alone = alone.assign(kept=1, kept_tokens=alone["tokens"])
    lines = [one for one in (together, alone) if len(one)] or [together]
    found = pd.concat([one[list(_BATCH_COLUMNS)] for one in lines])
    return found[found["ms"] > 0].astype({"cached": int, "batch": int})


def _throughput(lines: pd.DataFrame) -> Throughput:
    """Lines of one label, size and number of cached features."""
    seconds, batch = lines["ms"] / 1000, int(lines["batch"].iloc[0])
    return Throughput(
        label=str(lines["label"].iloc[0]),
        batch=batch,
        cached=int(lines["cached"].iloc[0]),
        n=len(lines),
        samples=int(lines["kept"].sum()),
        tokens=int(lines["kept_tokens"].sum()),
        ms=statistics.spread(lines["ms"].tolist()),
        tokens_per_s=statistics.spread((lines["tokens"] / seconds).tolist()),
        samples_per_s=statistics.spread((batch / seconds).tolist()),
    )


@dataclass(frozen=True)
class Alone:
    """In a batched run, n of a model's `answered` results ran alone; its figures of single samples
    use only these."""

    label: str
    n: int
    answered: int

    @property
    def sentence(self) -> str:
        return (
            f"{self.label}: {self.n:,} of {self.answered:,} answers ran alone, the others in "
            f"batches; figures and charts of single samples are of {self.n:,} alone."
        )


def alone(table: pd.DataFrame) -> tuple[Alone, ...]:
    """By label, the results outside of batches; empty if the run has no batches."""
    answered = table[(table["error"] == "") & (table["phase"] == "measured")]
    found = []
    for _, lines in answered.groupby(["number", "model"], sort=False):
        if (lines["batch"] > 1).any():
            left = measured(lines)["label"].value_counts(sort=False)
            found += [Alone(str(label), int(n), len(lines)) for label, n in left.items()]
    return tuple(found)


def batched(table: pd.DataFrame) -> list[str]:
    """The labels with results of batches, in their order."""
    return labels(table[table["batch"] > 1])
