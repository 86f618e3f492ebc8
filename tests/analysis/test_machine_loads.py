"""What a busy machine does to a comparison: no verdict, and the figures of both sides."""

from pathlib import Path
from typing import Any

from engine.analysis import machine_loads, pairs
from engine.analysis.results_table import frame
from engine.report import drawers
from engine.report.comparison_part import sentence
from engine.report.document import summary
from engine.report.report_figures import Findings
from tests import fabricate

QUIET = {"others": 0.1, "waited_ms": 0.0}
LOADED = {"others": 1.4, "waited_ms": 40.0}
N = 12


def load(began_s: float, **more: Any) -> dict[str, Any]:
    """A tenth of a second on two cores, by a run of one thread."""
    base = {"began_s": began_s, "wall_ms": 100.0, "cpu_ms": 90.0, "cores": 2, "threads": 1}
    return base | {"waited_ms": None, "others": None, "steal": 0.0} | more


def table(
    tmp_path: Path, ev: dict[str, Any] | None, vl: dict[str, Any] | None, apart_s: float = 1.0
) -> Any:
    """12 samples on which vl takes twice as long; each model's load, and how far apart they ran."""
    rows = fabricate.pair(N)
    for place, row in enumerate(rows):
        own, later = (ev, 0.0) if row["model"] == "ev" else (vl, apart_s)
        row["environment"] = {"device": "cpu"}
        row["machine_load"] = None if own is None else load(place + later, **own)
    return frame([fabricate.run(tmp_path / "r", rows)])


def test_a_quiet_machine_leaves_the_verdict(tmp_path: Path) -> None:
    lines = table(tmp_path, QUIET, QUIET)
    assert pairs.compare(lines, "ev", "vl", "total").verdict == "less"
    assert machine_loads.couple(lines, "ev", "vl")[1] == ""
    assert list(machine_loads.remarks(lines)) == [] and set(lines["cpu_ms"]) == {90.0}
    lines = table(tmp_path / "apart", QUIET, QUIET, apart_s=900.0)
    assert pairs.compare(lines, "ev", "vl", "total").verdict == "less"
    assert (
        "did not run in turns but one after the other" in machine_loads.couple(lines, "ev", "vl")[1]
    )


def test_blocks_at_different_loads_get_no_verdict_and_the_figures_say_why(tmp_path: Path) -> None:
    lines = table(tmp_path, LOADED, QUIET)
    found = pairs.compare(lines, "ev", "vl", "total")
    assert found.verdict == "unknown" and found.ratio is None and found.difference is None
    assert "ev ran while others used 1.4 of 2 cores" in found.reason
    assert "vl while others used 0.1 of 2 cores" in found.reason
    assert "no conclusion" in sentence(found)
    assert pairs.compare(lines, "ev", "vl", "new_tokens").verdict == "equal"  # no time
    split = pairs.split(lines, "ev", "vl")
    assert split is not None and not pairs.supported(split, found.verdict)
    report = Findings((), lines)
    told = drawers.terminal(summary(report))
    assert "ev ran on a busy machine (others used 1.4 of 2 cores" in told
    loads = report.loads
    assert loads["ev"] and loads["ev"].busy and loads["ev"].others == 1.4
    assert loads["vl"] and loads["vl"].busy == ""


def test_one_busy_machine_for_both_gets_no_verdict_either(tmp_path: Path) -> None:
    more = LOADED | {"others": 1.9, "waited_ms": 80.0}
    for number, other in enumerate((LOADED, more)):
        lines = table(tmp_path / str(number), LOADED, other)
        found = pairs.compare(lines, "ev", "vl", "tokens_per_s")
        assert found.verdict == "unknown" and "the machine was busy" in found.reason


def test_a_load_that_is_not_known_is_said_and_changes_nothing(tmp_path: Path) -> None:
    lines = table(tmp_path, None, QUIET)
    assert pairs.compare(lines, "ev", "vl", "total").verdict == "less"
    assert "Load unknown: ev ran" in machine_loads.couple(lines, "ev", "vl")[1]
    assert machine_loads.by_label(lines)["ev"] is None


def test_a_row_whose_load_was_changed_by_hand_is_left_out(tmp_path: Path) -> None:
    for odd in (1e300, None, "many"):
        lines = table(tmp_path / str(odd), QUIET | {"cores": odd}, QUIET)
        assert set(lines["model"]) == {"vl"} and "ev" not in machine_loads.by_label(lines)


def test_rows_without_a_load_have_no_cpu_time(tmp_path: Path) -> None:
    old = Findings([fabricate.run(tmp_path / "old", fabricate.pair(3))])
    assert old.table["cpu_ms"].isna().all() and old.table["load_others"].isna().all()
    assert not any(figure.metric == "cpu" for figure in old.figures)
