"""The names, units and formulas of metrics, and which values may be averaged.  Formulas are shown
beside figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.types import SERVER, STAGES

if TYPE_CHECKING:
    import pandas as pd


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
    Metric("total", "total", "ms", "start to end of the run", True),
    Metric("uncached_total", "total without cache", "ms",
           "the total with each cached stage at the time of its computation"),
    Metric("ttft", "TTFT", "ms", "start of the run to the first new token", True),
    Metric("tpot", "TPOT", "ms", "(total - TTFT) / (new tokens - 1)"),
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


def values(lines: pd.DataFrame, metric: Metric) -> npt.NDArray[np.float64]:
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
