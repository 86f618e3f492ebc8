"""Rows to a table: groups, labels, what a damaged row costs, and lenses of equal length."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.analysis import machine_loads, pairs
from engine.analysis.results_table import Lens, frame, labels, look, measured
from engine.report import export
from tests import fabricate

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.loads
def test_people_read_titles_and_other_programs_names(tmp_path: Path) -> None:
    titles = {"ev": "EventGPT", "vl": "Video", "im": "Video"}
    rows = [fabricate.row(name) for name in ("ev", "vl", "im")]
    run = fabricate.run(tmp_path / "r", rows, titles=titles)
    assert labels(frame([run])) == ["ev", "vl", "im"]
    assert labels(frame([run], titled=True)) == ["EventGPT", "Video (vl)", "Video (im)"]
    page = export.write([run], "md")
    assert "Video (vl)" in page and "| EventGPT " in page
    for form in ("json", "csv"):
        assert "Video (vl)" not in export.write([run], form)


EPYC = {"device": "cpu", "processor": "EPYC", "threads": "1"}
H200 = {"device": "cuda:0", "hardware": "H200", "processor": "EPYC", "threads": "1"}


def test_types_of_devices_never_share_a_label(tmp_path: Path) -> None:
    where = {"node": "n1", "actor": "x", "type": "H200", "shares": []}
    rows = [
        fabricate.row(environment=EPYC),
        fabricate.row(sample="s1", environment=H200, where=where),
        fabricate.row(sample="s2", environment=H200, where=where | {"shares": ["device"]}),
        fabricate.failed(sample="s3") | {"where": where},
        fabricate.failed(sample="s4"),
        fabricate.row("other", environment=EPYC),
    ]
    table = frame([fabricate.run(tmp_path / "r", rows)])
    names = ["EPYC, 1 thread", "H200", "H200, shared device", "H200", "no device"]
    assert list(table["label"]) == [*(f"ev · {name}" for name in names), "other · EPYC, 1 thread"]
    assert table["node"].tolist() == ["", "n1", "n1", "n1", "", ""]
    assert set(measured(table)["label"].value_counts()) == {1}
    told = dict(zip(labels(table), [*dict.fromkeys(names[:-1]), "", "EPYC, 1 thread"], strict=True))
    assert {n: one.words for n, one in machine_loads.label_devices(table).items()} == told


def test_models_and_runs_on_different_devices_are_named_with_them(tmp_path: Path) -> None:
    """Where each has one type of device, times of two would stand side by side without a word."""
    slow = [fabricate.row("ev", environment=EPYC), fabricate.failed("ev", "s1")]
    fast = [fabricate.row("vl", environment=H200), fabricate.row("im", environment={})]
    one = fabricate.run(tmp_path / "a", slow + fast)
    assert labels(frame([one])) == ["ev · EPYC, 1 thread", "vl · H200", "im"]
    two = [fabricate.run(tmp_path / n, rows) for n, rows in (("b", slow), ("c", fast))]
    assert labels(frame(two)) == ["ev · EPYC, 1 thread", "vl · H200", "im"]
    assert labels(frame(two[:1])) == ["ev"] and labels(frame(two[1:])) == ["vl", "im"]


def backend(ran: str | None, asked: str = "compiled") -> dict[str, dict[str, str | None]]:
    return {"backend": {"asked": asked, "ran": ran}}


def test_results_of_two_backends_never_share_a_label(tmp_path: Path) -> None:
    rows = [
        fabricate.row() | backend("compiled"),
        fabricate.row(sample="s1", prefill=900.0) | backend("eager"),
        *(one | backend("eager") for one in fabricate.batch(["s2", "s3"])),
        fabricate.failed(sample="s4"),
    ]
    table = frame([fabricate.run(tmp_path / "r", rows)])
    assert list(table["label"]) == ["ev · compiled", "ev", "ev", "ev", "ev · no answer"]
    assert list(table["backend"]) == ["compiled", "eager", "eager", "eager", ""]
    assert set(table["backend_asked"]) == {"compiled", ""}
    assert measured(table).groupby("label")["total_ms"].median().to_dict() == {
        "ev": 922.0, "ev · compiled": 30.0,
    }  # fmt: skip
    for ran, label in (("compiled", "ev · compiled"), ("eager", "ev"), ("generate", "ev")):
        rows = [fabricate.row() | backend(ran), fabricate.failed(sample="s4")]  # the control: one
        assert labels(frame([fabricate.run(tmp_path / ran, rows)])) == [label]


DAMAGES = {"total_ms": "fast", "stages": 7, "prefill": [], "token_ms": [[1, 2]], "truth": "x",
           "backend": 7, "repeat": 1.5, "cold": 0, "batch": 0, "phase": 7,
           "where": 7}  # fmt: skip


def test_a_doubled_row_counts_once_and_a_damaged_one_is_left_out_and_told(tmp_path: Path) -> None:
    odd = [fabricate.row(sample=name) | {name: value} for name, value in DAMAGES.items()]
    run = fabricate.run(tmp_path / "r", [*odd, fabricate.row(), fabricate.row(text="again")])
    assert list(frame([run])["text"]) == ["A road."]
    assert run.problems[0].startswith("12 of 13 lines of results.jsonl cannot be used (line 1: ")
    assert "total_ms" in run.problems[0] and run.problems[0].endswith("left out.")


def test_what_a_row_does_not_know_is_none(tmp_path: Path) -> None:
    row = fabricate.row(verified=None, environment=EPYC) | {"unknown": {"x": [1, "y"]}}
    del row["token_ms"], row["tpot_ms"]
    run = fabricate.run(tmp_path / "r", [row, fabricate.row(sample="s1", environment={})])
    table = frame([run])
    assert np.isnan(table["tpot_ms"][0]) and len(table["token_ms"][0]) == 0
    assert labels(table) == ["ev"]  # one type of device needs no name
    assert run.problems == () and next(run.results())[1] == fabricate.parsed([row])[0]
    table = frame([run], answers=False)
    assert "text" not in table and "token_ms" not in table and table["total_ms"][1] == 30.0
    table = frame([fabricate.run(tmp_path / "none", [])])
    assert table.empty and labels(table) == [] and measured(table).empty


def seen_by(tmp_path: Path, name: Any, rows: list[dict[str, Any]]) -> Lens:
    return look(frame([fabricate.run(tmp_path / "r", rows)]), name)


BOTH = [
    fabricate.row("ev", "s0", gaps=[1, 1]),
    fabricate.row("vl", "s0", gaps=[3, 3, 3, 3]),
    fabricate.row("ev", "s1", gaps=[1] * 6),
    fabricate.row("vl", "s1", gaps=[3]),
]


def test_first_cuts_at_the_shortest_answer_to_each_sample(tmp_path: Path) -> None:
    rows = [*BOTH, fabricate.row("ev", "s2"), fabricate.failed("vl", "s2")]
    seen = seen_by(tmp_path, "first", rows)
    assert "2 samples" in seen.note and "1 result left out" in seen.note
    by_key = seen.table.set_index(["label", "sample"])
    assert by_key["new_tokens"].to_dict() == {
        ("ev", "s0"): 3, ("vl", "s0"): 3, ("ev", "s1"): 2, ("vl", "s1"): 2,
    }  # fmt: skip
    # start 16, prefill 8: the first token at 24; vl's third two gaps of 3 later
    assert by_key.loc[("vl", "s0"), "total_ms"] == 30
    assert by_key.loc[("vl", "s0"), "steps_ms"] == 6
    assert by_key.loc[("vl", "s0"), "decode_ms"] == 14
    assert by_key.loc[("vl", "s0"), "tpot_ms"] == 3
    assert by_key.loc[("vl", "s0"), "unaccounted_ms"] == 0
    assert by_key.loc[("ev", "s1"), "total_ms"] == 25
    assert list(by_key.loc[("ev", "s1"), "token_ms"]) == [24, 25]
    found = pairs.split(seen.table, "ev", "vl")  # the number of tokens explains nothing
    assert found is not None
    tokens = next(part for part in found.parts if part.name == pairs.TOKENS)
    assert tokens.factor == pytest.approx(1) and tokens.ms == pytest.approx(0)
    single = [fabricate.row("ev", gaps=[]), fabricate.row("vl")]
    table = seen_by(tmp_path / "single", "first", single).table
    assert np.isnan(table["tpot_ms"]).all() and np.isnan(table["tokens_per_s"]).all()
    assert list(table["total_ms"]) == [24, 24]


def test_a_cut_answer_keeps_what_the_cache_saved_it(tmp_path: Path) -> None:
    rows = [
        fabricate.row("ev", gaps=[1]),
        fabricate.row("vl", gaps=[3] * 4, cached_ms=100.0, forced=True),
    ]
    seen = seen_by(tmp_path, "first", rows).table.set_index("label")  # a forced answer is cut too
    assert seen["new_tokens"].to_dict() == {"ev": 2, "vl": 2}
    assert seen["total_ms"].to_dict() == {"ev": 25, "vl": 27}
    assert seen["uncached_total_ms"].to_dict() == {"ev": 25, "vl": 27 + 90}
