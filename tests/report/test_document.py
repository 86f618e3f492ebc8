"""What a report says: only what its runs show."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.analysis import machine_loads, results_table
from engine.report import document, drawers, export
from engine.report.report_figures import Findings
from engine.storage import run_store
from tests import fabricate

pytestmark = [pytest.mark.loads, pytest.mark.usefixtures("undrawn")]
EPYC = {"device": "cpu", "processor": "EPYC"}
H200 = {"device": "cuda:0", "hardware": "H200"}
PLACE = {"node": "n1", "host": "a", "address": "10.0.0.1", "actor": "x", "shares": []}


def text(tmp_path: Path, rows: list[dict[str, Any]], **more: Any) -> str:
    run = fabricate.run(tmp_path / "r", rows, **more)
    return export.write([run], "md")


def test_answers_to_untrained_questions_are_said(tmp_path: Path) -> None:
    rows = [fabricate.row("ev", f"s{n}", off_script=n < 2) for n in range(3)]
    told = text(tmp_path, rows)
    assert "2 of 3 answers of ev are to questions that this demo model was not trained on" in told
    assert "not trained on" not in text(tmp_path / "b", [fabricate.row("ev", off_script=None)])
    lines = drawers.terminal(document.summary(Findings([fabricate.run(tmp_path / "c", rows)])))
    assert "2 of 3 answers of ev are to questions" in lines


def test_an_undecided_difference_says_how_many_samples_it_needs(tmp_path: Path) -> None:
    rows = [fabricate.row("ev", f"s{n}", prefill=20.0 + n % 4) for n in range(8)]
    rows += [fabricate.row("vl", f"s{n}", prefill=20.0 + (n + 3) % 5) for n in range(8)]
    told = text(tmp_path, rows)
    assert "undecided; about" in told
    assert "more samples, each of a new sequence, would decide it" in told
    assert "No conclusion about mean total time" in told and "as fast as" not in told


def test_another_metric_decides_nothing_about_total_time(tmp_path: Path) -> None:
    """ev's prefill is shorter in each sample, its steps now shorter and now longer."""
    rows = [fabricate.row("ev", f"s{n}", prefill=8.0, gaps=[6.0]) for n in range(12)]
    rows += [
        fabricate.row("vl", f"s{n}", prefill=12.0, gaps=[1.0 + 7 * (n % 2)]) for n in range(12)
    ]
    told = text(tmp_path, rows)
    assert "TTFT: ev has 0.8" in told and ": less." in told and "total: ev has" in told
    assert "No conclusion about mean total time" in told and "as fast as" not in told


def test_a_run_on_a_cluster_says_what_answered(tmp_path: Path) -> None:
    place = {"environment": H200, "where": PLACE}
    rows = [fabricate.row(sample=f"s{i}", **place) for i in range(3)]
    rows += [fabricate.row(sample="s3", environment=H200, where=PLACE | {"shares": ["device"]})]
    rows += [fabricate.row(sample="s4", environment=EPYC)]
    told = text(tmp_path, rows)
    assert "| H200 | 1 | 1 | 3 |" in told and "| H200, shared device | 1 | 1 | 1 |" in told
    assert "| EPYC | this one | this one | 1 |" in told
    assert "ev · H200, shared device" in told  # figures of their own
    assert "The devices that answered" not in text(tmp_path / "b", [fabricate.row()])


def on(rows: list[dict[str, Any]], model: str, **where: Any) -> list[dict[str, Any]]:
    """The model's rows as those of a worker."""
    place = {"environment": EPYC, "where": PLACE | where}
    return [row | place for row in rows if row["model"] == model]


@pytest.mark.parametrize(
    ("where", "other", "said"),
    [
        ({"shares": ["cores"]}, {}, "ev had shared cores; vl had a device for itself"),
        ({}, {"environment": H200},
         "Different devices: ev ran on EPYC; vl ran on H200. So a difference in time may come from "
         "the device, not only"),
        ({"shares": ["device"]}, {"environment": H200},
         "Different devices: ev ran on EPYC, shared device; vl ran on H200."),
        ({"host": "b"}, {}, "Different machines: ev ran on b 10.0.0.1; vl ran on a 10.0.0.1."),
        ({}, {}, ""),
        ({}, {"where": None}, ""),
    ],
)  # fmt: skip
def test_a_pair_names_different_devices_sharing_and_machines(
    tmp_path: Path, where: dict[str, Any], other: dict[str, Any], said: str
) -> None:
    rows = fabricate.pair(2)
    mixed = on(rows, "ev", **where) + [row | other for row in on(rows, "vl")]
    table = Findings([fabricate.run(tmp_path / "r", mixed)]).table
    told, _ = machine_loads.couple(table, *results_table.labels(table))
    assert told.startswith(said) or said in told
    assert bool(told) == bool(said)


def test_who_answered_on_a_cluster_and_what_ran_elsewhere_is_said(tmp_path: Path) -> None:
    rows = fabricate.pair(6)
    run = fabricate.run(tmp_path / "r", on(rows, "ev") + [r for r in rows if r["model"] == "vl"])
    notes: list[dict[str, Any]] = [
        {"event": "worker ended", "text": "Had none.", "tasks": []},
        {"event": "worker ended", "text": "Had one.", "tasks": [{"sample": "s0"}]},
        *({"event": "elsewhere", "text": f"Node {n % 7} lacks it."} for n in range(9)),
    ]
    told = export.write([replace(run, journal=(*run.journal, *notes))], "md")
    assert "| Ray, 1 worker, for 6 results; the run's own process for 6 |" in told
    assert "each worker runs one model after another" in told and "sequential:" not in told
    assert "A worker stopped during work;" in told and "2 workers stopped" not in told
    assert told.count("lacks it.") == 5 and "The journal has 2 more such reasons." in told
    alone = text(tmp_path / "alone", rows)
    assert "sequential: one model after another" in alone and "answered by" not in alone


