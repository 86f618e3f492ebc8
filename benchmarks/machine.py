"""Describes the machine of a measurement, and writes figures to benchmarks/results.

Boundary: describes and writes; measures nothing.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    """Processor, cores and versions; no names of hosts, users or folders."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.is_file() else []
    model = next((line.split(":")[1].strip() for line in lines if "model name" in line), "")
    packages = ("streamlit", "torch", "transformers", "av", "pillow", "altair", "pandas")
    return {
        "processor": model or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        **{name: _version(name) for name in packages},
    }


def _version(name: str) -> str | None:
    """The version of a package, None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Median with minimum, maximum and n, in the unit of the values."""
    return {
        "median": round(statistics.median(values), 3),
        "min": round(min(values), 3),
        "max": round(max(values), 3),
        "n": len(values),
    }


def keep(name: str, figures: dict[str, Any]) -> None:
    """Writes benchmarks/results/NAME.json and prints it."""
    write(RESULTS / f"{name}.json", figures)


def write(path: Path, figures: dict[str, Any], quiet: bool = False) -> None:
    """Writes the figures with the day and the machine, and prints them unless `quiet`."""
    when = datetime.now(timezone.utc).date().isoformat()
    text = json.dumps({"measured": when, "machine": machine(), **figures}, indent=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
    if not quiet:
        print(text)
