"""CSV and traces: every result, and nothing that a program would take for more than data."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from engine.report import export, perfetto_trace
from tests import fabricate


def test_one_line_per_result_and_every_figure(tmp_path: Path) -> None:
    rows = [
        fabricate.row(text='a "b", c\nd', backend={"asked": "auto", "ran": "eager"}),
        fabricate.failed(sample="s1"),
        fabricate.row(phase="warmup"),
    ]
    run = fabricate.run(tmp_path / "r", rows)
    lines = list(csv.DictReader(io.StringIO("".join(export.write([run], "csv")))))
    assert [line["group"] for line in lines] == ["measured", "measured", "warm-up"]
    assert lines[0]["text"] == 'a "b", c\nd' and float(lines[0]["total_ms"]) == 30.0
    assert lines[1]["total_ms"] == "" and lines[1]["error"] == "It broke."
    assert (lines[0]["backend"], lines[0]["backend_asked"]) == ("eager", "auto")
    assert lines[0]["vision_source"] == "measured" and lines[0]["label"] == "ev"


FORMULAS = ["=1+1", "+1", "-cmd", "@x", "\t=1", " =1", "\n=1", "\r=1", "\uff1d1+1", "\ufeff=1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_text_is_a_formula(tmp_path: Path, text: str) -> None:
    run = fabricate.run(tmp_path / "r", [fabricate.row(text=text)])
    (line,) = csv.DictReader(io.StringIO("".join(export.write([run], "csv")), newline=""))
    assert line["text"] == f"'{text}"


def test_a_carriage_return_begins_no_line(tmp_path: Path) -> None:
    run = fabricate.run(tmp_path / "r", [fabricate.row(prompt="Why?\r=1+1|cmd")])
    made = "".join(export.write([run], "csv"))
    assert '"Why?\r=1+1|cmd"' in made
    (line,) = csv.DictReader(io.StringIO(made, newline=""))
    assert line["prompt"] == "Why?\r=1+1|cmd"


def events(tmp_path: Path, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    run = fabricate.run(tmp_path / "r", rows)
    value = json.loads("".join(export.write([run], "trace")))
    assert set(value) == {"displayTimeUnit", "traceEvents"}
    return list(value["traceEvents"])


def test_four_stages_and_every_token_in_microseconds(tmp_path: Path) -> None:
    found = [e for e in events(tmp_path, [fabricate.row()]) if e["ph"] == "X"]
    names = [event["name"] for event in found]
    assert names == ["s0", "load", "preprocess", "vision", "decode", "prefill", "token steps",
                     "token 2", "token 3", "token 4"]  # fmt: skip
    by_name = {event["name"]: event for event in found}
    assert (by_name["vision"]["ts"], by_name["vision"]["dur"]) == (6000.0, 10000.0)
    assert by_name["token 2"]["args"] == {"index": 1, "token_id": 101}
    assert by_name["s0"]["dur"] == 30000.0
    assert all({"name", "ph", "ts", "dur", "pid", "tid", "args"} <= set(e) for e in found)


def test_events_nest_and_results_do_not_overlap(tmp_path: Path) -> None:
    """Each event lies inside the one it follows, or after it: what a viewer needs to stack them."""
    rows = [
        fabricate.row(model, f"s{i}", prefill=8.0 + i / 3, gaps=[1 / 3, 2 / 7, 1e-7])
        for model in ("ev", "vl")
        for i in range(5)
    ]
    open_: dict[int, list[float]] = {}
    for event in events(tmp_path, rows):
        if event["ph"] != "X":
            continue
        start, end = event["ts"], event["ts"] + event["dur"]
        stack = open_.setdefault(event["pid"], [])
        while stack and stack[-1] <= start + 1e-6:
            stack.pop()
        assert not stack or end <= stack[-1] + 1e-6, event
        stack.append(end)


def test_a_process_per_model_and_failures_are_moments(tmp_path: Path) -> None:
    found = events(
        tmp_path, [fabricate.row("ev"), fabricate.row("vl"), fabricate.failed("vl", "s1")]
    )
    names = {e["pid"]: e["args"]["name"] for e in found if e["name"] == "process_name"}
    assert [name.split(" ")[0] for name in names.values()] == ["ev", "vl"]
    (moment,) = [e for e in found if e["ph"] == "i"]
    assert moment["args"]["error"] == "It broke." and "dur" not in moment


@pytest.mark.slow
def test_a_long_trace_needs_no_memory(tmp_path: Path) -> None:
    run = fabricate.run(tmp_path / "r", [fabricate.row(sample=f"s{i}") for i in range(400)])
    tracemalloc.start()
    size = sum(len(piece) for piece in perfetto_trace.pieces([run]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size > 400_000 and peak < size / 2
