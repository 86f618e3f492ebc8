"""How often a gate gives a false alarm, and which slow-downs it sees.

`python -m benchmarks.gate [FOLDER]`: runs of the demo models are made in FOLDER (by default a
temporary one; finished runs that are there are used again).  A simulated pair draws samples with
replacement from a run, and splits the repeats of each into BASE and NEW, so that the noise is that
of measured rows.  A planted slow-down multiplies all times of NEW.  Each pair goes through the
whole gate, with all models and default metrics, and with CPU time alone.  "real pairs" are runs
that were started one after another.  "tests" compares the signed-rank test with the sign test and
Student's t.  Figures go to benchmarks/results/gate.json and gate.svg, the tables to docs/gate.md.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from benchmarks.machine import RESULTS, keep
from engine.analysis import gate, one_sided_tests
from engine.analysis.gate_values import GATED, TOKENS, values_of
from engine.analysis.results_table import frame, measured
from engine.analysis.statistics import share_interval
from engine.errors import BadInput
from engine.storage import run_store
from engine.storage.run_header import Header
from engine.storage.run_values import ModelValues, RunValues, SampleValues

Floats = npt.NDArray[np.float64]
MODELS = "eventgpt-demo,video-llava-demo,llava-demo"
AGAIN, AGAIN_MODELS = 8, "eventgpt-demo,llava-demo"  # runs that are started one after another
FEW, MANY = "14 scenes, 6 repeats", "100 scenes, 4 repeats"  # rows that pairs are drawn from
SAMPLES = ((FEW, 14), (MANY, 14), (MANY, 100), (MANY, 500))
SLOWER = (0.02, 0.05, 0.10, 0.20)
ALIKE, PLANTED, TESTED = 1_000, 200, 2_000  # trials
STRICT = SAMPLES[:3]  # pairs that are also compared with a margin of 0
MEASURES = {"default metrics": gate.DEFAULT, "CPU time": ("cpu",)}
VERDICTS = ("worse", "no worse", "undecided")
FASTER = ("tokens_per_s",)
PAGE = Path(__file__).resolve().parents[1] / "docs" / "gate.md"
BELOW = "<!-- Below this line: python -m benchmarks.gate -->\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as fresh:
        folder = Path(sys.argv[1] if sys.argv[1:] else fresh)
        few, many = _run(folder, "demo14", 6), _run(folder, "demo100", 4, _scenes(folder))
        again = [_run(folder, f"again{n}", 3, models=AGAIN_MODELS) for n in range(1, AGAIN + 1)]
        pools = {FEW: Pool.of(few), MANY: Pool.of(many)}
        alike = _cells_of(pools, [(*n, name, 0.0, ALIKE) for n in SAMPLES for name in MEASURES])
        strict = [(*n, name, 0.0, ALIKE) for n in STRICT for name in MEASURES]
        slower = [(*n, m, by, PLANTED) for m in MEASURES for n in SAMPLES for by in SLOWER]
        figures: dict[str, Any] = {
            "rows": {name: pool.noise() for name, pool in pools.items()},
            "alike": alike,
            "alike_no_margin": _cells_of(pools, strict, margin=0.0),
            "planted": _cells_of(pools, slower),
            "real_pairs": {name: real_pairs(again, names) for name, names in MEASURES.items()},
            "tests": _tests(pools[FEW]),
        }
    keep("gate", figures)
    chart([*figures["alike"], *figures["planted"]])
    write_page()


def write_page() -> None:
    """The tables of the kept figures, below their line in docs/gate.md."""
    head = PAGE.read_text(encoding="utf-8").partition(BELOW)[0]
    figures = json.loads((RESULTS / "gate.json").read_text(encoding="utf-8"))
    PAGE.write_text(f"{head}{BELOW}\n{markdown(figures)}", encoding="utf-8")


def _run(
    folder: Path, name: str, repeat: int, dataset: Path | None = None, models: str = MODELS
) -> run_store.Run:
    """A finished run of the demo models."""
    place = folder / name
    if not (place / run_store.SUMMARY).is_file():
        command = [sys.executable, "-m", "engine", "bench", "--models", models, "--repeat"]
        command += [str(repeat), "--max-new-tokens", "64", "--out", str(place)]
        command += ["--dataset", str(dataset)] if dataset else []
        subprocess.run(command, check=True)
    return run_store.read(place)


def _scenes(folder: Path) -> Path:
    """100 held-out demo scenes."""
    from engine.demo.demo_dataset import HELD_OUT, INDEX, write_dataset

    root = folder / "scenes"
    return root if (root / INDEX).is_file() else write_dataset(root, HELD_OUT[:100])


@dataclass(frozen=True)
class Pool:
    """The measured rows of a run: label -> sample -> metric -> values of its repeats [repeats]."""

    header: Header
    rows: dict[str, dict[str, dict[str, Floats]]]
    kept: RunValues

    @classmethod
    def of(cls, run: run_store.Run) -> Pool:
        rows: dict[str, dict[str, dict[str, Floats]]] = {}
        for (label, sample), some in measured(frame([run])).groupby(["label", "sample"]):
            if len(some) > 1:
                values = {metric.name: some[metric.column].to_numpy() for metric in GATED}
                rows.setdefault(str(label), {})[str(sample)] = values
        return cls(run.header, rows, values_of(run))

    def names(self) -> list[str]:
        """Samples with repeats of every model."""
        return sorted(set.intersection(*(set(samples) for samples in self.rows.values())))

    def pair(
        self, count: int, slower: float, chance: np.random.Generator, metrics: Sequence[str]
    ) -> tuple[RunValues, RunValues]:
        """BASE and NEW of `count` samples drawn with replacement, each a sequence of its own."""
        drawn = chance.choice(self.names(), size=count)
        sides: tuple[list[ModelValues], list[ModelValues]] = [], []
        for label, rows in self.rows.items():
            kept = self.kept.model(label)
            assert kept is not None
            ours: dict[str, SampleValues] = {}
            theirs: dict[str, SampleValues] = {}
            for number, name in enumerate(drawn.tolist()):
                values, own = rows[name], kept.samples[name]
                order = chance.permutation(len(values["total"]))
                half = len(order) // 2
                for side, chosen, factor in (
                    (ours, order[:half], 1.0),
                    (theirs, order[half : 2 * half], 1 + slower),
                ):
                    medians = {
                        metric: float(np.median(values[metric][chosen])) * _factor(metric, factor)
                        for metric in metrics
                        if metric in values
                    }
                    side[f"s{number}"] = msgspec.structs.replace(
                        own, sequence=f"q{number}", values=medians
                    )
            for side_models, samples in zip(sides, (ours, theirs), strict=True):
                side_models.append(msgspec.structs.replace(kept, samples=samples, load=None))
        header = replace(self.header, id="base")
        return (
            RunValues(header, True, tuple(sides[0])),
            RunValues(replace(header, id="new"), True, tuple(sides[1])),
        )

    def noise(self) -> dict[str, Any]:
        """Per model the spread of a sample's log(NEW / BASE), and how long it waited for a core."""
        chance = np.random.default_rng(0)
        base, new = self.pair(500, 0.0, chance, ("total", "cpu"))
        found: dict[str, Any] = {"id": self.header.id, "scenes": len(self.names()), "models": {}}
        for ours, theirs, kept in zip(base.models, new.models, self.kept.models, strict=True):
            spreads = {
                metric: round(float(np.std(np.log([
                    theirs.samples[name].values[metric] / one.values[metric]
                    for name, one in ours.samples.items()
                ]))), 3)
                for metric in ("total", "cpu")
            }  # fmt: skip
            load = kept.load
            busy = load.busy if load is not None and load.busy else ""
            waited = None if load is None or not load.waited_ms else load.waited_ms / load.wall_ms
            repeats = min(len(one["total"]) for one in self.rows[ours.label].values())
            found["models"][ours.label] = {
                "log_ratio_sd": spreads,
                "repeats": repeats,
                "waited_for_a_core": waited and round(waited, 2),
                "busy": busy,
            }
        return found


