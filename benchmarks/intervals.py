"""How often an interval wrongly excludes the true median, and its power.

`python -m benchmarks.intervals`: pairs without any effect are drawn from six kinds of
distribution for 6 to 200 sequences.  A false verdict is an interval that leaves out the true value.
Power is the share of verdicts where there is an effect.  "share" checks the jackknife interval of
imported files' matching ids in the same way, "accuracy" and "difference" the clustered intervals of
multiple-choice questions.  Figures go to benchmarks/results/intervals.json.
"""

import sys
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.machine import keep
from engine.analysis import acceptance, statistics
from engine.analysis.statistics import clustered_difference, clustered_share

Floats = npt.NDArray[np.float64]
Draw = tuple[Floats, list[int] | None]  # values, and the sequence of each (None: one each)
COUNTS = (*range(6, 21), 25, 30, 50, 100, 200)
TRIALS, POWER_TRIALS = 4_000, 400
SHARE_COUNTS = (6, 10, 20, 50, 100, 200)
SHARES, CORRELATIONS = (0.1, 0.5, 0.9, 0.99), (0.0, 0.1, 0.3, 0.5, 1.0)
DISCORDANT = ((0.1, 0.1), (0.3, 0.3), (0.3, 0.1), (0.05, 0.0001))  # only A, only B right
SHARE_TRIALS = 2_000
EFFECT = 0.8  # standard deviations of a sequence's value
SIZES = (1, 1, 3, 5, 11)  # samples of a sequence


def main() -> None:
    if sys.argv[1:] == ["--quick"]:  # keeps nothing
        print(_cell("normal", 8, 50), difference_misses(20, 0.3, 0.1, 0.3, 50))
        return
    table = {kind: {str(n): _cell(kind, n) for n in COUNTS} for kind in KINDS}
    shares = {str(n): _share_cell(n) for n in COUNTS}
    keep("intervals", {
        "trials": TRIALS, "kinds": table, "share": shares,
        "accuracy": _accuracy_cells(), "difference": _difference_cells(),
    })  # fmt: skip


def normal(generator: np.random.Generator, count: int) -> Draw:
    return generator.normal(size=count), None


def skewed(generator: np.random.Generator, count: int) -> Draw:
    """Lognormal, shifted to a median of 0."""
    return np.exp(generator.normal(size=count)) - 1, None


def heavy(generator: np.random.Generator, count: int) -> Draw:
    """Student's t with 2 degrees of freedom."""
    return generator.standard_t(2, size=count), None


def tied(generator: np.random.Generator, count: int) -> Draw:
    """Whole numbers from -2 to 2, as differences of token counts are."""
    return generator.integers(-2, 3, size=count).astype(float), None


def clustered(generator: np.random.Generator, count: int) -> Draw:
    """Sequences of 1 to 11 samples; half of the variance is the sequence's (correlation 0.5)."""
    sizes = generator.choice(SIZES, size=count)
    groups = np.repeat(np.arange(count), sizes)
    values = generator.normal(size=count)[groups] + generator.normal(size=len(groups))
    return values / 2**0.5, groups.tolist()


def skewed_clusters(generator: np.random.Generator, count: int) -> Draw:
    """The same on a lognormal scale, shifted to a median of 0."""
    values, groups = clustered(generator, count)
    return np.exp(values) - 1, groups


KINDS: dict[str, Callable[[np.random.Generator, int], Draw]] = {
    "normal": normal,
    "skewed": skewed,
    "heavy tails": heavy,
    "ties": tied,
    "clusters": clustered,
    "skewed clusters": skewed_clusters,
}


def simulate(kind: str, count: int, trials: int, seed: int, effect: float) -> Floats:
    """[trials, 2]: 1 where the interval leaves 0 out, and its width."""
    generator = np.random.default_rng([seed, count])
    found = []
    for _ in range(trials):
        values, groups = KINDS[kind](generator, count)
        made = statistics.median_interval((values + effect).tolist(), groups)
        found.append((float(made.low > 0 or made.high < 0), made.high - made.low))
    return np.array(found)


def false_verdicts(kind: str, count: int, trials: int, seed: int = 0) -> float:
    """The share of intervals that leave out 0, the true median."""
    return float(simulate(kind, count, trials, seed, 0.0)[:, 0].mean())


def _cell(kind: str, count: int, trials: int = TRIALS) -> dict[str, float]:
    none = simulate(kind, count, trials, 0, 0.0)
    some = simulate(kind, count, POWER_TRIALS, 1, EFFECT)
    return {
        "false_verdicts": float(none[:, 0].mean()),
        "standard_error": _error(float(none[:, 0].mean()), trials),
        "power": float(some[:, 0].mean()),
        "median_width": float(np.median(none[:, 1])),
        "trials": trials,
    }


