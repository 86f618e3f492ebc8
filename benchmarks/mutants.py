"""Whether the tests of a module notice a changed line of it: 40 mutants, spread over engine/.

`python -m benchmarks.mutants [--as NAME]` plants each mutant of results/mutants.json in turn and
runs its tests without the slow ones.  It changes files of this checkout and puts them back: use a
clone.  The first failing test is kept under NAME, such as "before" and "after"; "" if none fails,
"gone" if the line is no longer there.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.machine import RESULTS, keep, say

ROOT = Path(__file__).resolve().parents[1]
FILE = RESULTS / "mutants.json"
QUICK = ("-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=no", "-rfE",
         "-m", "not slow and not compiles")  # fmt: skip
LIMIT_S = 180


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--as", dest="name", default="after", help="the column that is kept")
    options = parser.parse_args()
    mutants = json.loads(FILE.read_text(encoding="utf-8"))["mutants"]
    for one in mutants:
        one[options.name] = caught(one)
        say(f"{one['file']}: {one['new']}: {one[options.name] or 'nobody'}")
        keep("mutants", {"mutants": mutants})
    say(f"{sum(bool(one[options.name]) for one in mutants)} of {len(mutants)} are caught.")


def caught(mutant: dict[str, Any]) -> str:
    """The first test that fails with the mutant in its place."""
    path = ROOT / mutant["file"]
    whole = path.read_text(encoding="utf-8") if path.is_file() else ""
    lines = whole.splitlines(keepends=True)
    places = [number for number, line in enumerate(lines) if line.strip() == mutant["old"]]
    if len(places) != 1:
        return "gone"
    line = lines[places[0]]
    lines[places[0]] = line.replace(mutant["old"], mutant["new"])
    path.write_text("".join(lines), encoding="utf-8")
    try:
        command = [sys.executable, "-m", "pytest", *QUICK, *mutant["tests"]]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return "did not end"
    finally:
        path.write_text(whole, encoding="utf-8")
    failed = [text for text in done.stdout.splitlines() if text.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" ")[1] if failed else ""


if __name__ == "__main__":
    main()
