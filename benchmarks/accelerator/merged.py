"""One file of all parts of a measurement: figures as they are, and the rows of the table.

Boundary: reads the parts' files in a folder and writes one; measures nothing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.accelerator.prepare import NAMES
from engine.errors import BadInput
from engine.quoting import shown

FILE = "accelerator.json"
# way -> times generate() of the same process
TARGETS = {"eager": 2.0, "compiled": 4.0}
MBU = 0.6  # at batch 1
GROWS = 1.1  # a larger batch pays if it gives this much more
LABELS = {family: label for family, (_, label) in NAMES.items()}
NAMES_OF_VERDICTS = ("failed", "skipped", "tie", "unresolved")
EQUALITIES = (
    *("equal", "next_run_equal", "equal_to_generate"),
    *("all_at_once", "refused", "planted_fault_noticed"),
)
Row = dict[str, Any]


def write(folder: Path) -> Path:
    """The folder's accelerator.json, from whatever parts have figures."""
    machine.write(folder / FILE, merged(folder), quiet=True)
    return folder / FILE


def keep(folder: Path) -> Path:
    """Copies a finished folder's figures into benchmarks/results; only of models at full size."""
    if not (folder / FILE).is_file():
        raise BadInput(f"{shown(folder)} holds no {FILE}: measure into it first.")
    found = _read(folder / FILE)
    if not found["full_size"]:
        raise BadInput(f"{shown(folder)} is of small models: measure without --layers, --hidden.")
    name = re.sub(r"[^a-z0-9]+", "-", found["device"].lower()).strip("-")
    target = machine.RESULTS / f"accelerator-{name}.json"
    target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return target


def merged(folder: Path) -> dict[str, Any]:
    """All figures: what is long (certificates, single rows) is reduced to what a reader needs."""
    kept = {name: _read(folder / f"{name}.json") for name in _names(folder)}
    sizes = [one for name, one in kept.items() if name.startswith("decoding-")]
    families = {name: one for size in sizes for name, one in size["families"].items()}
    found: dict[str, Any] = {
        "device": next((one["device"] for one in sizes), "unknown"),
        "environment": next((one["environment"] for one in sizes), {}),
        "full_size": bool(sizes) and all(one["full_size"] for one in sizes),
        "copy_gb_per_s": next((one["copy_gb_per_s"] for one in sizes), None),
        "parts": _read(folder / "parts.json"),
        "families": families,
        "compile_s": _compile(kept),
        "app": kept.get("app", {}).get("sections", {}),
        "verify": {name: verified(one) for name, one in kept.items() if "verdicts" in one},
        "bench": {name: _bench(one) for name, one in kept.items() if "throughput" in one},
        "vision": {key: kept.get("vision", {}).get(key) for key in ("dtype", "ways", "clock")},
    }
    found["unequal"] = sorted(_unequal(found))
    return found | {"rows": list(rows(found))}


def _names(folder: Path) -> list[str]:
    others = ("parts.json", FILE)
    return [file.stem for file in sorted(folder.glob("*.json")) if file.name not in others]


def _read(file: Path) -> dict[str, Any]:
    content = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    assert isinstance(content, dict)
    return content


def _compile(kept: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Seconds to prepare the step: with an empty folder, and with what that left on disk."""
    parts = {"cold": "compile-fills-disk", "from_disk": "compile-from-disk"}
    return {
        name: kept[part]["families"]["eventgpt"]["compile_s"]
        for name, part in parts.items()
        if part in kept
    }


def verified(certificate: dict[str, Any]) -> dict[str, Any]:
    """A verification: per model whether it is verified, and every verdict that is no plain pass."""
    verdicts = certificate["verdicts"]
    return {
        "models": {one["name"]: one["verified"] for one in certificate["models"]},
        "outcomes": Counter(one["outcome"] for one in verdicts),
        "said": [
            f"{one['model']}: {one['outcome']}: {one['title']}: {one['sentence']}"
            for one in verdicts
            if one["outcome"] in NAMES_OF_VERDICTS
        ],
        "measured": {
            f"{one['model']}: {one['title']}": one["sentence"]
            for one in verdicts
            if one["check"] in ("stage3", "observer")
        },
    }


def _bench(report: dict[str, Any]) -> dict[str, Any]:
    shown = ("total", "ttft", "tpot", "tokens_per_s", "vision", "decode")
    return {
        "counts": report["counts"],
        "throughput": report["throughput"],
        "figures": [one for one in report["figures"] if one["metric"] in shown],
    }


def _unequal(found: Any, place: str = "") -> Iterator[str]:
    """Where an answer differs from what it must equal, or a planted fault passed."""
    if not isinstance(found, dict):
        return
    for key, value in found.items():
        if key in EQUALITIES and value is False:
            yield f"{place}{key}"
        yield from _unequal(value, f"{place}{key}.")


# rows of benchmarks.table


def rows(found: dict[str, Any]) -> Iterator[Row]:
    """Ratios with their targets: decoding, bandwidth, batches, the tower's other ways."""
    for family, one in found["families"].items():
        yield from _decoding(LABELS[family], one)
    for name, way in ((found["vision"] or {}).get("ways") or {}).items():
        if "ratio" in way and name != "as it is":
            rounding = "" if way["within_rounding"] else ", NOT equal within rounding"
            what = f"8 pictures encoded, {name}{rounding}"
            yield _row(what, "as it is", way["ratio"])


def _decoding(label: str, one: dict[str, Any]) -> Iterator[Row]:
    for way, target in TARGETS.items():
        if way not in one["ways"]:
            continue
        found = one["ways"][way]
        ran = "" if found["ran"] == way else f" (it ran {found['ran']})"
        tokens = one["new_tokens"]
        yield _row(f"{label}: {tokens} tokens, {way}{ran}", "generate()", found["ratio"], target)
        yield {
            "what": f"{label}: bandwidth used, {way}{ran}: {100 * found['mbu']['of_copy']:.0f} %",
            "against": f"{100 * MBU:.0f} % of a copy's",
            "ratio": round(found["mbu"]["of_copy"] / MBU, 2),
            "target": 1.0,
        }
    yield from _batches(label, one.get("batches", []))


def _batches(label: str, batches: list[dict[str, Any]]) -> Iterator[Row]:
    """The largest batch that still pays, against one by one."""
    sizes = [one for one in batches if "tokens_per_s" in one]
    if len(sizes) < 2:
        return
    best = sizes[0]
    for one in sizes[1:]:
        if one["tokens_per_s"]["median"] > GROWS * best["tokens_per_s"]["median"]:
            best = one
    rates = ", ".join(f"{one['size']}: {one['tokens_per_s']['median']:.0f}" for one in sizes)
    ratio = best["tokens_per_s"]["median"] / sizes[0]["tokens_per_s"]["median"]
    what = f"{label}: batch of {best['size']}, tokens a second over stages 3 and 4 ({rates})"
    yield {"what": what, "against": f"batch of {sizes[0]['size']}", "ratio": round(ratio, 2)}


def _row(what: str, against: str, ratio: dict[str, Any], target: float | None = None) -> Row:
    found: Row = {"what": what, "against": against, "ratio": round(ratio["median"], 2)}
    found |= {name: ratio[name] for name in ("min", "max", "n")}
    return found if target is None else found | {"target": target}