def _factor(metric: str, factor: float) -> float:
    if metric == TOKENS:
        return 1.0
    return 1 / factor if metric in FASTER else factor


def simulate(
    pool: Pool, count: int, slower: float, trials: int, metrics: Sequence[str], margin: float
) -> dict[str, int]:
    """The verdicts of whole gates."""
    chance = np.random.default_rng([count, round(1000 * slower), len(metrics)])
    found = dict.fromkeys(VERDICTS, 0)
    for _ in range(trials):
        base, new = pool.pair(count, slower, chance, metrics)
        found[gate.gate(base, new, metrics, margin).verdict] += 1
    return found


Cell = tuple[str, int, str, float, int]  # rows, samples, measure, slow-down, trials


def _cells_of(
    pools: dict[str, Pool], cells: Sequence[Cell], margin: float = gate.MARGIN
) -> list[dict[str, Any]]:
    """The figures of each cell, on two cores."""
    with ProcessPoolExecutor(max_workers=2) as workers:
        tasks = [workers.submit(_cell, pools[cell[0]], cell, margin) for cell in cells]
        return [task.result() for task in tasks]


def _cell(pool: Pool, cell: Cell, margin: float) -> dict[str, Any]:
    rows, count, measure, slower, trials = cell
    found = simulate(pool, count, slower, trials, MEASURES[measure], margin)
    print(rows, count, measure, slower, margin, found, file=sys.stderr, flush=True)
    figures = {
        "rows": rows,
        "samples": count,
        "measure": measure,
        "slower": slower,
        "trials": trials,
    }
    shares = {name: share_interval(found[name], trials) for name in VERDICTS}
    ends = {name: [one.share, one.low, one.high] for name, one in shares.items()}
    return figures | {name: [round(end, 4) for end in some] for name, some in ends.items()}


