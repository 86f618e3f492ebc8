"""How often a gate calls the same code worse, and whether it finds a planted slow-down.

`python -m benchmarks.gate [--pairs 40] [--planted 10] [--quick]` runs pairs with `bench --against`:
this checkout against itself, and a copy of it that waits after vision and each token, by 11 % of
their time, so that a run takes about 15 % longer.  The machine must be idle: a pair on a busy one
is refused and run again.  The figures go to benchmarks/results/gate.json.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import keep, say
from engine.analysis import gate
from engine.analysis.gate import values_of
from engine.errors import BadInput
from engine.storage import run_store

ROOT = Path(__file__).resolve().parents[1]
MODELS, REPEATS, TOKENS, SLOW = "llava-demo,eventgpt-demo", 4, 32, 0.11
VERDICTS = ("worse", "undecided", "no worse")
MOST_REFUSED = 20
# Appended to the copy: each token waits, the first also for the vision tower's time.
SLOWER = """

def _slow_token(self, token, usual=_Run._token):
    vision = next(span.start_ms for span in self.timeline.spans if span.name == "vision")
    now = self.timeline.now()
    end = now + {slow} * (now - (self.step_ms[-1] if self.step_ms else vision))
    while self.timeline.now() < end:
        pass
    usual(self, token)


_Run._token = _slow_token
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--planted", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="one planted pair, not kept")
    options = parser.parse_args()
    wanted = {"same": options.pairs, "planted": options.planted}
    pairs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        slow = copy(folder / "slow", SLOW)
        if options.quick:
            print(pair(slow, folder / "pair", 1))
            return
        while kind := missing(pairs, wanted):
            checkout, place = slow if kind == "planted" else ROOT, folder / f"pair{len(pairs)}"
            pairs.append({"kind": kind, **pair(checkout, place, REPEATS)})
            say(json.dumps(pairs[-1]))
    keep("gate", {"models": MODELS, "repeats": REPEATS, "slow": SLOW, "pairs": pairs})


def copy(folder: Path, slow: float) -> Path:
    """A copy of this checkout whose stages 3 and 4 take longer."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "engine", folder / "engine")
    shutil.copy(ROOT / "models.toml", folder)
    with (folder / "engine" / "pipeline" / "single_run.py").open("a") as file:
        file.write(SLOWER.format(slow=slow))
    return folder


def missing(pairs: Sequence[dict[str, Any]], wanted: dict[str, int]) -> str | None:
    """The kind of the next pair: planted ones are spread among the others."""
    if sum(one["verdict"] == "refused" for one in pairs) > MOST_REFUSED:
        raise SystemExit("The machine is busy: repeat this on an idle one.")
    left = {
        kind: (many - sum(one["kind"] == kind and one["verdict"] in VERDICTS for one in pairs))
        / many
        for kind, many in wanted.items()
    }
    kind = max(left, key=lambda name: left[name])
    return kind if left[kind] > 0 else None


def pair(checkout: Path, place: Path, repeats: int) -> dict[str, Any]:
    """This checkout (BASE) and another (NEW) by turns, through the gate with its defaults."""
    command = [sys.executable, "-m", "engine", "bench", "--models", MODELS, "--repeat",
               str(repeats), "--max-new-tokens", str(TOKENS), "--against", str(ROOT),
               "--out", str(place)]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(checkout)}
    subprocess.run(command, check=True, cwd=checkout, env=env, stdout=subprocess.DEVNULL)
    folders = [place.with_name(f"{place.name}-{side}") for side in ("base", "new")]
    base, new = (values_of(run_store.read(folder)) for folder in folders)
    for folder in folders:
        shutil.rmtree(folder)
    try:
        report = gate.gate(base, new)
    except BadInput as refused:
        return {"verdict": "refused", "reason": str(refused)}
    results = [
        {"label": one.label, "metric": one.metric, "verdict": one.verdict, "unit": one.unit,
         "change": round(one.change, 4), "low": one.low, "high": one.high}
        for one in report.results
    ]  # fmt: skip
    return {"verdict": report.verdict, "results": results}


if __name__ == "__main__":
    main()
