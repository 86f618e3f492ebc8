"""One file of all parts of a measurement, with rows for the tables of speed.

Boundary: reads the parts' files in a folder and writes one; measures nothing.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.accelerator.prepare import NAMES
from benchmarks.machine import Row
from engine.errors import BadInput
from engine.quoting import shown

FILE = "accelerator.json"
TARGETS = {"eager": 2.0, "compiled": 4.0}  # way -> times generate() of the same process
EQUALITIES = ("equal", "next_run_equal", "equal_to_generate", "all_at_once", "refused",
              "planted_fault_noticed")  # fmt: skip


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
    found["machine"]["processor"] = found["device"]
    target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return target


def merged(folder: Path) -> dict[str, Any]:
    """The parts' figures and their rows; certificates and reports are reduced to their counts."""
    others = ("parts.json", FILE)
    files = [file for file in sorted(folder.glob("*.json")) if file.name not in others]
    kept = {file.stem: _read(file) for file in files}
    sizes = [one for name, one in kept.items() if name.startswith("decoding-")]
    found: dict[str, Any] = {
        "device": next((one["device"] for one in sizes), "unknown"),
        "full_size": bool(sizes) and all(one["full_size"] for one in sizes),
        "copy_gb_per_s": next((one["copy_gb_per_s"] for one in sizes), None),
        "parts": _read(folder / "parts.json"),
        "families": {name: one for size in sizes for name, one in size["families"].items()},
        "app": {
            name: figures
            for part in ("app", "app-quantized")
            for name, figures in kept.get(part, {}).get("sections", {}).items()
        },
        "verify": {
            name: Counter(verdict["outcome"] for verdict in one["verdicts"])
            for name, one in kept.items()
            if "verdicts" in one
        },
        "bench": {name: one["throughput"] for name, one in kept.items() if "throughput" in one},
    }
    found["unequal"] = sorted(_unequal(found))
    return found | {"rows": list(rows(found))}


def _read(file: Path) -> dict[str, Any]:
    content = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    assert isinstance(content, dict)
    return content


def _unequal(found: Any, place: str = "") -> Iterator[str]:
    """Where an answer differs from what it must equal, or a planted fault passed."""
    for key, value in found.items() if isinstance(found, dict) else ():
        if key in EQUALITIES and value is False:
            yield f"{place}{key}"
        yield from _unequal(value, f"{place}{key}.")


def rows(found: dict[str, Any]) -> Iterator[Row]:
    for family, one in found["families"].items():
        label, ways = NAMES[family][1], one["ways"]
        for way in (way for way in TARGETS if way in ways):
            ran, ratio = ways[way]["ran"], dict(ways[way]["ratio"])
            instead = "" if ran == way else f" (it ran {ran})"
            what = f"{label}: {one['new_tokens']} tokens, {way}{instead}"
            middle = {"ratio": ratio.pop("median"), **ratio}
            yield {"what": what, "against": "generate()", **middle, "target": TARGETS[way]}
        for name in ("ttft", "tpot"):
            words = f"{label}, {one['dtype']}: {name.upper()}"
            yield {"what": words, "unit": "ms", **one[f"{name}_ms"]}
        for way, speeds in ways.items():
            used = f"{100 * speeds['mbu']['of_copy']:.0f} % of a copy's bandwidth"
            what = f"{label}: {way}, tokens a second, {used}"
            yield {"what": what, "unit": "tok/s", **speeds["tokens_per_s"]}
        gigabytes = one["peak_memory"]["bytes"] / 1e9
        yield machine.limit(f"{label}: peak memory", [gigabytes], "GB")
    for name, one in found["app"].get("features", {}).items():
        if isinstance(one, dict):
            yield {"what": f"{name}: stage 3, computed", "unit": "ms", **one["computed_ms"]}
            yield {"what": f"{name}: stage 3, read", "unit": "ms", **one["read_ms"]}
