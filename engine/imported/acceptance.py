"""Would one model's answers do as drafts for another's?  What their token ids say.

a = draft ids, b = target ids of one sample, new tokens only.  Position match = sum [a_i = b_i] /
sum min(|a|, |b|).  Prefix k = leading matches.  First-window rate W_g = mean(min(k, g) / g).
Expected tokens per first cycle = 1 + g W_g.  With c = draft time per token / target time per token,
a cycle costs c g + 1 target tokens: predicted speed-up (1 + g W_g) / (c g + 1), and the ceiling
(g + 1) / (c g + 1).  (Leviathan, Kalman and Matias 2023, with the measured W in place of their
independent rate.)

The shuffled baseline beside it (shuffling.py) is the same rate, sum of matches / sum compared, over
every pair of a draft and a target of different clips.

Answers to several questions about one clip are not independent: intervals resample whole clips.

Boundary: ids and times in, figures out; numpy alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.imported.shuffling import TAILS, Range, shuffled
from engine.imported.token_pairs import Pair

__all__ = ["GAMMA", "Acceptance", "Pair", "Range", "amount", "analyse", "shuffled"]

GAMMA = 5
DRAWS = 1000
FEWEST = 50  # draws, where pairs are many
PAIRS_DRAWN = 1_000_000
Array = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Acceptance:
    """What n pairs give; `None` is what cannot be known from them.

    rate, prefix and first_window are of the pairs as they are, intervals over their clips;
    shuffled is the same rate over pairs of different clips, with the range over shuffles.
    per_token: draft and target milliseconds per token.
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
        """How much it rests on, in words."""
        return amount(self.pairs, self.clips)

    @property
    def first_window(self) -> float:
        """W for the chosen draft length."""
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
        """Whether true pairs match more often than the range of shuffled ones."""
        if self.rate is None or self.shuffled is None or self.shuffled.high is None:
            return None
        return self.rate.value > self.shuffled.high


def amount(records: int, clips: int) -> str:
    """ "100 records of 10 clips"; the number alone where each is of a clip of its own."""
    if clips in (0, records):
        return f"{records:,}"
    return f"{records:,} records of {clips:,} {'clip' if clips == 1 else 'clips'}"


def analyse(
    pairs: Sequence[Pair], draft: str, target: str, gamma: int = GAMMA, seed: int = 0
) -> Acceptance:
    """All figures of at least one pair; ValueError for none or a gamma outside 1 to 64."""
    if not pairs:
        raise ValueError("an acceptance needs at least one pair of token ids")
    if not 1 <= gamma <= 64:
        raise ValueError(f"the draft length is {gamma}: choose 1 to 64")
    prefixes = np.array([pair.prefix for pair in pairs], dtype=np.int64)
    matched = np.array([pair.matched for pair in pairs], dtype=np.int64)
    compared = np.array([pair.compared for pair in pairs], dtype=np.int64)
    drawn = _draws([pair.source for pair in pairs], seed)
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
        rate=_rate(matched, compared, drawn),
        shuffled=shuffled(pairs, seed),
        per_token=_per_token(pairs),
        speedup=_speedup(pairs, prefixes, gamma, drawn),
        clips=len({pair.source for pair in pairs}),
    )


def _draws(clips: Sequence[str], seed: int) -> Weights | None:
    """[draws, pairs] how often each pair is drawn, whole clips at a time; None for one clip.

    The same draws for every interval, so that they belong together.
    """
    numbers = np.unique(clips, return_inverse=True)[1]
    count = int(numbers.max()) + 1
    if count < 2:
        return None
    draws = max(FEWEST, min(DRAWS, PAIRS_DRAWN // len(clips)))
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(count, np.full(count, 1 / count), size=draws)
    weights: Weights = drawn[:, numbers].astype(np.float64)
    return weights


def _range(value: float, values: Weights | None) -> Range:
    if values is None or not len(values):
        return Range(value, None, None)
    low, high = np.quantile(values, TAILS)
    return Range(value, float(low), float(high))


def _rate(matched: Array, compared: Array, drawn: Weights | None) -> Range | None:
    if not compared.sum():
        return None
    value = float(matched.sum() / compared.sum())
    if drawn is None:
        return _range(value, None)
    sums = drawn @ compared
    return _range(value, (drawn @ matched)[sums > 0] / sums[sums > 0])


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
    pairs: Sequence[Pair], prefixes: Array, gamma: int, drawn: Weights | None
) -> Range | None:
    """Predicted speed-up; the interval resamples clips, accepted lengths and times together."""
    rows = _timed(pairs)
    if rows is None:
        return None
    tokens = 1.0 + np.minimum(prefixes, gamma)

    def predict(expected: Any, sums: Any) -> Any:
        ratio = (sums[..., 0] / sums[..., 1]) / (sums[..., 2] / sums[..., 3])
        return expected / (ratio * gamma + 1)

    value = float(predict(tokens.mean(), rows.sum(axis=0)))
    if not math.isfinite(value):
        return None
    if drawn is None:
        return _range(value, None)
    expected = (drawn @ tokens) / drawn.sum(axis=1)
    return _range(value, predict(expected, drawn @ rows))