def real_pairs(runs: Sequence[run_store.Run], metrics: Sequence[str]) -> dict[str, int]:
    """All pairs of runs of the same code: refused because of the load, and the verdicts of a gate
    that does not know the load."""
    values = [values_of(run) for run in runs]
    found = {"pairs": 0, "refused": 0} | dict.fromkeys(VERDICTS, 0)
    for base, new in combinations(values, 2):
        found["pairs"] += 1
        try:
            gate.gate(base, new, metrics)
        except BadInput:
            found["refused"] += 1
        found[gate.gate(_idle(base), _idle(new), metrics).verdict] += 1
    return found


def _idle(values: RunValues) -> RunValues:
    models = tuple(msgspec.structs.replace(one, load=None) for one in values.models)
    return msgspec.structs.replace(values, models=models)


# The choice of the test.
def sign(values: Floats) -> float:
    from scipy.special import bdtrc

    count, negative = len(values), int((values < 0).sum())
    return float(bdtrc(negative - 1, count, 0.5)) if negative else 1.0


def student(values: Floats) -> float:
    from scipy.special import stdtr

    spread = float(values.std(ddof=1)) / math.sqrt(len(values))
    if not spread:
        return 0.0 if values.mean() < 0 else 1.0
    return float(stdtr(len(values) - 1, values.mean() / spread))


TESTS: dict[str, Callable[[Floats], float]] = {
    "signed rank": one_sided_tests.below,
    "sign": sign,
    "Student's t": student,
}


def _tests(pool: Pool) -> list[dict[str, Any]]:
    """Per kind of log ratios, number of sequences and slow-down: verdicts of each test alone."""
    kinds: dict[str, Callable[[np.random.Generator, int], Floats]] = {
        "measured totals": _logs(pool, "total"),
        "measured CPU times": _logs(pool, "cpu"),
        "normal": lambda chance, count: 0.05 * chance.normal(size=count),
        "heavy tails": lambda chance, count: 0.05 * chance.standard_t(2, size=count),
        "skewed": lambda chance, count: 0.05 * (np.exp(chance.normal(size=count)) - 1),
    }
    found = []
    for kind, draw in kinds.items():
        for count in (14, 100):
            for slower in (0.0, gate.MARGIN, 0.1, 0.2):
                found.append(_tested(kind, draw, count, slower))
    return found


def _logs(pool: Pool, metric: str) -> Callable[[np.random.Generator, int], Floats]:
    rows = [np.log(values[metric]) for values in pool.rows["llava-demo"].values()]

    def draw(chance: np.random.Generator, count: int) -> Floats:
        found = np.empty(count)
        for place, row in enumerate(chance.integers(len(rows), size=count)):
            values = chance.permutation(rows[row])
            half = len(values) // 2
            found[place] = np.median(values[:half]) - np.median(values[half : 2 * half])
        return found

    return draw


def _tested(
    kind: str, draw: Callable[[np.random.Generator, int], Floats], count: int, slower: float
) -> dict[str, Any]:
    chance = np.random.default_rng([count, round(1000 * slower)])
    shift = math.log1p(slower) - math.log1p(gate.MARGIN)
    verdicts = {name: [0, 0] for name in TESTS}
    for _ in range(TESTED):
        values = draw(chance, count) + shift
        for name, test in TESTS.items():
            verdicts[name][0] += test(values) <= gate.TAIL
            verdicts[name][1] += test(-values) <= gate.TAIL
    shares = {
        name: {"no worse": fine / TESTED, "worse": bad / TESTED}
        for name, (fine, bad) in verdicts.items()
    }
    return {"kind": kind, "sequences": count, "slower": slower, "trials": TESTED, **shares}


