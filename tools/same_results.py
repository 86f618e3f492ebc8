"""Runs the same commands in two checkouts and lists every result that differs.

    python -m tools.same_results BASE NEW [--only TEXT] [--recorded FOLDER] [--why FILE]

BASE and NEW are folders of checkouts; both run with this Python.  Reports, gate and other readers
of runs get a run with the same made-up figures in both, written by the checkout's own
tests/fabricate.py, so each of their figures must be equal (JSON to 7 digits, HTML by its text).
In answers to real samples everything must be equal but times, loads, dates and paths, which are
replaced by a mark.  FILE explains differences: lines of "NAME of a command: why".  Exit code 1 if
a difference has no reason.
"""

import argparse
import csv
import difflib
import html
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MADE_UP = """
import sys
from pathlib import Path
from tests import fabricate
rows = fabricate.pair(14)
for name, slower in (("base", 1.0), ("new", 1.3)):
    told = [dict(row, **{key: row[key] * slower for key in ("total_ms", "ttft_ms", "tpot_ms")})
            for row in rows]
    fabricate.run(Path(sys.argv[1]) / name, told)
fabricate.run(Path(sys.argv[1]) / "exam", fabricate.exam())
fabricate.run(Path(sys.argv[1]) / "mixed", [
    *fabricate.batch(["s0", "s1", "s2"]), *fabricate.pair(3),
    fabricate.row("vl", "s3", cached_ms=40.0), fabricate.failed("ev", "s4")])
"""
THREE = "eventgpt-demo,video-llava-demo,llava-demo"
SAMPLE = "scene_200002/000000"
COMPARED = {  # name -> options
    "plain": "",
    "hooked": "--mode hooked --max-new-tokens 24",
    "cache": "--cache use --repeat 2 --max-new-tokens 24",
    "sampled": "--temperature 0.7 --top-p 0.9 --seed 3 --max-new-tokens 24",
    "events": "--show llava-demo=events --split time:5 --perturb drop:0.3,jitter:500us",
}
# Keys of JSON whose values are measured or differ with the place and the day.
MEASURED = re.compile(
    r"(_ms|_s|_mb|_bytes|_us)$|^(at|id|made|created|engine|code|hash|began|ms|path|folder|file|root"
    r"|machine_load|environment|evidence|figure|sentence|identity|libraries|certificate|verified"
    r"|notes|digest|free|available|stages|prefill|steps|cost|settings_file|median|mean|sd|mad|low"
    r"|high|p90|p99|tokens_per_s|pairs_ms|values|passes|cost_ratio|ceiling|own_prediction|pass_cost"
    r"|per_token|speedup|bound)$"
)
RUN_ID = re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{6}\b")
DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\+\d\d:\d\d|Z)?")
MARKUP = re.compile(r"<(style|script|svg)\b.*?</\1>|<[^>]*>", re.DOTALL)  # HTML keeps its text
TIMED = re.compile(  # in text: figures with a decimal point, percentages, times, sizes
    r"[-+]?\d[\d,]*\.\d+(?![\d.])|(?<=tok/s )[\d,]+"
    r"|[-+]?\d[\d,]*(?= ?(ms|us|s|min|%|MB|GB|kB|tok/s|pairs)\b| to [-+]?\d[\d,.]* (ms|us|%))"
)


def commands(out: Path, recorded: Path | None) -> Iterator[tuple[str, str, bool]]:
    """(name, arguments, whether every figure must be equal) in the order in which they run."""
    yield "models", "models --json", False
    yield "samples", "samples --json", False
    for name, options in COMPARED.items():
        yield (
            f"compare {name}",
            f"compare --sample {SAMPLE} --models {THREE} {options} --json",
            False,
        )
    yield "compare text", f"compare --sample {SAMPLE} --models {THREE} --max-new-tokens 8", False
    yield "explain", (f"explain --sample {SAMPLE} --model eventgpt-demo --max-new-tokens 32 "
                      "--words road --json"), False  # fmt: skip
    yield "draft", (f"draft {SAMPLE} --target video-llava-demo --draft eventgpt-demo --gamma 5 "
                    "--max-new-tokens 24 --json"), False  # fmt: skip
    yield "verify", "verify --models eventgpt-demo,llava-demo --samples 1 --runs 3 --json", False
    yield "plan", "bench --models llava-demo --samples 3 --plan-only --json", False
    yield "bench", (f"bench --models {THREE} --samples 3 --max-new-tokens 16 --out {out}/real "
                    "--json"), False  # fmt: skip
    for form in ("md", "html", "csv", "json"):
        for name in ("base", "exam", "mixed"):
            yield f"report {name} {form}", f"report {out}/{name} --format {form}", True
    yield "report two runs", f"report {out}/base {out}/new --format md", True
    for form in ("", "--json", "--md"):
        yield f"gate {form}".strip(), f"gate {out}/base {out}/new {form}", True
    for path in sorted(recorded.glob("*.json")) if recorded else ():
        if path.name != "expected.json":
            yield f"import {path.name}", f"import {path}", True
            yield f"import {path.name} --json", f"import {path} --json", True
    if recorded:
        yield "import all", f"import {recorded}", True


