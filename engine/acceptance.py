"""Would one model's answers do as drafts for another's?  What their token ids say.

a = draft ids, b = target ids of one sample, new tokens only.  Position match = sum [a_i = b_i] /
sum min(|a|, |b|).  Prefix k = leading matches.  First-window rate W_g = mean(min(k, g) / g).
Expected tokens per first cycle = 1 + g W_g.  With c = draft time per token / target time per token,
a cycle costs c g + 1 target tokens: predicted speed-up (1 + g W_g) / (c g + 1), and the ceiling
(g + 1) / (c g + 1).  (Leviathan, Kalman and Matias 2023, with the measured W in place of their
independent rate.)

The shuffled baseline pairs each draft with the target of another sample of the same question: what
stays of the match there comes from the phrasing and says nothing about the image.

Boundary: ids and times in, figures out; numpy alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import eq
from typing import Any

import numpy as np
import numpy.typing as npt

GAMMA = 5
SHUFFLES = 200  # fewer where pairs are many and their rates hardly vary
FEWEST = 50
PAIRS_SHUFFLED = 100_000
DRAWS = 1000
PAIRS_DRAWN = 1_000_000
TAILS = (0.025, 0.975)
_NO_DRAFT, _NO_TARGET = -(2**40), -(2**41)  # padding that never matches
Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pair:
    """A draft and a target of one sample.

    ms: what each whole answer took to decode, if known; tokens: how many it then had, where its
    ids are not all there.
    """

    sample: str
    draft: tuple[int, ...]
    target: tuple[int, ...]
    question: str = ""
    draft_ms: float | None = None
    target_ms: float | None = None
    draft_tokens: float | None = None
    target_tokens: float | None = None

    @property
    def prefix(self) -> int:
        """How many leading ids agree."""
        both = zip(self.draft, self.target, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))

    @property
    def compared(self) -> int:
        return min(len(self.draft), len(self.target))

    @property
    def matched(self) -> int:
        return sum(map(eq, self.draft, self.target))


@dataclass(frozen=True)
class Range:
    """A figure and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Acceptance:
    """What n pairs give; `None` is what cannot be known from them.

    rate, prefix and first_window are of the pairs as they are; shuffled is the same rate over
    pairs of different samples, with the range over shuffles.  per_token: draft and target
    milliseconds per token.
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
        if self.rate is None or self.shuffled is None:
            return None
        return self.rate.value > self.shuffled.high


@dataclass(frozen=True)
class Painted:
    """One id of a draft: accepted (in the prefix), matched by chance of position, or neither."""

    position: int
    id: int
    target: int | None
    state: str  # "accepted", "matched", "rejected", "beyond"


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
    drawn = _draws(len(pairs), seed)
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
    )


def paint(pair: Pair) -> tuple[Painted, ...]:
    """Each id of the draft with what the target has in its place."""
    prefix, found = pair.prefix, []
    for position, token in enumerate(pair.draft):
        other = pair.target[position] if position < len(pair.target) else None
        if position < prefix:
            state = "accepted"
        elif other is None:
            state = "beyond"
        else:
            state = "matched" if token == other else "rejected"
        found.append(Painted(position, token, other, state))
    return tuple(found)


def shuffled(pairs: Sequence[Pair], seed: int = 0) -> Range | None:
    """The position match of drafts with other samples' targets, its median and 95 % of shuffles.

    Within a question, each draft once per shuffle; None where no question has two samples.
    """
    groups: dict[str, list[int]] = {}
    for index, pair in enumerate(pairs):
        groups.setdefault(pair.question, []).append(index)
    usable = [g for g in groups.values() if len({pairs[i].sample for i in g}) > 1]
    if not usable:
        return None
    drafts, targets = _padded(pairs, "draft", _NO_DRAFT), _padded(pairs, "target", _NO_TARGET)
    sizes = np.array([[len(pair.draft), len(pair.target)] for pair in pairs], dtype=np.int64)
    samples = np.array([pair.sample for pair in pairs])
    generator = np.random.default_rng(seed)
    rates = []
    for _ in range(max(FEWEST, min(SHUFFLES, PAIRS_SHUFFLED // len(pairs)))):
        left, right = _mixed(usable, samples, generator)
        compared = np.minimum(sizes[left, 0], sizes[right, 1]).sum()
        if compared:
            rates.append(float((drafts[left] == targets[right]).sum() / compared))
    if not rates:
        return None
    low, high = np.quantile(rates, TAILS)
    return Range(float(np.median(rates)), float(low), float(high))


def _mixed(
    groups: Sequence[Sequence[int]], samples: npt.NDArray[Any], generator: np.random.Generator
) -> tuple[Array, Array]:
    """Drafts and the targets they get: a random cycle per group, so that none keeps its own."""
    left, right = [], []
    for group in groups:
        order = generator.permutation(np.asarray(group, dtype=np.int64))
        left.append(order)
        right.append(np.roll(order, 1))
    drafts, targets = np.concatenate(left), np.concatenate(right)
    other = samples[drafts] != samples[targets]
    return drafts[other], targets[other]


def _padded(pairs: Sequence[Pair], side: str, empty: int) -> Array:
    """[pairs, longest] ids, the rest filled with what matches nothing.

    Columns beyond the shorter side's longest answer can never be compared and are left out.
    """
    width = min(max(len(p.draft) for p in pairs), max(len(p.target) for p in pairs))
    found = np.full((len(pairs), width), empty, dtype=np.int64)
    for row, pair in enumerate(pairs):
        ids = getattr(pair, side)[:width]
        found[row, : len(ids)] = ids
    return found


def _draws(count: int, seed: int) -> Array:
    """Rows of resampled pairs for every interval, so that they belong together."""
    draws = max(FEWEST, min(DRAWS, PAIRS_DRAWN // count))
    drawn: Array = np.random.default_rng(seed).integers(0, count, (draws, count))
    return drawn


def _rate(matched: Array, compared: Array, drawn: Array) -> Range | None:
    if not compared.sum():
        return None
    sums = compared[drawn].sum(axis=1)
    rates = matched[drawn].sum(axis=1)[sums > 0] / sums[sums > 0]
    low, high = np.quantile(rates, TAILS)
    return Range(float(matched.sum() / compared.sum()), float(low), float(high))


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


def _speedup(pairs: Sequence[Pair], prefixes: Array, gamma: int, drawn: Array) -> Range | None:
    """Predicted speed-up; the interval resamples pairs, accepted lengths and times together."""
    rows = _timed(pairs)
    if rows is None:
        return None
    tokens = 1 + np.minimum(prefixes, gamma)

    def predict(expected: Any, sums: Any) -> Any:
        ratio = (sums[..., 0] / sums[..., 1]) / (sums[..., 2] / sums[..., 3])
        return expected / (ratio * gamma + 1)

    drawn_sums = np.stack([rows[drawn, column].sum(axis=1) for column in range(4)], axis=-1)
    values = predict(tokens[drawn].mean(axis=1), drawn_sums)
    low, high = np.quantile(values, TAILS)
    value = float(predict(tokens.mean(), rows.sum(axis=0)))
    return Range(value, float(low), float(high)) if math.isfinite(value) else None
