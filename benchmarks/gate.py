"""How often a gate calls the same code worse, and whether it finds a planted slow-down.

`python -m benchmarks.gate [--pairs 40] [--planted 10] [--quick]` runs pairs with `bench --against`:
this checkout against itself, and a copy of it that waits after vision and each token, by 11 % of
their time, so that a run takes about 15 % longer.  The machine must be idle: a pair on a busy one
is refused and run again.  The figures go to benchmarks/results/gate.json, the table to
docs/gate.md.
"""

from __future__ import annotations

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
from engine.analysis.statistics import exact_share
from engine.errors import BadInput
from engine.storage import run_store

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "gate.md"
BELOW = "<!-- Below this line: python -m benchmarks.gate -->\n"
MODELS, REPEATS, TOKENS, SLOW = "llava-demo,eventgpt-demo", 4, 32, 0.11
VERDICTS = ("worse", "undecided", "no worse")
MOST_REFUSED = 20
KINDS = {"same": "the same code", "planted": "waits of {:.0%} in stages 3 and 4"}
# Appended to the copy: each token waits, the first also for the vision tower's time.
SLOWER = """

def _slow_token(self, token, usual=_Run._token):
    vision = next(span.start_ms for span in self.timeline.spans if span.name == "vision")
    now = self.timeline.now()
    end = now + {slow} * (now - (self.token_ms[-1] if self.token_ms else vision))
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
    figures = {"models": MODELS, "repeats": REPEATS, "slow": SLOW, "pairs": pairs}
    keep("gate", figures)
    head = PAGE.read_text(encoding="utf-8").partition(BELOW)[0]
    PAGE.write_text(f"{head}{BELOW}\n{markdown(figures)}", encoding="utf-8")


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


def markdown(figures: dict[str, Any]) -> str:
    """A row per kind of pair, then how far the changes of the same code spread."""
    head = ("NEW", "pairs", "worse (95 % interval)", "undecided", "no worse", "refused: load")
    rows = [head, ("---",) * len(head)]
    spread = []
    for kind, name in KINDS.items():
        own = [one for one in figures["pairs"] if one["kind"] == kind]
        counts = {verdict: sum(one["verdict"] == verdict for one in own)
                  for verdict in (*VERDICTS, "refused")}  # fmt: skip
        many = sum(counts[verdict] for verdict in VERDICTS)
        low, high = exact_share(counts["worse"] / many, many)
        worse = f"{counts['worse']} ({100 * low:.1f} to {100 * high:.1f} %)"
        rest = (str(counts[verdict]) for verdict in ("undecided", "no worse", "refused"))
        rows.append((name.format(figures["slow"]), str(many), worse, *rest))
        for label, metric in dict.fromkeys(
            (one["label"], one["metric"]) for pair_ in own for one in pair_.get("results", ())
        ):
            changes = sorted(
                100 * (one["change"] - 1)
                for pair_ in own
                for one in pair_.get("results", ())
                if (one["label"], one["metric"], one["unit"]) == (label, metric, "ratio")
            )
            if changes and metric != "new_tokens":
                middle = changes[len(changes) // 2]
                spread.append((name.format(figures["slow"]), label, metric, f"{middle:+.1f}",
                               f"{changes[0]:+.1f} to {changes[-1]:+.1f}"))  # fmt: skip
    second = [("NEW", "model", "metric", "change, %: median", "range"), ("---",) * 5, *spread]
    return "\n\n".join("\n".join(f"| {' | '.join(row)} |" for row in part)
                       for part in (rows, second)) + "\n"  # fmt: skip


if __name__ == "__main__":
    main()
