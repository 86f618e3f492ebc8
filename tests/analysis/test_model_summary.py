"""Figures against values worked out by hand; sources and groups never mixed."""

from pathlib import Path
from typing import Any

import pytest

from engine.analysis import model_summary, pairs, results_table
from engine.analysis.model_summary import Figure, Throughput, find
from engine.analysis.results_table import frame, measured
from engine.report import drawers, report_figures
from engine.report.document import document, summary, together
from engine.report.export import write
from tests import fabricate


def figures(tmp_path: Path, rows: list[dict[str, Any]]) -> tuple[Figure, ...]:
    return model_summary.figures(frame([fabricate.run(tmp_path / "r", rows)]))


def loads(values: list[float], **more: Any) -> list[dict[str, Any]]:
    return [
        fabricate.row(sample=f"s{i}", stages={"load": v, "preprocess": 2, "vision": 10}, **more)
        for i, v in enumerate(values)
    ]


def test_a_figure_by_hand(tmp_path: Path) -> None:
    found = find(figures(tmp_path, loads([1, 2, 3, 4, 100])), "ev", "load")
    assert found is not None
    assert (found.n, found.median, found.mean, found.mad) == (5, 3, 22, 1)
    assert found.sd == pytest.approx(((21**2 + 20**2 + 19**2 + 18**2 + 78**2) / 4) ** 0.5)
    assert (found.low, found.high, found.p90, found.p99) == (1, 100, None, None)


@pytest.mark.parametrize(
    ("n", "p90", "p99"),
    [(1, False, False), (9, False, False), (10, True, False), (100, True, True)],
)
def test_percentiles_need_runs_enough(tmp_path: Path, n: int, p90: bool, p99: bool) -> None:
    found = find(figures(tmp_path, loads([float(i + 1) for i in range(n)])), "ev", "load")
    assert found is not None and (found.sd is None) == (n == 1)
    assert (found.p90 is not None, found.p99 is not None) == (p90, p99)


def test_warm_up_cold_and_pauses_stay_out_of_the_figures(tmp_path: Path) -> None:
    rows = [
        *loads([1, 1, 1]),
        fabricate.row(sample="s0", phase="warmup", stages={"load": 900, "vision": 900}),
        fabricate.row(sample="s8", cold=True, stages={"load": 900, "vision": 900}),
        fabricate.row(sample="s9", paused_ms=5, stages={"load": 900, "vision": 900}),
    ]
    found = figures(tmp_path, rows)
    load = find(found, "ev", "load")
    assert load is not None and (load.n, load.mean) == (3, 1)
    for group in ("warm-up", "cold", "after a pause"):
        (apart,) = (one for one in found if (one.metric, one.group) == ("load", group))
        assert (apart.n, apart.mean) == (1, 900)


def test_cached_and_measured_never_meet(tmp_path: Path) -> None:
    rows = [
        fabricate.row(sample="s0"),
        fabricate.row(sample="s1", stages={"load": 4, "preprocess": 2, "vision": 1}, cached_ms=10),
    ]
    found = figures(tmp_path, rows)
    by_source = {(f.metric, f.source): f for f in found}
    assert by_source["vision", "measured"].mean == 10 and by_source["vision", "cached"].mean == 1
    assert by_source["total", "measured"].mean == 30 and by_source["total", "cached"].mean == 21
    assert by_source["ttft", "measured"].n == by_source["ttft", "cached"].n == 1
    assert by_source["uncached_total", "cached"].mean == 30
    assert by_source["tpot", "measured"].n == 2 and ("tpot", "cached") not in by_source
    vision = find(found, "ev", "vision")
    assert vision is not None and vision.source == "measured"


def test_a_failure_is_no_zero(tmp_path: Path) -> None:
    rows = [
        fabricate.row(phase="warmup"),
        fabricate.row(cold=True),
        fabricate.row(sample="s1", stop="length"),
        fabricate.row(sample="s2", forced=True),
        fabricate.row(sample="s3", cached_ms=10.0, text="Trees."),
        fabricate.failed(sample="s4"),
        fabricate.failed("vl"),
    ]
    table = frame([fabricate.run(tmp_path / "r", rows)])
    found = model_summary.figures(table)
    assert {f.label for f in found} == {"ev"}
    load = find(found, "ev", "load")
    assert load is not None and (load.n, load.low) == (3, 4)
    ev, vl = model_summary.counts(table)
    assert (ev.results, ev.answered, ev.failed, vl.answered, vl.failed) == (5, 4, 1, 0, 1)
    assert (ev.cold, ev.warm_up, ev.cached) == (1, 1, 1)
    assert (ev.capped, ev.texts, ev.samples) == (1, 2, 4)


def grouped() -> list[dict[str, Any]]:
    """Two batches of three and one of two, 100, 200 and 50 ms."""
    return [
        *fabricate.batch(["s0", "s1", "s2"], ms=100.0),
        *fabricate.batch(["s3", "s4", "s5"], ms=200.0),
        *fabricate.batch(["s6", "s7"], ms=50.0),
    ]


