"""One model's answers as drafts for another model, compared by token ids.

a = draft ids, b = target ids of one sample, new tokens only.  Position match = sum [a_i = b_i] /
sum min(|a|, |b|).  Prefix k = leading matches.  First-window rate W_g = mean(min(k, g) / g).
Expected tokens per first cycle = 1 + g W_g.  With c = draft time per token / target time per token,
a cycle costs c g + 1 target tokens: predicted speed-up (1 + g W_g) / (c g + 1), and the ceiling
(g + 1) / (c g + 1).  (Leviathan, Kalman and Matias 2023, with the measured W in place of their
independent rate.)

The shuffled baseline (chance_baseline.py) is the same rate over all pairs of a draft and a target
of different clips.

Answers to several questions about one clip are not independent, so intervals are over whole clips
(jackknife.py).  Fewer than MIN_CLUSTERS clips give no interval.

Boundary: ids and times in, figures out; numpy alone.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.analysis import jackknife
from engine.analysis.chance_baseline import Range, shuffled
from engine.analysis.statistics import MIN_CLUSTERS
from engine.analysis.token_pairs import Pair

__all__ = ["GAMMA", "Acceptance", "Pair", "Range", "amount", "analyse", "shuffled"]

GAMMA = 5
Array = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]
_LONGEST = 700.0  # the greatest exponent of a float


@dataclass(frozen=True)
class Acceptance:
    """The figures of n pairs; None for figures that the pairs do not give.

    rate: of the true pairs, with an interval over clips; shuffled: the same rate over pairs of
    different clips, with the range over shuffles.  per_token: draft and target ms per token.
    """

    draft: str
    target: str
    pairs: int
    matched: int
    compared: int
    mean_prefix: float
    max_prefix: int
    gamma: int
    first_windows: dict[int, float]
    rate: Range | None
    shuffled: Range | None
    per_token: tuple[float, float] | None = None
    speedup: Range | None = None
    clips: int = 0

    @property
    def amount(self) -> str:
        """The number of records and clips, in words."""
        return amount(self.pairs, self.clips)

    @property
    def first_window(self) -> float:
        """W for this draft length."""
        return self.first_windows[self.gamma]

    @property
    def expected_tokens(self) -> float:
        return 1 + self.gamma * self.first_window

    @property
    def cost_ratio(self) -> float | None:
        return self.per_token[0] / self.per_token[1] if self.per_token else None

    @property
    def ceiling(self) -> float | None:
        """The speed-up if every drafted token were accepted."""
        ratio = self.cost_ratio
        return None if ratio is None else (self.gamma + 1) / (ratio * self.gamma + 1)

    @property
    def says_something(self) -> bool | None:
        """Whether true pairs match more often than shuffled ones; None if too few clips."""
        if self.rate is None or self.shuffled is None or self.shuffled.high is None:
            return None
        above = self.rate.value > self.shuffled.high
        return None if above and self.clips < MIN_CLUSTERS else above


def amount(records: int, clips: int) -> str:
    """ "100 records of 10 clips"; only the number if each record has its own clip."""
    if clips in (0, records):
        return f"{records:,}"
    return f"{records:,} records of {clips:,} {'clip' if clips == 1 else 'clips'}"


def analyse(
    pairs: Sequence[Pair], draft: str, target: str, gamma: int = GAMMA, seed: int = 0
) -> Acceptance:
    """All figures; ValueError without pairs or for a gamma outside 1 to 64."""
    if not pairs:
        raise ValueError("an acceptance needs at least one pair of token ids")
    if not 1 <= gamma <= 64:
        raise ValueError(f"the draft length is {gamma}: choose 1 to 64")
    prefixes = np.array([pair.prefix for pair in pairs], dtype=np.int64)
    matched = np.array([pair.matched for pair in pairs], dtype=np.int64)
    compared = np.array([pair.compared for pair in pairs], dtype=np.int64)
    clips = [pair.source for pair in pairs]
    windows = {g: float(np.mean(np.minimum(prefixes, g) / g)) for g in sorted({4, 5, gamma})}
    return Acceptance(
        draft=draft,
        target=target,
        pairs=len(pairs),
        matched=int(matched.sum()),
        compared=int(compared.sum()),
        mean_prefix=float(prefixes.mean()),
        max_prefix=int(prefixes.max()),
        gamma=gamma,
        first_windows=windows,
        rate=position_rate(matched, compared, clips),
        shuffled=shuffled(pairs, seed),
        per_token=_per_token(pairs),
        speedup=_speedup(pairs, prefixes, gamma, clips),
        clips=len(set(clips)),
    )


def position_rate(matched: Array, compared: Array, clips: Sequence[Hashable]) -> Range | None:
    """Sum of matches / sum compared.  The interval is computed on log odds; half an id is added to
    both sides so that it exists for 0 and 1."""
    if not compared.sum():
        return None
    value = float(matched.sum() / compared.sum())
    columns = np.stack([compared, matched], axis=1).astype(np.float64)

    def odds(sums: Weights) -> Weights:
        logs: Weights = np.log((sums[:, 1] + 0.5) / (sums[:, 0] - sums[:, 1] + 0.5))
        return logs

    ends = jackknife.ends(columns, clips, odds)
    if ends is None:
        return Range(value, None, None)
    low, high = (1 / (1 + math.exp(-max(-_LONGEST, min(_LONGEST, end)))) for end in ends)
    return Range(value, min(value, low), max(value, high))


def _timed(pairs: Sequence[Pair]) -> npt.NDArray[np.float64] | None:
    """[pairs, 4] draft ms, draft tokens, target ms, target tokens; None if any is unknown."""
    rows = [
        (
            pair.draft_ms,
            pair.draft_tokens or len(pair.draft),
            pair.target_ms,
            pair.target_tokens or len(pair.target),
        )
        for pair in pairs
        if pair.draft_ms and pair.target_ms and pair.draft and pair.target
    ]
    return np.array(rows, dtype=np.float64) if len(rows) == len(pairs) else None


def _per_token(pairs: Sequence[Pair]) -> tuple[float, float] | None:
    rows = _timed(pairs)
    if rows is None:
        return None
    sums = rows.sum(axis=0)
    return float(sums[0] / sums[1]), float(sums[2] / sums[3])


def _speedup(
    pairs: Sequence[Pair], prefixes: Array, gamma: int, clips: Sequence[str]
) -> Range | None:
    """Predicted speed-up; accepted lengths and times of one clip are resampled together."""
    rows = _timed(pairs)
    if rows is None:
        return None
    tokens = 1.0 + np.minimum(prefixes, gamma)
    columns = np.column_stack([np.ones(len(pairs)), tokens, rows])

    def logarithm(sums: Weights) -> Weights:
        """log of (tokens / pairs) / (c gamma + 1); sums [n, 6]."""
        drafted = gamma * (sums[:, 2] / sums[:, 3]) / (sums[:, 4] / sums[:, 5])
        logs: Weights = np.log(sums[:, 1] / sums[:, 0]) - np.log1p(drafted)
        return logs

    value = float(np.exp(logarithm(columns.sum(axis=0, keepdims=True))[0]))
    if not math.isfinite(value):
        return None
    ends = jackknife.ends(columns, clips, logarithm)
    if ends is None or max(ends) > _LONGEST:
        return Range(value, None, None)
    return Range(value, min(value, math.exp(ends[0])), max(value, math.exp(ends[1])))
