"""How often a gate calls the same code worse, and whether it finds a planted slow-down.

`python -m benchmarks.gate FOLDER [--pairs 40] [--planted 10] [--slow 0.11] [--quick] [--seconds S]`
runs pairs with `bench --against`: this checkout against itself, and a copy of it that waits after
vision and each token.  A wait of 11 % of their time makes a run about 15 % longer; the table has
the measured change.  The machine must be idle: a pair on a busy one is refused and run again.
FOLDER keeps each finished pair, and the same command continues; `--seconds` stops early.  When all
pairs are there, the figures go to benchmarks/results/gate.json and gate.svg, and the table to
docs/gate.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import RESULTS, keep
from engine.analysis import gate
from engine.analysis.gate_values import values_of
from engine.analysis.statistics import share_interval
from engine.errors import BadInput
from engine.storage import run_store

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "gate.md"
BELOW = "<!-- Below this line: python -m benchmarks.gate -->\n"
MODELS, REPEATS, TOKENS = "llava-demo,eventgpt-demo", 4, 32
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
    options = _options()
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {"same": 2, "planted": 2} if options.quick else {
        "same": options.pairs, "planted": options.planted}  # fmt: skip
    slow = copy(folder / "slow", options.slow)
    kept = folder / "pairs.json"
    pairs: list[dict[str, Any]] = json.loads(kept.read_text()) if kept.is_file() else []
    begin = time.monotonic()
    while kind := missing(pairs, wanted):
        if time.monotonic() - begin > options.seconds:
            print(f"{len(pairs)} pairs are kept in {kept}: repeat the command to continue.")
            return
        checkout = slow if kind == "planted" else ROOT
        pairs.append({"kind": kind, **pair(checkout, folder / f"pair{len(pairs)}")})
        kept.write_text(json.dumps(pairs, indent=1))
        print(json.dumps(pairs[-1]), file=sys.stderr, flush=True)
    if not options.quick:
        figures = {"models": MODELS, "scenes": 14, "repeats": REPEATS, "slow": options.slow,
                   "pairs": pairs}  # fmt: skip
        keep("gate", figures)
        chart(pairs, options.slow)
        head = PAGE.read_text(encoding="utf-8").partition(BELOW)[0]
        PAGE.write_text(f"{head}{BELOW}\n{markdown(figures)}", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--planted", type=int, default=10)
    parser.add_argument("--slow", type=float, default=0.11)
    parser.add_argument("--quick", action="store_true", help="two pairs of each kind, not kept")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    return parser.parse_args()


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


def pair(checkout: Path, place: Path) -> dict[str, Any]:
    """This checkout (BASE) and another (NEW) by turns, through the gate with its defaults."""
    command = [sys.executable, "-m", "engine", "bench", "--models", MODELS, "--repeat",
               str(REPEATS), "--max-new-tokens", str(TOKENS), "--against", str(ROOT),
               "--out", str(place)]  # fmt: skip
    begin = time.monotonic()
    env = {**os.environ, "PYTHONPATH": str(checkout)}
    subprocess.run(command, check=True, cwd=checkout, env=env, stdout=subprocess.DEVNULL)
    seconds = round(time.monotonic() - begin, 1)
    folders = [place.with_name(f"{place.name}-{side}") for side in ("base", "new")]
    base, new = (values_of(run_store.read(folder)) for folder in folders)
    for folder in folders:
        shutil.rmtree(folder)
    try:
        report = gate.gate(base, new)
    except BadInput as refused:
        return {"verdict": "refused", "reason": str(refused), "seconds": seconds}
    results = [
        {"label": one.label, "metric": one.metric, "verdict": one.verdict, "unit": one.unit,
         "change": round(one.change, 4), "low": one.low, "high": one.high}
        for one in report.results
    ]  # fmt: skip
    return {"verdict": report.verdict, "seconds": seconds, "results": results}


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
        share = share_interval(counts["worse"], many)
        worse = f"{counts['worse']} ({100 * share.low:.1f} to {100 * share.high:.1f} %)"
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


def chart(pairs: Sequence[dict[str, Any]], slow: float) -> None:
    """The change of each pair and metric, and the margin."""
    import altair as alt
    import pandas as pd
    import vl_convert

    lines = [
        {"pair": KINDS[one["kind"]].format(slow), "change": 100 * (result["change"] - 1),
         "metric": f"{result['label']}: {result['metric']}", "verdict": result["verdict"]}
        for one in pairs
        for result in one.get("results", ())
        if result["unit"] == "ratio" and result["metric"] != "new_tokens"
    ]  # fmt: skip
    dots = alt.Chart(pd.DataFrame(lines)).mark_tick(thickness=2).encode(
        x=alt.X("change:Q", title="change of NEW against BASE in percent"),
        y=alt.Y("metric:N", title=None),
        color=alt.Color("verdict:N", sort=list(VERDICTS)),
        row=alt.Row("pair:N", title=None),
    )  # fmt: skip
    drawn = dots.properties(width=480)
    (RESULTS / "gate.svg").write_text(vl_convert.vegalite_to_svg(drawn.to_dict()))


if __name__ == "__main__":
    main()