def mixed() -> list[dict[str, Any]]:
    return [*grouped(), *(fabricate.row("vl", f"s{i}") for i in range(8))]


def throughputs(folder: Path, rows: list[dict[str, Any]]) -> tuple[Throughput, ...]:
    return model_summary.throughputs(frame([fabricate.run(folder / "r", rows)]))


def test_a_batch_that_was_cut_counts_the_results_that_were_kept(tmp_path: Path) -> None:
    """And cached features are a figure of their own."""
    cached = fabricate.batch(["s8", "s9", "sa"], ms=20.0, cached=3)
    rows = [*grouped()[:2], *grouped()[3:], *cached]  # one of three was not written
    two, three, other = throughputs(tmp_path, rows)
    assert (three.n, three.samples, three.tokens, two.samples) == (2, 5, 20, 2)
    assert three.samples_per_s.high == 30  # all three were answered in that time
    assert (three.cached, other.batch, other.cached, other.n) == (0, 3, 3, 1)


def test_what_ran_alone_is_not_the_headline_of_a_batched_run(tmp_path: Path) -> None:
    run = fabricate.run(tmp_path / "r", [*grouped(), fabricate.row(sample="s8")])
    table = frame([run])
    (sentence,) = model_summary.alone(table).values()
    assert sentence.startswith("ev: 1 of 9 answers ran alone")
    told = drawers.terminal(summary(report_figures.Findings((), table)))
    assert told.index("batch of 3") < told.index("ev: 1 of 9 answers ran alone")
    assert told.index("ev: 1 of 9 answers ran alone") < told.index("total")
    assert "1 of 9 answers ran alone" in str(document(report_figures.Findings([run])))
    cold = [*grouped(), fabricate.row(sample="s8", cold=True), *fabricate.pair(3)[1::2]]
    run = fabricate.run(tmp_path / "cold", cold)
    assert model_summary.alone(frame([run])) == {}  # none has a figure


@pytest.mark.parametrize("more", [{"cold": True}, {"paused_ms": 5.0}, {"phase": "warmup"}])
def test_what_stays_out_of_means_stays_out_here(tmp_path: Path, more: dict[str, Any]) -> None:
    found = throughputs(tmp_path, [*grouped(), *fabricate.batch(["s8", "s9"], ms=9000.0, **more)])
    assert [one.n for one in found] == [1, 2] and max(one.ms.high for one in found) == 200


def test_a_batch_counts_once_in_each_run(tmp_path: Path) -> None:
    """Two runs that happen to name a batch alike."""
    first = fabricate.run(tmp_path / "a", grouped())
    second = fabricate.run(tmp_path / "b", grouped())
    found = model_summary.throughputs(frame([first, second]))
    assert [one.n for one in found] == [1, 2] * 2 and len({one.label for one in found}) == 2


def test_batches_are_in_no_figure_of_single_samples(tmp_path: Path) -> None:
    table = frame([fabricate.run(tmp_path / "r", mixed())])
    assert set(measured(table)["label"]) == {"vl"} and len(measured(table)) == 8
    figures = model_summary.figures(table)
    assert {one.label for one in figures if one.group == "measured"} == {"vl"}
    apart = {one.metric for one in figures if one.label == "ev"}
    assert apart == {"new_tokens", "context_tokens"}  # what is a sample's own
    assert [count.batched for count in model_summary.counts(table)] == [8, 0]
    assert pairs.split(table, "ev", "vl") is None
    found = pairs.compare(table, "ev", "vl", "total")
    assert (found.verdict, found.n) == ("unknown", 0)
    assert found.reason == "ev answered in batches, where samples are not timed separately"
    assert model_summary.batched(table) == ["ev"]
    assert list(together(report_figures.Findings((), table)))
    for name in results_table.LENSES:
        assert set(results_table.look(table, name).table["label"]) <= {"vl"}


def test_a_batch_taken_for_single_samples_would_be_in_them(tmp_path: Path) -> None:
    """The control: the same rows without the word batch, their times filled in."""
    rows = [row | {"batch": 1, "total_ms": row["batch_ms"]} for row in grouped()]
    table = frame([fabricate.run(tmp_path / "r", rows)])
    assert model_summary.find(model_summary.figures(table), "ev", "total") is not None
    assert model_summary.throughputs(table) == () and model_summary.batched(table) == []
    assert list(together(report_figures.Findings((), table))) == []


@pytest.mark.loads
def test_a_report_keeps_batches_apart_and_says_so(tmp_path: Path) -> None:
    text = "".join(write([fabricate.run(tmp_path / "r", mixed())], "md"))
    assert "Throughput of batches" in text and model_summary.APART in text
    assert model_summary.MEANING in text and "or in a batch" in text and "samples at once" in text
    assert "ev answered in batches" in text
    lonely = report_figures.Findings([fabricate.run(tmp_path / "only", grouped())])
    assert document(lonely)
    terminal = drawers.terminal(summary(lonely))
    assert "batch of 3" in terminal and "new tokens/s" in terminal and "TTFT" not in terminal
