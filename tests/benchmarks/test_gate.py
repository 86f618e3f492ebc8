"""benchmarks/gate.py: pairs from rows, planted slow-downs, tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import gate as benchmark
from benchmarks.gate import Pool, sign, simulate, student
from tests import fabricate


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    """10 samples with 4 repeats whose times vary by a few percent."""
    chance = np.random.default_rng(0)
    rows = [
        fabricate.row("ev", f"s{n}", repeat=repeat, prefill=8.0 * (1 + 0.05 * chance.random()))
        for n in range(10)
        for repeat in range(4)
    ]
    return Pool.of(fabricate.run(tmp_path / "run", rows))


def test_pairs_without_a_difference_and_with_a_planted_one(pool: Pool) -> None:
    assert simulate(pool, 20, 0.0, 5, ("total",), 0.05)["no worse"] == 5
    assert simulate(pool, 20, 0.5, 5, ("total",), 0.05)["worse"] == 5


def test_base_and_new_share_no_repeat(pool: Pool) -> None:
    base, new = pool.pair(10, 0.0, np.random.default_rng(1), ("total",))
    ours, theirs = (side.models[0].samples["s0"].values["total"] for side in (base, new))
    assert ours != theirs
    assert pool.noise()["models"]["ev"]["repeats"] == 4


def test_the_other_tests_know_a_side() -> None:
    values = np.array([-2.0, -1.0, -1.5, -0.5, -1.0, -2.5, -0.1, -1.2])
    for test in (sign, student):
        assert test(values) < 0.01 < 0.99 < test(-values)
    assert sign(values) == 1 / 2**8


def test_tables_have_a_line_per_cell() -> None:
    cell = {"rows": "r", "samples": 14, "measure": "CPU time", "slower": 0.1, "trials": 10}
    cell |= {verdict: [0.5, 0.2, 0.8] for verdict in benchmark.VERDICTS}
    tested = {"kind": "normal", "sequences": 14, "slower": 0.1}
    tested |= {name: {"no worse": 0.1, "worse": 0.2} for name in benchmark.TESTS}
    figures = {
        "rows": {}, "alike": [cell], "alike_no_margin": [], "planted": [cell],
        "real_pairs": {"CPU time": {"pairs": 1, "refused": 1, "worse": 0, "undecided": 1,
                                    "no worse": 0}},
        "tests": [tested],
    }  # fmt: skip
    text = benchmark.markdown(figures)
    assert text.count("50.0 (20.0 to 80.0)") == 6 and "| normal | 14 | 10 % |" in text
