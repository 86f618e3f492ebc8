"""How often an interval excludes a true median, and what that certainty costs.

`python -m benchmarks.intervals`: pairs without any effect are drawn from six kinds of
distribution for 6 to 200 sequences.  A false verdict is an interval that leaves out the true value.
Power is the share of verdicts where there is an effect.  "exact" is what comparisons use
(stats.median_interval); "percentile" resamples whole sequences (Efron's percentile method), for
comparison.  "share" checks the jackknife interval of imported files' matching ids in the same
way.  Figures go to benchmarks/results/intervals.json, the table to docs/intervals.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.machine import keep
from engine.figures import stats
from engine.imported.acceptance import Pair, analyse

Floats = npt.NDArray[np.float64]
Draw = tuple[Floats, list[int]]  # values and the sequence of each
Ends = Callable[[Floats, list[int]], tuple[float, float]]
COUNTS = (*range(6, 21), 25, 30, 50, 100, 200)
TRIALS, PERCENTILE_TRIALS, DRAWS = 4_000, 500, 1_000
EFFECT = 0.8  # standard deviations of a sequence's value
SIZES = (1, 1, 3, 5, 11)  # samples of a sequence
PAGE = Path(__file__).resolve().parents[1] / "docs" / "intervals.md"
BELOW = "<!-- Below this line: python -m benchmarks.intervals -->\n"


def main() -> None:
    table = {kind: {str(n): _cell(kind, n) for n in COUNTS} for kind in KINDS}
    shares = {str(n): _share_cell(n) for n in (6, 8, 10, 14, 20, 50, 100)}
    keep("intervals", {"trials": TRIALS, "kinds": table, "share": shares})
    head = PAGE.read_text(encoding="utf-8").partition(BELOW)[0]
    PAGE.write_text(f"{head}{BELOW}\n{markdown(table, shares)}", encoding="utf-8")


def normal(generator: np.random.Generator, count: int) -> Draw:
    return generator.normal(size=count), list(range(count))


def skewed(generator: np.random.Generator, count: int) -> Draw:
    """Lognormal, shifted to a median of 0."""
    return np.exp(generator.normal(size=count)) - 1, list(range(count))


def heavy(generator: np.random.Generator, count: int) -> Draw:
    """Student's t with 2 degrees of freedom."""
    return generator.standard_t(2, size=count), list(range(count))


def tied(generator: np.random.Generator, count: int) -> Draw:
    """Whole numbers from -2 to 2, as differences of token counts are."""
    return generator.integers(-2, 3, size=count).astype(float), list(range(count))


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


def exact(values: Floats, groups: list[int]) -> tuple[float, float]:
    found = stats.median_interval(values.tolist(), groups)
    return found.low, found.high


