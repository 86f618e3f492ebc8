"""Published accuracies of other models, from a file of the user: baselines.csv.

One line per figure, with the columns model, task ("all" or empty for all questions), accuracy (in
percent), paper and table; n (questions) and url may be empty or absent.  They stand beside own
figures, always marked as PUBLISHED.  Nothing is computed with them, and no verdict names them.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import BadInput, StageScopeError
from engine.plain_files import read_text
from engine.quoting import quoted, shown
from engine.storage.run_store import Run

PUBLISHED = "published, not run here"
NAME = "baselines.csv"
WHAT = "The file of published figures"
NEEDED, MORE = ("model", "task", "accuracy", "paper", "table"), ("n", "url")
MAX_BYTES, MAX_LINES, MAX_CHARS = 2**20, 1_000, 300
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)


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
        rows = list(csv.reader(io.StringIO(text), strict=True))
    except csv.Error as error:
        raise BadInput(f"{WHAT} {shown(path)} is not CSV ({error}): correct it.") from error
    head = [name.strip().lower() for name in rows[0]] if rows else []
    if lacking := [name for name in NEEDED if head.count(name) != 1]:
        raise BadInput(
            f"{WHAT} {shown(path)} needs the column {lacking[0]!r} once in its first line: its "
            f"columns are {', '.join((*NEEDED, *MORE))}."
        )
    if len(rows) - 1 > MAX_LINES:
        raise BadInput(f"{WHAT} {shown(path)} has more than {MAX_LINES:,} lines: shorten it.")
    lines: dict[Baseline, None] = {}
    problems = []
    for number, row in enumerate(rows[1:], start=2):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        values = dict(zip(head, cells, strict=False))
        columns = f"has {len(row):,} cells instead of {len(head):,}: correct it"
        wrong = columns if len(row) != len(head) else next(_faults(values), "")
        if not wrong and (line := _line(values)) in lines:
            wrong = "is there twice: remove one"
        if wrong:
            problems.append(f"Line {number:,} of {shown(path)} {wrong}.")
        else:
            lines[line] = None
    return Baselines(tuple(lines), tuple(problems))


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


def _faults(values: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with a line, the first fault first."""
    accuracy, n, url = values["accuracy"], values.get("n", ""), values.get("url", "")
    for name in ("model", "paper", "table"):
        if not values[name]:
            yield f"has no {name}: add it"
    if long := next((name for name, text in values.items() if len(text) > MAX_CHARS), None):
        yield f"has a {long} of more than {MAX_CHARS} characters: shorten it"
    percent = float(accuracy) if _NUMBER.fullmatch(accuracy) else math.nan
    if not 0 <= percent <= 100:
        yield f"has the accuracy {quoted(accuracy)}: write percent from 0 to 100, as in 62.5"
    if 0 < percent < 1:
        yield f"has the accuracy {quoted(accuracy)}, below 1 %: write percent, as in 62.5"
    if n and not (n.isascii() and n.isdecimal() and 0 < int(n) < 10**9):
        yield f"has {quoted(n)} for n: write a number of questions, or nothing"
    if url and not url.startswith(("https://", "http://")):
        yield f"has the url {quoted(url)}: begin it with https://"


def _line(values: Mapping[str, str]) -> Baseline:
    texts = {name: values.get(name, "") for name in ("model", "task", "paper", "table", "url")}
    if texts["task"].lower() == "all":
        texts["task"] = ""
    n = values.get("n")
    return Baseline(**texts, accuracy=float(values["accuracy"]) / 100, n=int(n) if n else None)
