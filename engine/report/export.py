"""The formats of a report; CSV and Parquet have one line per result.  Texts that a spreadsheet
would read as a formula get an apostrophe in front."""

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

from engine.analysis.results_table import frame
from engine.quoting import printable
from engine.report import bundle, drawers
from engine.report.document import document
from engine.report.report_figures import Findings, certificate_text
from engine.storage import run_header
from engine.storage.run_store import Run

_LEFT_OUT = ["title", "bare", "cluster", "number", "offset", "token_ms", "truth"]
# What a spreadsheet may skip before the sign of a formula, and the signs, also of full width.
_FORMULA = re.compile(r"[\s\x00-\x1f\ufeff\u200b]*[=+\-@\uff1d\uff0b\uff0d\uff20]")
_JSON = {  # key -> field of Findings
    **{name: name for name in ("counts", "figures", "comparisons", "attributes")},
    **{name: name for name in ("robustness", "overlaps", "devices")},
    "throughput": "throughputs",
    "speedups": "splits",
    "choice_accuracy": "choices",
    "choice_comparisons": "choice_pairs",
    "data_flow": "passages",
}


def write(runs: Sequence[Run], form: str) -> str:
    """A report of at least one run as "md", "html", "csv" or "json"."""
    if form == "md":
        return drawers.markdown(document(Findings(runs)))
    if form == "html":
        return bundle.page(runs)
    if form == "csv":
        # Every text is quoted: a carriage return outside quotes would begin a line.
        table = frame(runs).drop(columns=_LEFT_OUT).map(_cell)
        return table.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    found = Findings(runs, titled=False)
    failures = found.failures.items()
    content = {
        "runs": [
            {
                **run_header.as_json(run.header),
                "state": run.state,
                "journal": list(run.journal),
                "problems": list(run.problems),
            }
            for run in found.runs
        ],
        **{key: getattr(found, name) for key, name in _JSON.items()},
        "lenses": found.through_lenses[0],
        "verified": {
            label: {certificate_text(standing): n for standing, n in standings.items()}
            for label, standings in found.verified.items()
        },
        "failures": [{"label": label, "reason": why, "n": n} for (label, why), n in failures],
    }
    return drawers.as_json(content) + "\n"


def data(runs: Sequence[Run], form: str) -> bytes:
    """The same as a file's content; also as Parquet, with texts as they were answered, but for what
    is no character."""
    if form != "parquet":
        return write(runs, form).encode(errors="replace")
    table, out = frame(runs).drop(columns=_LEFT_OUT), io.BytesIO()
    for name in table.select_dtypes("object"):
        table[name] = [
            value.encode(errors="replace").decode() if isinstance(value, str) else value
            for value in table[name]
        ]
    table.to_parquet(out, index=False)
    return out.getvalue()


def _cell(value: Any) -> Any:
    """ "" for a missing value; of a text no control characters, and no beginning of a formula."""
    if value is None or value != value:
        return ""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if _FORMULA.match(value) else text
