"""The formats of a report, each as pieces of text.

Boundary: runs in, text out.  CSV has one line per result; texts that a spreadsheet would read as a
formula get an apostrophe in front.  Token ids and times are in the run's results.jsonl.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from engine.analysis.results_table import frame
from engine.report import drawers, explanation_part, perfetto_trace, seen_part
from engine.report.document import document, title
from engine.report.named_baselines import PUBLISHED, Baselines
from engine.report.report_figures import gather
from engine.storage import run_header
from engine.storage.run_store import Run

_LEFT_OUT = ("title", "number", "offset", "token_ms", "truth")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write(runs: Sequence[Run], form: str, baselines: Baselines | None = None) -> Iterator[str]:
    """A report of at least one run in one of FORMATS, piece by piece.

    baselines: published figures beside the runs'; None: those beside the runs' datasets.
    """
    return FORMATS[form](runs, baselines)


def _markdown(runs: Sequence[Run], baselines: Baselines | None) -> Iterator[str]:
    yield drawers.markdown(document(gather(runs, baselines=baselines)))


def _html(runs: Sequence[Run], baselines: Baselines | None) -> Iterator[str]:
    found = gather(runs, baselines=baselines)
    parts = (explanation_part.explained(run, len(found.runs) > 1) for run in found.runs)
    rests = (block for part in parts for block in part)
    yield drawers.html(title(found), [*document(found), *rests, *seen_part.seen(found.runs[0])])


def _csv(runs: Sequence[Run], _baselines: Baselines | None) -> Iterator[str]:
    table = frame(runs)
    columns = [name for name in table.columns if name not in _LEFT_OUT]
    yield _line(columns)
    for values in table[columns].itertuples(index=False):
        yield _line([_cell(value) for value in values])


def _line(values: Sequence[Any]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(values)
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    """ "" for a missing value; no text that begins a formula."""
    if value is None or value != value:
        return ""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def _json(runs: Sequence[Run], baselines: Baselines | None) -> Iterator[str]:
    found = gather(runs, titled=False, baselines=baselines)
    yield (
        json.dumps(
            {
                "runs": [_run(run) for run in found.runs],
                "counts": [asdict(one) for one in found.counts],
                "figures": [asdict(one) for one in found.figures],
                "throughput": [asdict(one) for one in found.throughputs],
                "comparisons": [asdict(one) for one in found.comparisons],
                "speedups": [asdict(one) for one in found.splits],
                "lenses": [asdict(one) for one in found.lenses],
                "attributes": [asdict(one) for one in found.attributes],
                "robustness": found.robustness and asdict(found.robustness),
                "overlaps": [asdict(one) for one in found.overlaps],
                "choice_accuracy": [asdict(one) for one in found.choices],
                "choice_comparisons": [asdict(one) for one in found.choice_pairs],
                "published": [asdict(one) | {"status": PUBLISHED} for one in found.baselines.lines],
                "data_flow": [asdict(one) for one in found.passages],
                "verified": found.verified,
                "devices": found.devices,
                "failures": [
                    {"label": label, "reason": reason, "n": n}
                    for (label, reason), n in found.failures.items()
                ],
            },
            indent=1,
            allow_nan=False,
        )
        + "\n"
    )


def _trace(runs: Sequence[Run], _baselines: Baselines | None) -> Iterator[str]:
    return perfetto_trace.pieces(runs)


def _run(run: Run) -> Mapping[str, Any]:
    return {
        **run_header.as_json(run.header),
        "state": run.state,
        "journal": list(run.journal),
        "problems": list(run.problems),
    }


FORMATS: dict[str, Callable[[Sequence[Run], Baselines | None], Iterator[str]]] = {
    "md": _markdown,
    "html": _html,
    "csv": _csv,
    "json": _json,
    "trace": _trace,
}