def _error(share: float, trials: int) -> float:
    return float((share * (1 - share) / trials) ** 0.5)


def share_misses(count: int, trials: int, seed: int = 0) -> float:
    """The share of intervals of matching ids that leave out the true rate.

    Clips of 1 to 11 answers of 20 ids; a clip's own rate is beta distributed around 30 %.
    """
    generator = np.random.default_rng([seed, count])
    return sum(_misses(generator, count) for _ in range(trials)) / trials


def accuracy_misses(
    count: int, share: float, correlation: float, trials: int, seed: int = 0
) -> dict[str, float]:
    """How often intervals of an accuracy leave the true share out, and their median width.

    Sequences of 1 to 11 questions; a sequence's own share is beta distributed, which gives the
    correlation of two of its answers.
    """
    generator = np.random.default_rng([seed, count])
    found = np.zeros((trials, 2))
    for trial in range(trials):
        sizes = generator.choice(SIZES, size=count)
        groups = np.repeat(np.arange(count), sizes)
        own = _own_shares(generator, [share, 1 - share], correlation, count)[:, 0]
        right = (generator.random(len(groups)) < own[groups]).astype(float)
        one = clustered_share(right.tolist(), groups.tolist())
        assert one.low is not None and one.high is not None
        found[trial] = not one.low <= share <= one.high, one.high - one.low
    return {"misses": float(found[:, 0].mean()), "median_width": float(np.median(found[:, 1])),
            "trials": trials}  # fmt: skip


def difference_misses(
    count: int, only_a: float, only_b: float, correlation: float, trials: int, seed: int = 0
) -> dict[str, float]:
    """The same for the difference of two models on the same questions."""
    generator = np.random.default_rng([seed, count])
    shares, true = [only_a, only_b, 1 - only_a - only_b], only_a - only_b
    found = np.zeros((trials, 2))
    for trial in range(trials):
        sizes = generator.choice(SIZES, size=count)
        groups = np.repeat(np.arange(count), sizes)
        limits = _own_shares(generator, shares, correlation, count).cumsum(axis=1)[groups]
        drawn = generator.random(len(groups))
        values = (drawn < limits[:, 0]) - 1.0 * ((drawn >= limits[:, 0]) & (drawn < limits[:, 1]))
        one = clustered_difference(values.tolist(), groups.tolist())
        assert one.low is not None and one.high is not None
        found[trial] = not one.low <= true <= one.high, one.high - one.low
    return {"misses": float(found[:, 0].mean()), "median_width": float(np.median(found[:, 1])),
            "trials": trials}  # fmt: skip


def _own_shares(
    generator: np.random.Generator, shares: Sequence[float], correlation: float, count: int
) -> Floats:
    """[count, k] shares of each sequence, Dirichlet distributed around `shares`."""
    if correlation == 0:
        return np.tile(shares, (count, 1)).astype(float)
    if correlation == 1:
        return generator.multinomial(1, shares, size=count).astype(float)
    return generator.dirichlet(np.array(shares) * (1 / correlation - 1), size=count)


def _accuracy_cells() -> dict[str, dict[str, dict[str, float]]]:
    """By "share / correlation", then by number of sequences."""
    return {
        f"{share:g} / {icc:g}": {
            str(n): accuracy_misses(n, share, icc, SHARE_TRIALS) for n in SHARE_COUNTS
        }
        for share in SHARES
        for icc in CORRELATIONS
    }


def _difference_cells() -> dict[str, dict[str, dict[str, float]]]:
    """By "only A / only B / correlation", then by number of sequences."""
    return {
        f"{a:g} / {b:g} / {icc:g}": {
            str(n): difference_misses(n, a, b, icc, SHARE_TRIALS) for n in SHARE_COUNTS
        }
        for a, b in DISCORDANT
        for icc in (0.0, 0.3, 1.0)
    }


def _misses(generator: np.random.Generator, count: int) -> bool:
    rates = generator.beta(3, 7, size=count)
    clips = np.repeat(np.arange(count), generator.choice(SIZES, size=count))
    matched = generator.binomial(20, rates[clips])
    found = acceptance.position_rate(
        matched, np.full(len(clips), 20), [str(clip) for clip in clips]
    )
    assert found is not None and found.interval is not None
    return not found.interval[0] <= 0.3 <= found.interval[1]


def _share_cell(count: int) -> dict[str, float]:
    share = share_misses(count, TRIALS)
    return {"misses": share, "standard_error": _error(share, TRIALS)}


if __name__ == "__main__":
    main()
