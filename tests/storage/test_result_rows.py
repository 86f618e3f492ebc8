"""A line of results.jsonl is one type: stored runs open, figures stay, every stage is in it."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.storage import run_store
from engine.storage.result_rows import ResultRow, Standing
from engine.storage.run_store import Run
from engine.types import Batch, Span
from tests import fabricate
from tests.ui.answers import result

pytestmark = pytest.mark.loads

ROOT = Path(__file__).resolve().parents[2]
# Two demo models and three samples: batches and single answers, warm-ups, features computed and
# read from the cache, and a sample without its video.
STORED = Path(__file__).parent / "data" / "stored_run"


@pytest.fixture
def stored(tmp_path: Path) -> Run:
    """A copy: opening a run makes its lock."""
    return run_store.read(Path(shutil.copytree(STORED, tmp_path / "run")))


def pairs(text: str | bytes) -> Any:
    """JSON with the order of its keys."""
    return json.loads(text, object_pairs_hook=list)


def test_a_stored_run_opens_and_its_rows_are_written_as_they_were(stored: Run) -> None:
    lines = (stored.folder / run_store.RESULTS).read_bytes().splitlines()
    rows = [row for _, row in stored.results()]
    assert stored.state == "finished" and stored.problems == () and len(rows) == 10
    lines = [re.sub(rb',"runnable":[\d.]+', b"", line) for line in lines]  # written no more
    assert [pairs(json.dumps(row.as_dict())) for row in rows] == list(map(pairs, lines))
    assert {row.batch for row in rows} == {1, 2} and sum(row.error is not None for row in rows) == 1
    assert {row.phase for row in rows} == {"warmup", "measured"} and any(row.cached for row in rows)


def test_a_row_names_only_the_certificate_that_covers_it() -> None:
    covered, near = Standing("verified", "c" * 64), Standing("not covered", "c" * 64, ("sampling",))
    assert ResultRow.from_result(result(), covered).verified == "c" * 64
    assert ResultRow.from_result(result(), near).verified is None


def test_a_span_of_no_stage_is_refused() -> None:
    """It would be a part of the unaccounted time."""
    spans = (*result().spans, Span("rerank", 200.0, 5.0))
    with pytest.raises(ValueError, match="rerank is no stage: add it to StageName"):
        replace(result(), spans=spans)
    with pytest.raises(ValueError, match="rerank"):
        Batch("b", 2, spans[-1:], 10.0, 4)


# In a process of its own, where a fifth stage is listed before anything else is imported.
FIFTH = """
import engine.types as types
types.STAGES += ("rerank",)
from engine import palette
palette.STAGE_COLOURS = {**palette.STAGE_COLOURS, "rerank": "#000000"}
from dataclasses import asdict, replace
from pathlib import Path
import sys
from engine.analysis import model_summary
from engine.analysis.results_table import frame
from engine.benchmark.run_progress import live_figures
from engine.report import charts
from engine.storage.plan import Task
from engine.storage.result_rows import ResultRow
from engine.types import Span
from engine.verify import stage_times
from tests import fabricate
from tests.ui.answers import result

first = result()
five = replace(first, spans=(*first.spans, Span("rerank", first.total_ms, 5.0)),
               total_ms=first.total_ms + 5.0)
assert five.unaccounted_ms == first.unaccounted_ms
assert stage_times._columns(five)["rerank"] == 5.0
answer = ResultRow.from_result(five)
assert answer.spans["rerank"].ms == 5.0 == answer.as_dict()["stages"]["rerank"]["ms"]
row = answer.placed(Task("m", "s", 0, "measured"), 1, 0.0, "", None)
run = fabricate.run(Path(sys.argv[1]), [row.as_dict()])
assert next(run.results())[1].spans["rerank"].ms == 5.0
assert list(frame([run])["rerank_ms"]) == [5.0]
assert "rerank" in {figure.metric for figure in model_summary.figures(frame([run]))}
assert live_figures(row)["rerank"] == 5.0
assert "rerank 5.00 ms" in charts.stage_words({"m": {"rerank": 5.0}})
print("seen everywhere")
"""


@pytest.mark.slow
def test_a_fifth_stage_is_seen_everywhere(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FIFTH, str(tmp_path / "run")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "seen everywhere", done.stderr


GPU = {"device": "cuda:0", "hardware": "H200", "processor": "EPYC", "threads": "2"}


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"environment": GPU}, "H200"),
        ({"environment": GPU, "where": {"shares": []}}, "H200"),
        ({"environment": GPU, "where": {"shares": ["device", "cores"]}},
         "H200, shared device and cores"),
        ({"where": {"type": "H200"}}, "H200"),
        ({}, ""),
        ({"where": {"shares": ["cores"]}}, "shared cores"),
    ],
)  # fmt: skip
def test_a_shared_device_is_another_type(row: dict[str, Any], name: str) -> None:
    assert ResultRow.parse(fabricate.row() | row).device == name