# Tables and chart.
def markdown(figures: dict[str, Any]) -> str:
    parts = [
        "Rows that the pairs are drawn from (standard deviation of log(NEW / BASE) of one sample):",
        _table(
            ("rows", "model", "total", "CPU time", "waited for a core"),
            _noise_rows(figures["rows"]),
        ),
        "Pairs without a difference, in percent (95 % interval). Margin 5 %:",
        _cells(figures["alike"]),
        "The same pairs with a margin of 0 %, where every difference counts:",
        _cells(figures["alike_no_margin"]),
        "Planted slow-downs, in percent:",
        _table(
            ("metrics", "rows", "samples", "slower by", "worse", "undecided", "no worse"),
            [_planted(cell) for cell in figures["planted"]],
        ),
        "Real pairs of runs of the same code, started one after another:",
        _table(
            ("metrics", "pairs", "refused: load", "worse", "undecided", "no worse"),
            [
                [name, *(str(cell[key]) for key in ("pairs", "refused", *_ORDER))]
                for name, cell in figures["real_pairs"].items()
            ],
        ),
        "One metric without adjustment: verdicts of three tests at 2.5 %, in percent "
        "(signed rank / sign / Student's t):",
        _table(
            ("log ratios", "sequences", "slower by", "no worse", "worse"),
            [_test_row(cell) for cell in figures["tests"]],
        ),
    ]
    return "\n\n".join(parts) + "\n"


_ORDER = ("worse", "undecided", "no worse")


def _noise_rows(rows: dict[str, Any]) -> list[list[str]]:
    found = []
    for name, pool in rows.items():
        for label, one in pool["models"].items():
            spread, waited = one["log_ratio_sd"], one["waited_for_a_core"]
            found.append([name, label, f"{spread['total']:.2f}", f"{spread['cpu']:.2f}",
                          "–" if waited is None else f"{100 * waited:.0f} %"])  # fmt: skip
    return found


def _cells(cells: Sequence[dict[str, Any]]) -> str:
    rows = [
        [cell["measure"], cell["rows"], f"{cell['samples']:,}", f"{cell['trials']:,}",
         *(_share(cell[verdict]) for verdict in _ORDER)]
        for cell in cells
    ]  # fmt: skip
    return _table(("metrics", "rows", "samples", "pairs", "worse (alarms)", *_ORDER[1:]), rows)


def _planted(cell: dict[str, Any]) -> list[str]:
    return [cell["measure"], cell["rows"], f"{cell['samples']:,}", f"{100 * cell['slower']:.0f} %",
            *(_share(cell[verdict]) for verdict in _ORDER)]  # fmt: skip


def _share(ends: Sequence[float]) -> str:
    share, low, high = (100 * value for value in ends)
    return f"{share:.1f} ({low:.1f} to {high:.1f})"


def _test_row(cell: dict[str, Any]) -> list[str]:
    def words(verdict: str) -> str:
        return " / ".join(f"{100 * cell[name][verdict]:.1f}" for name in TESTS)

    slower = f"{100 * cell['slower']:.0f} %"
    return [cell["kind"], str(cell["sequences"]), slower, words("no worse"), words("worse")]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def chart(cells: Sequence[dict[str, Any]]) -> None:
    """The share of each verdict over the slow-down, a panel for each measure and verdict."""
    import altair as alt
    import pandas as pd
    import vl_convert

    lines = [
        {
            "slower": 100 * cell["slower"],
            "samples": f"{cell['samples']} of {cell['rows']}",
            "metrics": cell["measure"],
            "verdict": verdict,
            "share": 100 * cell[verdict][0],
        }
        for cell in cells
        for verdict in ("worse", "no worse")
    ]
    drawn = (
        alt.Chart(pd.DataFrame(lines))
        .mark_line(point=True)
        .encode(
            x=alt.X("slower:Q", title="planted slow-down in percent"),
            y=alt.Y("share:Q", title="share of verdicts in percent"),
            color=alt.Color("samples:N", title="samples", sort=None),
            column=alt.Column("metrics:N", title=None, sort=list(MEASURES)),
            row=alt.Row("verdict:N", title=None, sort=["worse", "no worse"]),
        )
        .properties(width=320, height=180)
    )
    (RESULTS / "gate.svg").write_text(vl_convert.vegalite_to_svg(drawn.to_dict()))


if __name__ == "__main__":
    main()
