"""What the benchmarks share: ways measured by turns, rows of figures, files that name the machine.

A row compares one way with another: `ratio` is the median of the other's time over the own one's
in the same turn (above 1 is faster), beside the least and the greatest of these ratios.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
QUESTION = "What are the key elements in this scene?"
Row = dict[str, Any]


def main(name: str, measure: Callable[[bool], list[Row]], about: str | None) -> None:
    """The command of a benchmark, with a temporary folder as the cache.  Its rows are written to
    benchmarks/results/NAME.json; with `--quick`, which measures little, they are only printed."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="measure little, keep nothing")
    quick = parser.parse_args().quick
    os.environ.setdefault("STAGESCOPE_DEVICE", "cpu")
    with tempfile.TemporaryDirectory() as folder:
        if not (quick and "STAGESCOPE_CACHE_DIR" in os.environ):
            os.environ["STAGESCOPE_CACHE_DIR"] = folder
        rows = measure(quick)
    if quick:
        print(json.dumps(rows, indent=1))
    else:
        keep(name, {"rows": rows})


def by_turns(
    ways: Mapping[str, Callable[[], Any]],
    rounds: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, list[float]]:
    """Milliseconds of each way in each round, after one that is not measured; the order turns."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(-1, rounds):
        for name in list(ways) if turn % 2 else reversed(list(ways)):
            start = clock()
            ways[name]()
            if turn >= 0:
                times[name].append(1000 * (clock() - start))
    return times


def rows(
    what: str, times: Mapping[str, Sequence[float]], targets: Mapping[str, float] | None = None
) -> list[Row]:
    """A row for each way after the first, which is the own one; targets: by the other's name."""
    own, *others = times
    return [
        row(what, other, [b / a for a, b in zip(times[own], times[other], strict=True)],
            (targets or {}).get(other))
        | {"own_ms": spread(times[own])["median"], "other_ms": spread(times[other])["median"]}
        for other in others
    ]  # fmt: skip


def row(what: str, against: str, ratios: Sequence[float], target: float | None = None) -> Row:
    known = {"what": what, "against": against, **spread(ratios)}
    known["ratio"] = known.pop("median")
    return known if target is None else known | {"target": target}


def limit(what: str, values: Sequence[float], unit: str, most: float | None = None) -> Row:
    """A figure by itself, with the most that it should be."""
    known = {"what": what, **spread(values), "unit": unit}
    return known if most is None else known | {"limit": most}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def demo_samples() -> tuple[Any, ...]:
    from engine import settings
    from engine.demo.demo_dataset import ensure_dataset
    from engine.media import dataset

    return tuple(dataset.read(ensure_dataset(settings.load().demo_dir)).samples)


def demo_adapters(families: Sequence[str] = ()) -> list[Any]:
    """The adapters of the demo models; those of some families only, if any are named."""
    from engine.models import registry

    demo = [entry for entry in registry.entries() if entry.demo]
    return [registry.load(entry) for entry in demo if not families or entry.family in families]


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
    when = datetime.now(UTC).date().isoformat()
    text = json.dumps({"measured": when, "machine": machine(), **figures}, indent=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
    if not quiet:
        print(text)
