"""All stored figures as Markdown: what, against what, how much, how to repeat it.

`python -m benchmarks.table` reads every JSON file in benchmarks/results.  A file takes part by
rows (its own, or those that ratios.py makes of it), each with what, against, ratio and repeat, with
low, high and n where pairs were measured, and target where there is one (a ratio of 1 is as fast as
what it stands against, more is faster); and by "lines", as growth.py writes them.  Accelerators
have a section of their own (accelerator/page.py).  `--write` puts what it prints into
docs/speed.md, below the line that says so.

Boundary: reads, prints and writes that one page; measures nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.accelerator import page
from benchmarks.machine import RESULTS
from benchmarks.ratios import rows

# The order of the table; a file with another name comes after these.
ORDER = (
    *("video", "events", "event_readers", "preprocessing", "stages", "decoding", "again"),
    *("drafting", "batches", "families", "app", "growth"),
)
ROW = ("what", "against", "ratio", "repeat")
RATIOS = ("what", "against", "ratio", "range", "target", "how to repeat it")
GROWTH = ("what", "grows with", "measured", "per 1,000", "off the line", "how to repeat it")
LINE = ("what", "of", "points_ms", "per_1000_ms", "departure_share", "repeat")


PAGE = Path(__file__).resolve().parents[1] / "docs" / "speed.md"
BELOW = "<!-- Below this line: python -m benchmarks.table -->\n"


def main() -> None:
    text = everything(RESULTS)
    if sys.argv[1:] == ["--write"]:
        head = PAGE.read_text(encoding="utf-8").partition(BELOW)[0]
        PAGE.write_text(f"{head}{BELOW}\n{text}", encoding="utf-8")
    print(text, end="")


def everything(folder: Path) -> str:
    """The tables of CPUs, then the section of accelerators."""
    kept = read(folder)
    text = f"{markdown(_of(kept, False))}\n## Accelerators\n\n{page.sections(folder)}"
    ratios = markdown(_of(kept, True))
    return f"{text}\n{ratios}" if ratios else text


def _of(kept: dict[str, dict[str, Any]], accelerators: bool) -> dict[str, dict[str, Any]]:
    return {name: one for name, one in kept.items() if _is_accelerator(name) == accelerators}


def _is_accelerator(name: str) -> bool:
    return name.startswith("accelerator-")


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """The stored files by name, in the table's order."""
    names = {file.stem: file for file in sorted(folder.glob("*.json"))}
    order = [*(name for name in ORDER if name in names), *(n for n in names if n not in ORDER)]
    return {name: json.loads(names[name].read_text(encoding="utf-8")) for name in order}


def markdown(kept: dict[str, dict[str, Any]]) -> str:
    """The table of ratios, then that of growth; SystemExit naming a file that lacks a field."""
    ratios = [_ratio(row) for row in _parts(kept, "rows", ROW)]
    growth = [_growth(row) for row in _parts(kept, "lines", LINE)]
    tables = [page.table(RATIOS, ratios)] if ratios else []
    tables += [page.table(GROWTH, growth)] if growth else []
    return "\n".join(tables)


def _parts(
    kept: dict[str, dict[str, Any]], part: str, fields: Sequence[str]
) -> Iterable[dict[str, Any]]:
    for name, content in kept.items():
        for row in rows(name, content) if part == "rows" else content.get(part, []):
            if lacking := next((field for field in fields if field not in row), None):
                sys.exit(f"{name}.json: one of its {part} has no {lacking!r}: measure it again.")
            yield row


def _ratio(row: dict[str, Any]) -> list[str]:
    target = row.get("target")
    wanted = "" if target is None else f"{target:g}x"
    spread = f"{row['low']:g} to {row['high']:g}, n {row['n']}" if "n" in row else ""
    return [row["what"], row["against"], f"{row['ratio']:g}x", spread, wanted, f"`{row['repeat']}`"]


def _growth(row: dict[str, Any]) -> list[str]:
    points = [f"{amount:,}: {ms:,.1f} ms" for amount, ms in row["points_ms"]]
    off = f"{100 * row['departure_share']:.1f} % of the largest"
    per = f"{row['per_1000_ms']:,.1f} ms"
    return [row["what"], row["of"], ", ".join(points), per, off, f"`{row['repeat']}`"]


if __name__ == "__main__":
    main()
