"""One model's answers as drafts for another model, compared by token ids, new tokens only.

The formulas are in docs/published-files.md (Acceptance); the predicted speed-up is that of
Leviathan, Kalman and Matias (2023), with the measured W in place of their independent rate.

The shuffled baseline is the position match over all pairs of a draft and a target of different
clips and the same question: matches there come from the phrasing, not from the image.

Answers to several questions about one clip are not independent, so intervals are over whole clips
(statistics.py).  Fewer than MIN_CLUSTERS clips give no interval.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from operator import eq
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.analysis import statistics
from engine.analysis.statistics import MIN_CLUSTERS
from engine.pipeline import drafts

if TYPE_CHECKING:
    from engine.storage.result_rows import ResultRow

Array = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]
GAMMA = drafts.GAMMA
_LONGEST = 700.0  # the greatest exponent of a float
SHUFFLES = 200  # fewer where pairs are many and their rates vary little
FEWEST = 50
PAIRS_SHUFFLED = 100_000
TAILS = (0.025, 0.975)
_NO_DRAFT, _NO_TARGET = -(2**40), -(2**41)  # padding that never matches


@dataclass(frozen=True)
class Acceptance:
    """The figures of n pairs; None for figures that the pairs do not give.  rate: of the true
    pairs, with an interval over clips; shuffled: the same rate over pairs of different clips, with
    the range over shuffles.  per_token: draft and target ms per token."""

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


def analyse(pairs: Sequence[Pair], draft: str, target: str, gamma: int = GAMMA) -> Acceptance:
    """All figures; ValueError without pairs or for a gamma outside 1 to 64."""
    if not pairs:
        raise ValueError("an acceptance needs at least one pair of token ids")
    if not 1 <= gamma <= 64:
        raise ValueError(f"the draft length is {gamma}: choose 1 to 64")
    counts = [(pair.prefix, pair.matched, pair.compared) for pair in pairs]
    prefixes, matched, compared = np.array(counts, dtype=np.int64).T
    clips = [pair.source for pair in pairs]
    timed, per_token = None, None
    if all(pair.draft_ms and pair.target_ms and pair.draft and pair.target for pair in pairs):
        # [pairs, 4] draft ms, draft tokens, target ms, target tokens
        rows = [
            (pair.draft_ms, pair.draft_tokens or len(pair.draft),
             pair.target_ms, pair.target_tokens or len(pair.target))
            for pair in pairs
        ]  # fmt: skip
        timed = np.array(rows, dtype=np.float64)
        sums = timed.sum(axis=0)
        per_token = float(sums[0] / sums[1]), float(sums[2] / sums[3])
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
        shuffled=shuffled(pairs),
        per_token=per_token,
        speedup=None if timed is None else _speedup(timed, prefixes, gamma, clips),
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

    ends = statistics.jackknife_interval(columns, clips, odds)
    if ends is None:
        return Range(value, None, None)
    low, high = (1 / (1 + math.exp(-max(-_LONGEST, min(_LONGEST, end)))) for end in ends)
    return Range(value, min(value, low), max(value, high))


def _speedup(timed: Weights, prefixes: Array, gamma: int, clips: Sequence[str]) -> Range | None:
    """Predicted speed-up; accepted lengths and times of one clip are resampled together."""
    tokens = 1.0 + np.minimum(prefixes, gamma)
    columns = np.column_stack([np.ones(len(timed)), tokens, timed])

    def logarithm(sums: Weights) -> Weights:
        """log of (tokens / pairs) / (c gamma + 1); sums [n, 6]."""
        drafted = gamma * (sums[:, 2] / sums[:, 3]) / (sums[:, 4] / sums[:, 5])
        logs: Weights = np.log(sums[:, 1] / sums[:, 0]) - np.log1p(drafted)
        return logs

    value = float(np.exp(logarithm(columns.sum(axis=0, keepdims=True))[0]))
    if not math.isfinite(value):
        return None
    ends = statistics.jackknife_interval(columns, clips, logarithm)
    if ends is None or max(ends) > _LONGEST:
        return Range(value, None, None)
    return Range(value, min(value, math.exp(ends[0])), max(value, math.exp(ends[1])))


@dataclass(frozen=True)
class Range:
    """A figure and its 95 % interval; both ends are None for too few clips."""

    value: float
    low: float | None
    high: float | None

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


def shuffled(pairs: Sequence[Pair]) -> Range | None:
    """The position match of drafts with other clips' targets, within a question.

    The value is sum of matches / sum compared over every such pair of a draft and a target, counted
    by position over whole groups, minus the pairs of one clip.  The interval holds 95 % of random
    shuffles that give each draft the target of one other clip (the same for all questions), and the
    value.  None if no question has two clips.
    """
    groups: dict[str, list[int]] = {}
    for index, pair in enumerate(pairs):
        groups.setdefault(pair.question, []).append(index)
    usable = [g for g in groups.values() if len({pairs[i].source for i in g}) > 1]
    matched = compared = 0
    for group in usable:
        clips: dict[str, list[Pair]] = {}
        for index in group:
            clips.setdefault(pairs[index].source, []).append(pairs[index])
        whole = _crossed([pairs[i] for i in group])
        own = [_crossed(clip) for clip in clips.values()]
        matched += whole[0] - sum(one[0] for one in own)
        compared += whole[1] - sum(one[1] for one in own)
    if not compared:
        return None
    value = matched / compared
    rates = _shuffles(pairs, usable)
    low, high = np.quantile(rates, TAILS) if rates else (value, value)
    return Range(value, min(value, float(low)), max(value, float(high)))


def _crossed(pairs: Sequence[Pair]) -> tuple[int, int]:
    """(matched, compared) ids of every draft with every target, from counts by position."""
    if len(pairs) == 1:
        return pairs[0].matched, pairs[0].compared
    matched = compared = 0
    width = min(max(len(pair.draft) for pair in pairs), max(len(pair.target) for pair in pairs))
    for place in range(width):
        mine = Counter(pair.draft[place] for pair in pairs if place < len(pair.draft))
        others = Counter(pair.target[place] for pair in pairs if place < len(pair.target))
        matched += sum(count * others[token] for token, count in mine.items())
        compared += mine.total() * others.total()
    return matched, compared


def _shuffles(pairs: Sequence[Pair], groups: Sequence[Sequence[int]]) -> list[float]:
    """The rates of random pairs.  One random cycle of clips for all groups gives each draft its new
    target, so that drafts never keep their clip and questions about a clip stay together."""
    drafts, targets = _padded(pairs, "draft", _NO_DRAFT), _padded(pairs, "target", _NO_TARGET)
    sizes = np.array([[len(pair.draft), len(pair.target)] for pair in pairs], dtype=np.int64)
    clips = np.unique([pair.source for pair in pairs], return_inverse=True)[1]
    rates, generator = [], np.random.default_rng(0)
    for _ in range(max(FEWEST, min(SHUFFLES, PAIRS_SHUFFLED // len(pairs)))):
        rank = generator.permutation(int(clips.max()) + 1)
        orders = []
        for group in groups:
            members = generator.permutation(np.asarray(group, dtype=np.int64))
            orders.append(members[np.argsort(rank[clips[members]], kind="stable")])
        left = np.concatenate(orders)
        right = np.concatenate([part for order in orders for part in (order[-1:], order[:-1])])
        other = clips[left] != clips[right]
        left, right = left[other], right[other]
        compared = np.minimum(sizes[left, 0], sizes[right, 1]).sum()
        if compared:
            rates.append(float((drafts[left] == targets[right]).sum() / compared))
    return rates


def _padded(pairs: Sequence[Pair], side: str, empty: int) -> Array:
    """[pairs, longest] ids, padded with a value that never matches.  Columns beyond the shorter
    side's longest answer can never be compared and are left out."""
    width = min(max(len(p.draft) for p in pairs), max(len(p.target) for p in pairs))
    found = np.full((len(pairs), width), empty, dtype=np.int64)
    for row, pair in enumerate(pairs):
        ids = getattr(pair, side)[:width]
        found[row, : len(ids)] = ids
    return found


