"""The kept figures of all benchmarks as Markdown, a table for each.

`python -m benchmarks.table` reads benchmarks/results/*.json and shows those that have rows: of
ratios, of single figures, or of growth; those of accelerators come last.  `--write` puts the text
into benchmarks/results/speed-tables.md.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import RESULTS

PAGE = RESULTS / "speed-tables.md"
HEAD = (
    "# Measured speed\n\nWritten by `python -m benchmarks.table --write`. "
    "[Speed](../../docs/speed.md) says how to read it.\n"
)
ORDER = ("video", "events", "event_readers", "stages", "decoding", "drafting",
         "batches", "families", "served", "app", "growth")  # fmt: skip
NONE = (
    "## Accelerators\n\nNo accelerator has been measured yet. "
    "`python -m benchmarks.accelerator --out FOLDER` measures one, "
    "and with `--keep` its figures come here ([how](../../docs/speed.md)).\n"
)
COMMANDS = {"app_against": "benchmarks.app --against FOLDER"}
COLUMNS = {  # by the field that tells the kind of a row
    "ratio": ("what", "against", "ratio", "range", "target"),
    "median": ("what", "figure", "range", "limit"),
    "points_ms": ("what", "grows with", "measured", "per 1,000", "off the line"),
}


def main() -> None:
    text = everything(RESULTS)
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(text, encoding="utf-8")
    print(text, end="")


def everything(folder: Path) -> str:
    found = list(sections(folder))
    last = [] if list(folder.glob("accelerator-*.json")) else [NONE]
    return "\n".join([HEAD, *found, *last])


def sections(folder: Path) -> Iterator[str]:
    """A section per file with rows: the processor, then a table per kind of row."""
    names = {path.stem: path for path in sorted(folder.glob("*.json"))}
    order = [name for name in ORDER if name in names]
    others = [name for name in names if name not in order]
    for name in [*order, *sorted(others, key=lambda name: name.startswith("accelerator-"))]:
        kept = json.loads(names[name].read_text(encoding="utf-8"))
        rows = kept.get("rows")
        if not isinstance(rows, list):
            continue
        where = kept["machine"]
        command = COMMANDS.get(name, f"benchmarks.{name.partition('-')[0]}")
        yield (
            f"## {name.replace('_', ' ').partition('-')[0].capitalize()}\n\n`python -m {command}`, "
            f"{kept['measured']}, {where['processor']}, {where['cores']} cores.\n"
        )
        if unequal := kept.get("unequal"):
            yield f"Not equal: {', '.join(f'`{place}`' for place in unequal)}.\n"
        for kind, columns in COLUMNS.items():
            if cells := [_cells(row) for row in rows if _kind(row) == kind]:
                yield _table(columns, cells)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    cells = ([text.replace("|", "\\|").replace("\n", " ") for text in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def _kind(row: dict[str, Any]) -> str:
    return next((kind for kind in COLUMNS if kind in row), "")


def _cells(row: dict[str, Any]) -> list[str]:
    kind = _kind(row)
    if kind == "points_ms":
        points = ", ".join(f"{amount:,}: {ms:,.1f} ms" for amount, ms in row["points_ms"])
        share = f"{100 * row['departure_share']:.1f} % of the largest"
        return [row["what"], row["of"], points, f"{row['per_1000_ms']:,.1f} ms", share]
    among = f"{row['min']:g} to {row['max']:g}, n {row['n']}" if row.get("n", 1) > 1 else ""
    if kind == "ratio":
        target = f"{row['target']:g}x" if "target" in row else ""
        return [row["what"], row["against"], f"{row['ratio']:g}x", among, target]
    most = f"{row['limit']:g} {row['unit']}" if "limit" in row else ""
    return [row["what"], f"{row['median']:g} {row['unit']}", among, most]


if __name__ == "__main__":
    main()