def percentile(values: Floats, groups: list[int]) -> tuple[float, float]:
    """The 2.5th and 97.5th percentile of the medians of whole sequences drawn with replacement."""
    order = np.argsort(values, kind="stable")
    ordered, belongs = values[order], np.array(groups)[order]
    count = int(belongs.max()) + 1
    drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), size=DRAWS)
    passed = np.cumsum(drawn.astype(np.int32)[:, belongs], axis=1, dtype=np.int32)
    total = passed[:, -1]
    lower = (passed >= ((total + 1) // 2)[:, None]).argmax(axis=1)
    upper = (passed >= ((total + 2) // 2)[:, None]).argmax(axis=1)
    low, high = np.quantile((ordered[lower] + ordered[upper]) / 2, [0.025, 0.975])
    return float(low), float(high)


def simulate(ends: Ends, kind: str, count: int, trials: int, seed: int, effect: float) -> Floats:
    """[trials, 2]: 1 where the interval leaves 0 out, and its width."""
    generator = np.random.default_rng([seed, count])
    found = []
    for _ in range(trials):
        values, groups = KINDS[kind](generator, count)
        low, high = ends(values + effect, groups)
        found.append((float(low > 0 or high < 0), high - low))
    return np.array(found)


def false_verdicts(ends: Ends, kind: str, count: int, trials: int, seed: int = 0) -> float:
    """The share of intervals that leave out 0, the true median."""
    return float(simulate(ends, kind, count, trials, seed, 0.0)[:, 0].mean())


def _cell(kind: str, count: int) -> dict[str, Any]:
    cell: dict[str, Any] = {}
    for name, ends, trials in (
        ("exact", exact, TRIALS),
        ("percentile", percentile, PERCENTILE_TRIALS),
    ):
        none = simulate(ends, kind, count, trials, 0, 0.0)
        some = simulate(ends, kind, count, PERCENTILE_TRIALS, 1, EFFECT)
        share = float(none[:, 0].mean())
        cell[name] = {
            "false_verdicts": share,
            "standard_error": (share * (1 - share) / trials) ** 0.5,
            "power": float(some[:, 0].mean()),
            "median_width": float(np.median(none[:, 1])),
            "trials": trials,
        }
    return cell


def share_misses(count: int, trials: int, seed: int = 0) -> float:
    """The share of intervals of matching ids that leave out the true rate.

    Clips of 1 to 11 answers of 20 ids; a clip's own rate is beta distributed around 30 %.
    """
    generator = np.random.default_rng([seed, count])
    return sum(_misses(generator, count) for _ in range(trials)) / trials


def _misses(generator: np.random.Generator, count: int) -> bool:
    target = tuple(range(20))
    pairs = []
    for clip, rate in enumerate(generator.beta(3, 7, size=count)):
        for _ in range(int(generator.choice(SIZES))):
            hits = generator.random(20) < rate
            ids = tuple(np.where(hits, target, -1).tolist())
            pairs.append(Pair(str(clip), ids, target, clip=str(clip)))
    found = analyse(pairs, "draft", "target").rate
    assert found is not None and found.interval is not None
    return not found.interval[0] <= 0.3 <= found.interval[1]


def _share_cell(count: int) -> dict[str, float]:
    trials = 1_000
    share = share_misses(count, trials)
    return {"misses": share, "standard_error": (share * (1 - share) / trials) ** 0.5}


def markdown(table: dict[str, Any], shares: dict[str, Any]) -> str:
    """A line per number of sequences: false verdicts of each kind, then power and width."""
    lines = ["False verdicts in percent (exact / percentile):", ""]
    lines += _table(["sequences", *table], [[str(n), *_falses(table, n)] for n in COUNTS])
    lines += ["", f"Power in percent at an effect of {EFFECT:g} (exact / percentile):", ""]
    lines += _table(["sequences", *table], [[str(n), *_powers(table, n)] for n in COUNTS])
    lines += ["", "Median width of the exact interval over that of the percentile interval:", ""]
    lines += _table(["sequences", *table], [[str(n), *_widths(table, n)] for n in COUNTS])
    lines += ["", "Intervals of matching ids that leave out the true rate, in percent:", ""]
    rows = [[n, _percent(c["misses"], c["standard_error"])] for n, c in shares.items()]
    lines += _table(["clips", "left out"], rows)
    return "\n".join(lines) + "\n"


def _falses(table: dict[str, Any], count: int) -> list[str]:
    cells = [kind[str(count)] for kind in table.values()]
    return [
        " / ".join(
            _percent(cell[name]["false_verdicts"], cell[name]["standard_error"])
            for name in ("exact", "percentile")
        )
        for cell in cells
    ]


def _powers(table: dict[str, Any], count: int) -> list[str]:
    cells = [kind[str(count)] for kind in table.values()]
    return [
        f"{100 * c['exact']['power']:.0f} / {100 * c['percentile']['power']:.0f}" for c in cells
    ]


def _widths(table: dict[str, Any], count: int) -> list[str]:
    cells = [kind[str(count)] for kind in table.values()]
    widths = [(c["exact"]["median_width"], c["percentile"]["median_width"]) for c in cells]
    return ["-" if not old else f"{new / old:.2f}" for new, old in widths]


def _percent(share: float, error: float) -> str:
    return f"{100 * share:.1f} ± {100 * error:.1f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


if __name__ == "__main__":
    main()
