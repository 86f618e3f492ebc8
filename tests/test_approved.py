"""What reports, gates, forecasts, published files and bars say of made-up runs, whole and to the
last letter, is what they said before (tests/approved): a change is seen, not whether it is right.

`python -m tests.test_approved` writes the files anew; read their differences before you keep them.
"""

import json
import re
import tempfile
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from engine.analysis import gate, robustness, run_planning
from engine.analysis.compared import ComparedModel
from engine.published.audit import audit
from engine.published.claims import published_report
from engine.published.read import file_summary
from engine.report import accuracy_part, answer_part, drawers, export, gate_text
from engine.report.blocks import Block, ChartBlock
from engine.report.document import document, summary
from engine.report.report_figures import Findings
from engine.storage import run_header
from engine.storage.run_store import Run
from tests import fabricate
from tests.analysis.test_robustness import sweep
from tests.published.read import synthetic
from tests.ui.answers import CACHED, result
from ui.compare import run_bars

APPROVED = Path(__file__).with_name("approved")
SCENE = {"truth": {"weather": "rain", "motion": "braking"}, "prompt": "What is it?"}


def plain(value: Any) -> Any:
    """Numbers with seven digits, as processors round the last ones differently."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


def as_lines(value: Any) -> str:
    return json.dumps(plain(value), indent=1, ensure_ascii=False, default=str)


def drawn(blocks: Iterable[Block]) -> str:
    """A document as Markdown, each chart as its words and its specification."""
    parts = []
    for block in blocks:
        parts.append(drawers.markdown([block]))
        chart = block.draw() if isinstance(block, ChartBlock) else ""
        if not isinstance(chart, str):
            spec = chart.to_dict()
            del spec["config"], spec["$schema"]
            parts.append(json.dumps(plain(spec), ensure_ascii=False))
    return "\n".join(parts)


def pair(folder: Path, name: str = "a", slow: float = 2.0) -> Run:
    """Seven samples of two models: a warm-up, an answer from the cache, a failure, a scene."""
    rows = [fabricate.row(one, "s0", phase="warmup", cold=True) for one in ("ev", "vl")]
    rows += fabricate.pair(7, slow)
    rows[4] |= {**SCENE, "text": "It rains. The car is braking."}
    rows[5] |= {**SCENE, "text": "It is sunny.", "off_script": True}
    rows[8] |= fabricate.row("ev", "s3", cached_ms=12.0, stages={**fabricate.STAGES, "vision": 1.0})
    rows.append(fabricate.failed("vl", "s8", "Out of memory."))
    return fabricate.run(folder / name, rows, titles={"ev": "EventGPT", "vl": "Video"})


def turn(folder: Path, slow: float) -> Run:
    return fabricate.run(folder / f"{slow}", fabricate.pair(7, slow), together="both")


def exam(folder: Path) -> Run:
    return fabricate.run(folder / "exam", fabricate.exam(24))


def batches(folder: Path) -> Run:
    samples = [f"s{number}" for number in range(6)]
    rows = fabricate.batch(samples[:3]) + fabricate.batch(samples[3:], cached=1, ms=80.0)
    return fabricate.run(folder / "batches", rows + [fabricate.row("vl", one) for one in samples])


def gated(base: Run, new: Run, metrics: str) -> str:
    names = gate.metric_names(metrics)
    report = gate.gate(gate.values_of(base), gate.values_of(new), names, 0.05)
    return drawn(gate_text.blocks(report, chart=True)) + as_lines(gate_text.as_json(report))


def forecast(folder: Path) -> str:
    run = pair(folder)
    earlier = run_planning.measure(run, run.header.plan.models)
    sequences = dict.fromkeys(run.header.plan.samples, "drive")
    found = run_planning.forecast(run.header.plan, sequences, earlier, 2)
    facts = [*run_planning.facts(found, earlier, found=True), run_planning.short(found, earlier)]
    return "\n".join(facts)


def swept(folder: Path) -> str:
    found = robustness.find(sweep(folder, 0, 3, 6))
    assert found is not None
    return drawn(accuracy_part.sweep_parts(found))


def published(name: str) -> str:
    file = synthetic.read(synthetic.EVERY[name], "file.json")
    return "\n".join([
        as_lines(file_summary.as_dict(file, audit(file))),
        drawn(published_report.blocks([file])),
        file_summary.frame(file).to_csv(index=False, float_format="%.7g"),
        as_lines([vars(bar) for bar in file_summary.bars(file)]),
    ])  # fmt: skip


def bars() -> str:
    models = [
        ComparedModel("One <b>", "llava", (result(),)),
        ComparedModel("Two", "eventgpt", (result("two", CACHED), result("two", tokens=5))),
    ]
    rows = [run_bars.finished(one) for one in models]
    parts = [run_bars.html(rows), run_bars.words(rows), drawn([run_bars.table(models)])]
    return "\n".join(parts)


CASES: dict[str, Callable[[Path], str]] = {
    "report": lambda f: drawn(document(Findings([pair(f)]))),
    "summary": lambda f: drawers.terminal(summary(Findings([pair(f)]))),
    "report-of-two": lambda f: drawn(document(Findings([pair(f), pair(f, "b", 1.5)]))),
    "report-of-questions": lambda f: drawn(document(Findings([exam(f)]))),
    "report-of-batches": lambda f: drawn(document(Findings([batches(f)]))),
    "csv": lambda f: export.write([pair(f), batches(f)], "csv"),
    "json": lambda f: as_lines(json.loads(export.write([pair(f), exam(f)], "json"))),
    "replay": lambda f: as_lines(
        answer_part.answers([(row.model, row) for _, row in pair(f).results()][:6])
    ),
    "gate": lambda f: gated(turn(f, 2.0), turn(f, 2.4), "total,tokens_per_s,tokens,answers"),
    "gate-of-questions": lambda f: gated(
        exam(f), fabricate.run(f / "new", fabricate.exam(24, wrong=3)), "accuracy"
    ),
    "forecast": forecast,
    "sweep": swept,
    "bars": lambda _: bars(),
    **{f"published-{name}": lambda _, name=name: published(name) for name in synthetic.EVERY},
}


def made(name: str, folder: Path) -> str:
    """The text of a case, without what differs each time: the places, names and times of runs."""
    ids = (f"20260101-000000-{number:06}" for number in count(1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_header, "new_id", lambda: next(ids))
        text = CASES[name](folder).replace(str(folder), "PLACE")
    text = re.sub(r"\b20(2[6-9]|[3-9]\d)-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\+00:00)?", "TIME", text)
    text = re.sub(r"data-[0-9a-f]{32}", "data", text)
    return text.rstrip() + "\n"


@pytest.mark.loads
@pytest.mark.parametrize("name", CASES)
def test_it_says_what_it_said_before(name: str, tmp_path: Path) -> None:
    file = APPROVED / f"{name}.txt"
    assert made(name, tmp_path).split("\n") == file.read_text(encoding="utf-8").split("\n")


if __name__ == "__main__":
    APPROVED.mkdir(exist_ok=True)
    for case in CASES:
        with tempfile.TemporaryDirectory() as place:
            (APPROVED / f"{case}.txt").write_text(made(case, Path(place)), encoding="utf-8")
