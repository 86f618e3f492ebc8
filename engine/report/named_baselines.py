"""Published accuracies of other models, from a file of the user: baselines.csv.

One line per figure, with the columns of RULES; n (questions) and url may be absent, and the task
"all" or "" means all questions.  They stand beside own figures, always marked as PUBLISHED.
Nothing is computed with them, and no verdict names them.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import BadInput, StageScopeError
from engine.plain_files import read_text
from engine.quoting import quoted, shown
from engine.storage.run_store import Run

PUBLISHED = "published, not run here"
NAME = "baselines.csv"
WHAT = "The file of published figures"
MAX_BYTES, MAX_LINES = 2**20, 1_000
RULES = {  # column -> what a cell must match, and in words
    "model": (r".{1,300}", "a name of at most 300 characters"),
    "task": (r".{0,300}", "a name of at most 300 characters, or all"),
    "accuracy": (r"0(\.0*)?|[1-9]\d?(\.\d*)?|100(\.0*)?", "percent from 1 to 100 as in 62.5, or 0"),
    "paper": (r".{1,300}", "a text of at most 300 characters"),
    "table": (r".{1,300}", "a text of at most 300 characters"),
    "n": (r"([1-9]\d{0,8})?", "a number of questions, or nothing"),
    "url": (r"(https?://.{1,290})?", "an address that begins with https://, or nothing"),
}
NEEDED = [*RULES][:5]


@dataclass(frozen=True)
class Baseline:
    """One published figure.  accuracy: from 0 to 1; task: "" for all questions."""

    model: str
    task: str
    accuracy: float
    n: int | None
    paper: str
    table: str
    url: str = ""

    @property
    def percent(self) -> str:
        """With the digits of the paper."""
        return f"{100 * self.accuracy:.6g}%"

    @property
    def source(self) -> str:
        return f"{self.paper}, {self.table}"


@dataclass(frozen=True)
class Baselines:
    """The good lines of a file, and a sentence for each bad one."""

    lines: tuple[Baseline, ...] = ()
    problems: tuple[str, ...] = ()


def read(path: Path) -> Baselines:
    """The lines of a file; BadInput if it is no such file."""
    text = read_text(path, MAX_BYTES, WHAT).removeprefix("\ufeff")
    try:
        head, *rows = list(csv.reader(io.StringIO(text), strict=True)) or [[]]
    except csv.Error as error:
        raise BadInput(f"{WHAT} {shown(path)} is not CSV ({error}): correct it.") from error
    head = [name.strip().lower() for name in head]
    if len(rows) > MAX_LINES or any(head.count(name) != 1 for name in NEEDED):
        raise BadInput(
            f"{WHAT} {shown(path)} needs the columns {', '.join(NEEDED)} once each in its first "
            f"line (n and url may follow), and at most {MAX_LINES:,} lines more: correct it."
        )
    lines: dict[Baseline, None] = {}
    problems = []
    for number, row in enumerate(rows, start=2):
        cells = [cell.strip() for cell in row]
        values = dict.fromkeys(RULES, "") | dict(zip(head, cells, strict=False))
        wrong = [
            f"has {quoted(values[name])} for {name} instead of {words}"
            for name, (rule, words) in RULES.items()
            if not re.fullmatch(rule, values[name], re.ASCII)
        ]
        if len(row) != len(head):
            wrong = [f"has {len(row):,} cells instead of {len(head):,}"]
        elif not wrong and (line := _line(values)) in lines:
            wrong = ["is there twice"]
        if any(cells) and wrong:
            problems.append(f"Line {number:,} of {shown(path)} {wrong[0]}: correct it.")
        elif any(cells):
            lines[line] = None
    return Baselines(tuple(lines), tuple(problems))


def _line(values: dict[str, str]) -> Baseline:
    given = {name: values[name] for name in ("model", "paper", "table", "url")}
    task = "" if values["task"].lower() == "all" else values["task"]
    n = int(values["n"]) if values["n"] else None
    return Baseline(**given, task=task, accuracy=float(values["accuracy"]) / 100, n=n)


def of_runs(runs: Sequence[Run]) -> Baselines:
    """Those of the files NAME in the roots of the runs' datasets, where they can be reached."""
    lines: dict[Baseline, None] = {}
    problems: list[str] = []
    for root in dict.fromkeys(run.header.dataset.root for run in runs):
        path = Path(root) / NAME
        try:
            if root and path.is_file():
                known = read(path)
                lines |= dict.fromkeys(known.lines)
                problems += known.problems
        except StageScopeError as error:
            problems.append(str(error))
        except (OSError, ValueError):  # a root that is not reachable, or no path at all
            continue
    return Baselines(tuple(lines), tuple(problems))