def ran(checkout: Path, arguments: str, home: Path) -> tuple[int, str, str]:
    environment = os.environ | {
        "PYTHONPATH": str(checkout),
        "STAGESCOPE_CACHE_DIR": str(home / "cache"),
        "STAGESCOPE_RUNS_DIR": str(home / "runs"),
        "COLUMNS": "100",
    }
    argv = [sys.executable, "-m", "engine", *arguments.split()]
    done = subprocess.run(argv, cwd=checkout, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def masked(value: Any) -> Any:
    """JSON without measured values; a measured None stays None, since unknown is a result."""
    if isinstance(value, dict):
        return {
            key: ("measured" if held is not None else None)
            if MEASURED.search(key)
            else masked(held)
            for key, held in value.items()
        }
    if isinstance(value, list):
        return [masked(held) for held in value]
    return TIMED.sub("#", value) if isinstance(value, str) else value


def comparable(text: str, exact: bool, places: dict[str, str]) -> list[str]:
    """The lines of an output in which two checkouts may not differ."""
    for place, name in places.items():
        text = text.replace(place, name)
    text = DATE.sub("DATE", RUN_ID.sub("RUN", text))
    try:
        json.loads(text)
    except ValueError:
        if text[:15].lower() == "<!doctype html>":
            text = html.unescape(re.sub(r"\n\s*", "\n", MARKUP.sub("\n", text)))
        lines = text.splitlines()
        if exact and lines and lines[0].count(",") > 9:  # CSV: the order of columns, then values
            rows = [dict(sorted(row.items())) for row in csv.DictReader(lines)]
            return [lines[0], *(f"{key}={value}" for row in rows for key, value in row.items())]
        return lines if exact else TIMED.sub("#", text).splitlines()
    document = json.loads(text, parse_float=lambda digits: float(f"{float(digits):.7g}"))
    document = document if exact else masked(document)
    return json.dumps(document, indent=1, sort_keys=True).splitlines()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("base", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--only", default="", help="commands whose name contains this text")
    parser.add_argument("--recorded", type=Path, help="a folder of published result files")
    parser.add_argument("--why", type=Path, help="reasons for differences")
    given = parser.parse_args()
    told = given.why.read_text(encoding="utf-8").splitlines() if given.why else []
    reasons = dict(line.split(": ", 1) for line in told if ": " in line)
    open_differences = 0
    with tempfile.TemporaryDirectory() as made:
        sides = []
        for name in ("base", "new"):
            home, checkout = Path(made) / name, getattr(given, name).resolve()
            home.mkdir()
            script = [sys.executable, "-c", MADE_UP, str(home / "out")]
            paths = {**os.environ, "PYTHONPATH": str(checkout)}
            subprocess.run(script, cwd=checkout, env=paths, check=True)
            sides.append((checkout, home, list(commands(home / "out", given.recorded))))
        for (name, first, exact), (_, second, _) in zip(sides[0][2], sides[1][2], strict=True):
            if given.only not in name:
                continue
            results = []
            for (checkout, home, _), arguments in zip(sides, (first, second), strict=True):
                code, out, errors = ran(checkout, arguments, home)
                places = {str(home): "HOME", str(checkout): "CHECKOUT"}
                lines = [f"exit code {code}", *comparable(out, exact, places)]
                failed = [] if code == 0 else errors.strip().splitlines()[-1:]
                results.append(lines + comparable("\n".join(failed), exact, places))
            changed = [
                line
                for line in difflib.unified_diff(
                    results[0], results[1], "BASE", "NEW", n=0, lineterm=""
                )
                if not line.startswith(("---", "+++", "@@"))
            ]
            reason = reasons.get(name, "")
            open_differences += bool(changed and not reason)
            verdict = f"DIFFERS in {len(changed)} lines" if changed else "equal"
            print(f"{name:50} {len(results[0]):6,} lines  {verdict}{reason and f': {reason}'}")
            for line in changed[:12] if not reason else ():
                print(f"    {line[:200]}")
    print(f"{open_differences} differences without a reason")
    return 1 if open_differences else 0


if __name__ == "__main__":
    sys.exit(main())
