"""Does any part of the picture matter to the words more than chance (docs/attribution.md)?

R sequences of random tokens are scored at the places of the words' tokens, in the same passes.  Let
l[c, i, r] be the loss, in nats, of token i of sequence r when part c is removed; r = 0 are the
words.  w[i] is the smallest probability, on the plain picture, of the words' tokens before i, and
w[0] = 1: without it, "A pedestrian is on the left" said of an empty road would find the places that
decide between left and right.  With s[c, r] = sum over i of w[i] l[c, i, r], there are two figures:

    strength[r] = max over c of s[c, r]
    contrast[r] = strength[r] / mean over c of |s[c, r]|

p = (1 + number of random sequences with at least the words' value) / (1 + R), and the larger of the
two p counts.  Most random tokens are far less likely than any word that a model considers, so no
place is named for words of which it gives a token less than LEAST_PROBABLE, whatever p is.
"""

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from engine.attribution.wording import BY_CHANCE, LEAST_PROBABLE, improbable
from engine.storage.explanations import Chance

Floats = npt.NDArray[np.float64]
RANDOM = 199  # sequences of random tokens; the smallest p is 1 / 200
SEED = 0xC4A9CE
SOME = (
    "A part of the picture matters more than chance (p = {:.3f}): these words lose more by its "
    "removal than at least 95 % of {:,} sequences of random words, and lose it more in one place."
)
NONE = (
    "No part of the picture matters more than chance (p = {:.2f}): sequences of random words lose "
    "as much, or lose it as much in one place."
)
UNLIKELY = (
    "The model gives a token of these words a probability of {:.2g}, below {:g}: no place is named."
)


def random_tokens(
    known: int, special: Collection[int], count: int, random: int = RANDOM
) -> npt.NDArray[np.int64]:
    """[count, random]: tokens for each of the words' places, each as likely as any other."""
    ordinary = np.setdiff1d(np.arange(known), np.fromiter(special, np.int64))
    return np.random.default_rng(SEED).choice(ordinary, (count, random))


def weights(logprobs: Floats) -> Floats:
    """How much each token counts, from the words' log-probabilities [N] on the plain picture."""
    before = np.concatenate([[0.0], logprobs[:-1]])
    return np.asarray(np.exp(np.minimum.accumulate(before)))


def weighted(plain: Floats, changed: Floats) -> Floats:
    """s [1 + R] of one changed picture, from log-probabilities [N, 1 + R] on both pictures.  A
    random token that the model excludes (log-probability of minus infinity) loses nothing."""
    with np.errstate(invalid="ignore"):
        losses = np.nan_to_num(plain - changed, nan=0.0, posinf=0.0, neginf=0.0)
    return np.asarray(weights(plain[:, 0]) @ losses)


def permutation_test(sums: Floats, probability: float) -> Chance:
    """The test of a map, from s [cells, 1 + R]; column 0 are the words.  `probability`: that of the
    words' least likely token on the plain picture."""
    strength = sums.max(axis=0)
    mean = np.abs(sums).mean(axis=0)
    contrast = np.divide(strength, mean, out=np.zeros_like(strength), where=mean > 0)
    p = max(_p(strength), _p(contrast))
    random = sums.shape[1] - 1
    sentence = SOME.format(p, random) if p <= BY_CHANCE else NONE.format(p)
    if improbable(probability):
        sentence = UNLIKELY.format(probability, LEAST_PROBABLE)
    return Chance(p, random, sentence, probability)


def _p(values: Floats) -> float:
    """The share of values that are at least the first one, which counts itself."""
    return float((values >= values[0]).mean())
