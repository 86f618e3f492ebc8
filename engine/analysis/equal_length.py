"""The same results at natural, first-min(N) or forced lengths.

Shorter answers take less time, so the lens "first" cuts all answers to a sample, forced ones too,
to the length of the shortest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from engine.analysis.results_table import measured

if TYPE_CHECKING:
    import pandas as pd

LensName = Literal["natural", "first", "forced"]
LENSES: tuple[LensName, ...] = ("natural", "first", "forced")
_LEFT_OUT = "{} results are left out, because not every model answered their sample."


@dataclass(frozen=True)
class Lens:
    """The results that a lens selects, and a sentence about them."""

    name: LensName
    table: pd.DataFrame
    note: str


def look(table: pd.DataFrame, name: LensName) -> Lens:
    """The measured results that the lens selects; the table may be empty."""
    lines = measured(table)
    forced = lines["forced"].astype(bool)
    if name == "natural":
        note = "Natural lengths: each answer ends when its model ends it, or at the limit."
        return Lens(name, lines[~forced], note)
    if name == "forced":
        forced_results = lines[forced]
        sizes = sorted({int(n) for n in forced_results["new_tokens"].dropna()})
        lengths = ", ".join(map(str, sizes)) or "no"
        note = f"Forced lengths: results of {lengths} tokens; the end-of-text id is ignored."
        return Lens(name, forced_results, note)
    return _first(lines)


def _first(lines: pd.DataFrame) -> Lens:
    """Each answer up to token N, the length of the shortest answer to the sample.

    A sample with perturbed inputs is another sample.
    """
    # A model of a run whose results have several labels answers each sample under one of them.
    lines = lines.assign(asked=lines["sample"] + "\n" + lines["perturb"])
    whole = lines[["model", "number", "perturb"]].drop_duplicates().groupby("perturb").size()
    timed = lines["token_ms"].map(len) >= lines["new_tokens"]  # a time of each token is known
    answered = lines[(lines["new_tokens"] > 0) & timed]
    models = answered[["asked", "model", "number"]].drop_duplicates().groupby("asked").size()
    shared = answered[answered["asked"].map(models) == answered["perturb"].map(whole)]
    least = shared.groupby("asked")["new_tokens"].min()
    cut = shared.assign(new_tokens=shared["asked"].map(least)).drop(columns="asked")
    samples = cut["sample"].nunique()
    note = f"The first min(N) tokens of each sample, over {samples:,} samples."
    if dropped := len(lines) - len(cut):
        note += " " + _LEFT_OUT.format(f"{dropped:,}")
    return Lens("first", _cut(cut), note)


def _cut(lines: pd.DataFrame) -> pd.DataFrame:
    """Times of the first `new_tokens` tokens; the run ends with the last of them."""
    times = lines["token_ms"].tolist()
    counts = lines["new_tokens"].astype(int).tolist()
    short = [ms[:n] for ms, n in zip(times, counts, strict=True)]
    first = np.array([ms[0] for ms in short], dtype=np.float64)
    last = np.array([ms[-1] for ms in short], dtype=np.float64)
    steps = last - first
    gaps = np.array(counts, dtype=np.float64) - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        tpot = np.where(gaps > 0, steps / gaps, np.nan)
        rate = np.where(steps > 0, 1000 * gaps / steps, np.nan)
    stages = lines[["load_ms", "preprocess_ms", "vision_ms"]].sum(axis=1)
    decode = lines["prefill_ms"] + steps
    return lines.assign(
        token_ms=short,
        steps_ms=steps,
        decode_ms=decode,
        tpot_ms=tpot,
        tokens_per_s=rate,
        total_ms=last,
        uncached_total_ms=last + (lines["uncached_total_ms"] - lines["total_ms"]),
        unaccounted_ms=last - stages - decode,
    )
