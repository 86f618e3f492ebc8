"""summary.json: the counts and figures that a finished run leaves for other programs.

Boundary: reads the rows of a run; reads no texts and no token times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from engine.storage import run_header, run_store
from engine.storage.run_store import Writer


def summary(
    writer: Writer, planned: int, results: int, failed: int, given_up: Mapping[str, str]
) -> dict[str, Any]:
    """Counts of the run, and each model's counts and figures; `given_up`: model -> reason."""
    from engine.analysis import model_summary, results_table, throughput

    table = results_table.frame([run_store.read(writer.folder)], answers=False)
    return {
        "finished": run_header.now(),
        "planned": planned,
        "results": results,
        "failed": failed,
        "given_up": dict(given_up),
        "counts": [vars(count) for count in model_summary.counts(table)],
        "figures": [vars(figure) for figure in model_summary.figures(table)],
        "throughput": [asdict(one) for one in throughput.throughputs(table)],
    }