def test_a_run_whose_device_was_always_shared_says_so(tmp_path: Path) -> None:
    rows = fabricate.pair(12)
    shared = on(rows, "ev", shares=["device"]) + on(rows, "vl", shares=["device"])
    told = text(tmp_path, shared)
    summary = drawers.terminal(document.summary(Findings([run_store.read(tmp_path / "r")])))
    for words in (told, summary):
        assert "ev · shared device" in words and "Shared device: another worker" in words
        assert "Different devices" not in words and "Shared cores" not in words


def test_a_report_names_digests_settings_and_libraries(tmp_path: Path) -> None:
    told = text(tmp_path, [fabricate.row(verified="abc123"), fabricate.row("vl")])
    for words in ("digest-of-ev", "digest-of-vl", "digest-of-data", "digest-of-code",
                  "certificate abc123. (n 1)", "unverified", "cache off",
                  "auto token steps", "5 x 3 x 8 x 8", "3.8 KiB",
                  "preprocess -&gt; vision", "torch"):  # fmt: skip
        assert words in told, words
    assert "/data/one" not in told  # whose folder it was is nobody's business


def test_another_backend_than_requested_is_named(tmp_path: Path) -> None:
    rows = [
        fabricate.row(sample=f"s{n}", backend={"asked": "compiled", "ran": ran})
        for n, ran in enumerate(("eager", "eager", "compiled"))
    ]
    told = text(tmp_path / "a", rows)
    assert "requested the backend compiled; of 3 answers of ev eager decoded 2, compiled" in told
    assert "| eager (n 2), compiled (n 1) |" in told and "ev · compiled" in told
    told = text(tmp_path / "b", rows[:2])
    assert "of 2 answers of ev eager decoded 2" in told and "warm-up included | eager |" in told
    told = text(tmp_path / "c", rows[2:])  # the control: what was asked for ran
    assert "requested the backend" not in told and "warm-up included | compiled |" in told


def test_failures_are_counted_and_are_no_figures(tmp_path: Path) -> None:
    rows = [fabricate.failed(sample=f"s{i}", error="It broke.") for i in range(3)]
    told = text(tmp_path, rows)
    assert "| ev | It broke. | 3 |" in told and "No result was measured" in told
    assert "ev gave no answer" in told


def test_resumes_pauses_and_given_up_models_are_named(tmp_path: Path) -> None:
    rows = [fabricate.row(), fabricate.row(sample="s1", paused_ms=9.0)]
    run = fabricate.run(tmp_path / "r", rows, finished=False)
    paused = {"event": "paused", "text": "lent", "ms": 9.0}
    notes: list[dict[str, Any]] = [
        {"event": "resumed", "text": "forced although the engine's code or libraries are others"},
        *[paused, paused],
        {"event": "given up", "text": "vl was given up: 3 failures in a row", "model": "vl"},
    ]
    told = export.write([replace(run, journal=(*run.journal, *notes))], "md")
    for words in ("resumed once", "paused 2 times for other work", "forced although the engine",
                  "vl was given up", "not finished", "after a pause"):  # fmt: skip
        assert words in told, words


def test_cached_times_are_named_as_read_times(tmp_path: Path) -> None:
    told = text(tmp_path, [fabricate.row(cached_ms=10.0)])
    assert "read from the cache: time of the read" in told and "## Comparison" not in told


def test_an_empty_run_says_that_it_is_empty(tmp_path: Path) -> None:
    told = text(tmp_path, [])
    assert "No result was measured" in told and "No result recorded" in told


def test_the_first_page_names_the_fastest_only_if_the_intervals_do(tmp_path: Path) -> None:
    told = text(tmp_path / "a", fabricate.pair(12))
    first = told[: told.index("- [Results](#results)")]
    assert "What ran: 24 results of ev, vl on 12 samples." in first
    assert "Verdict: ev was fastest; the paired intervals exclude equality." in first
    assert "The longest stage, of the median total: ev: decode, " in first
    assert "new tokens" in first and "0 of 24 results failed" in first
    assert "answers, warm-up included." in first  # unlike the results
    few = text(tmp_path / "b", fabricate.pair(3))
    assert "ev was fastest" not in few and "no model was fastest beyond doubt. ev and vl: an" in few
    slow = [one | {"model": "a"} for one in fabricate.pair(3, 9.0) if one["model"] == "vl"]
    rows = [*slow, *fabricate.pair(3)]  # the slowest one comes first
    told = text(tmp_path / "three", rows)
    assert "no model was fastest beyond doubt. ev and vl: an" in told
    cold = [fabricate.row("ev", cold=True), fabricate.failed("vl")]
    assert "total: only cold runs" in text(tmp_path / "cold", cold[:1])
    for number, rows in enumerate((cold, cold[1:])):  # a failure is not a cold run
        assert "total: not measured" in text(tmp_path / f"failed{number}", rows)
    alone = text(tmp_path / "c", [fabricate.row("ev")])
    assert "none, because only ev has measured results" in alone
