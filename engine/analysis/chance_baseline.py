"""How often token ids agree if draft and target are of different clips: the chance baseline.

Each draft is compared with every target of another clip and the same question.  Matches there come
from the phrasing, not from the image.  The value is exact; its range is over random shuffles.

Boundary: pairs in, a range out; numpy alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.analysis.token_pairs import Pair

SHUFFLES = 200  # fewer where pairs are many and their rates vary little
FEWEST = 50
PAIRS_SHUFFLED = 100_000
TAILS = (0.025, 0.975)
_NO_DRAFT, _NO_TARGET = -(2**40), -(2**41)  # padding that never matches
Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Range:
    """A figure and its 95 % interval; both ends are None for too few clips."""

    value: float
    low: float | None
    high: float | None

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


def shuffled(pairs: Sequence[Pair], seed: int = 0) -> Range | None:
    """The position match of drafts with other clips' targets, within a question.

    The value is sum of matches / sum compared over every such pair of a draft and a target.  The
    interval holds 95 % of random shuffles that give each draft the target of one other clip (the
    same for all questions), and the value.  None if no question has two clips.
    """
    groups: dict[str, list[int]] = {}
    for index, pair in enumerate(pairs):
        groups.setdefault(pair.question, []).append(index)
    usable = [g for g in groups.values() if len({pairs[i].source for i in g}) > 1]
    value = _mismatched([[pairs[i] for i in group] for group in usable])
    if value is None:
        return None
    rates = _shuffles(pairs, usable, np.random.default_rng(seed))
    low, high = np.quantile(rates, TAILS) if rates else (value, value)
    return Range(value, min(value, float(low)), max(value, float(high)))


def _mismatched(groups: Sequence[Sequence[Pair]]) -> float | None:
    """The rate over all pairs of different clips within a group; None without any.

    Counted by position over whole groups, minus the pairs of one clip.
    """
    matched = compared = 0
    for group in groups:
        clips: dict[str, list[Pair]] = {}
        for pair in group:
            clips.setdefault(pair.source, []).append(pair)
        whole, own = _crossed(group), [_crossed(clip) for clip in clips.values()]
        matched += whole[0] - sum(one[0] for one in own)
        compared += whole[1] - sum(one[1] for one in own)
    return matched / compared if compared else None


def _crossed(pairs: Sequence[Pair]) -> tuple[int, int]:
    """(matched, compared) ids of every draft with every target, from counts by position."""
    if len(pairs) == 1:
        return pairs[0].matched, pairs[0].compared
    matched = compared = 0
    drafts = [Counter(ids) for ids in _columns([pair.draft for pair in pairs])]
    targets = [Counter(ids) for ids in _columns([pair.target for pair in pairs])]
    for mine, others in zip(drafts, targets, strict=False):
        matched += sum(count * others[token] for token, count in mine.items())
        compared += mine.total() * others.total()
    return matched, compared


def _columns(answers: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """The ids at each position, of the answers that are long enough."""
    for place in range(max(map(len, answers), default=0)):
        yield [ids[place] for ids in answers if place < len(ids)]


def _shuffles(
    pairs: Sequence[Pair], groups: Sequence[Sequence[int]], generator: np.random.Generator
) -> list[float]:
    drafts, targets = _padded(pairs, "draft", _NO_DRAFT), _padded(pairs, "target", _NO_TARGET)
    sizes = np.array([[len(pair.draft), len(pair.target)] for pair in pairs], dtype=np.int64)
    clips = np.unique([pair.source for pair in pairs], return_inverse=True)[1]
    rates = []
    for _ in range(max(FEWEST, min(SHUFFLES, PAIRS_SHUFFLED // len(pairs)))):
        left, right = _mixed(groups, clips, generator)
        compared = np.minimum(sizes[left, 0], sizes[right, 1]).sum()
        if compared:
            rates.append(float((drafts[left] == targets[right]).sum() / compared))
    return rates


def _mixed(
    groups: Sequence[Sequence[int]], clips: Array, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Drafts and their new targets: one random cycle of clips for all groups, so that drafts never
    keep their clip and questions about a clip stay together."""
    left, right = [], []
    rank = generator.permutation(int(clips.max()) + 1)
    for group in groups:
        members = generator.permutation(np.asarray(group, dtype=np.int64))
        order = members[np.argsort(rank[clips[members]], kind="stable")]
        left.append(order)
        right.append(np.roll(order, 1))
    drafts, targets = np.concatenate(left), np.concatenate(right)
    other = clips[drafts] != clips[targets]
    return drafts[other], targets[other]


def _padded(pairs: Sequence[Pair], side: str, empty: int) -> Array:
    """[pairs, longest] ids, padded with a value that never matches.

    Columns beyond the shorter side's longest answer can never be compared and are left out.
    """
    width = min(max(len(p.draft) for p in pairs), max(len(p.target) for p in pairs))
    found = np.full((len(pairs), width), empty, dtype=np.int64)
    for row, pair in enumerate(pairs):
        ids = getattr(pair, side)[:width]
        found[row, : len(ids)] = ids
    return found