@dataclass(frozen=True)
class Pair:
    """A draft and a target of one sample.  ..._ms: decode time of the whole answer, if known;
    ..._tokens: its number of tokens if some ids are missing.  clip: the recording, if the sample's
    name does not identify it."""

    sample: str
    draft: tuple[int, ...]
    target: tuple[int, ...]
    question: str = ""
    draft_ms: float | None = None
    target_ms: float | None = None
    draft_tokens: float | None = None
    target_tokens: float | None = None
    clip: str = ""

    @property
    def source(self) -> str:
        return self.clip or self.sample

    @property
    def prefix(self) -> int:
        both = zip(self.draft, self.target, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))

    @property
    def compared(self) -> int:
        return min(len(self.draft), len(self.target))

    @property
    def matched(self) -> int:
        return sum(map(eq, self.draft, self.target))


def pairs_of_rows(rows: Iterable[ResultRow], draft: str, target: str) -> tuple[Pair, ...]:
    """The answers of two models of one run by sample and question; the first of each counts."""
    sides: dict[str, dict[tuple[str, str], ResultRow]] = {draft: {}, target: {}}
    for row in rows:
        if row.model in sides and row.token_ids and not row.error:
            sides[row.model].setdefault((row.sample, row.prompt or ""), row)
    found = []
    for key, mine in sides[draft].items():
        other = sides[target].get(key)
        if other is None or mine.token_ids is None or other.token_ids is None:
            continue
        pair = Pair(mine.sample, mine.token_ids, other.token_ids, key[1], clip=mine.sequence or "")
        spans = mine.spans["steps"], other.spans["steps"]
        if spans[0] and spans[1] and min(len(pair.draft), len(pair.target)) > 1:
            pair = replace(
                pair, draft_ms=spans[0].ms, draft_tokens=len(pair.draft) - 1,
                target_ms=spans[1].ms, target_tokens=len(pair.target) - 1,
            )  # fmt: skip
        found.append(pair)
    return tuple(found)
