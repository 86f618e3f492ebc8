"""Drafting: tokens per pass, predicted and measured speed-up, for draft lengths 2, 5 and 8.

`python -m benchmarks.drafting`: Video-LLaVA's demo checkpoint on demo scenes, drafted by
EventGPT's and by prompt lookup, in alternated pairs with the target alone.  The figures are those
of engine/pipeline/drafting.py; `equal` says that every drafted answer was the target's own.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

from benchmarks.machine import keep

GAMMAS = (2, 5, 8)
SAMPLES, PAIRS = 6, 3
TARGET, DRAFTS = "video-llava-demo", ("eventgpt-demo", "lookup")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("STAGESCOPE_DEVICE", "cpu")
        os.environ["STAGESCOPE_CACHE_DIR"] = folder
        keep("drafting", {"target": TARGET, "drafts": {one: _draft(one) for one in DRAFTS}})


def _draft(name: str) -> dict[str, Any]:
    from engine import settings
    from engine.demo.demo_dataset import ensure_dataset
    from engine.media import dataset

    samples = dataset.read(ensure_dataset(settings.load().demo_dir)).samples[:SAMPLES]
    return {str(gamma): _length(name, gamma, samples) for gamma in GAMMAS}


def _length(name: str, gamma: int, samples: Any) -> dict[str, Any]:
    return figures(TARGET, name, gamma, samples, PAIRS)


def figures(target: str, draft: str, gamma: int, samples: Any, pairs: int) -> dict[str, Any]:
    """The figures of one draft length, from timed pairs with the target alone."""
    from engine.analysis import drafting
    from engine.analysis.drafting import DraftRequest
    from engine.jobs.draft_job import DraftJob

    job = DraftJob(request=DraftRequest(tuple(samples), target, draft, gamma, runs=pairs))
    job.work()
    if job.report is None:
        raise SystemExit(job.error)
    found = job.report
    predicted = found.predicted.speedup if found.predicted else None
    return {
        "equal": found.equal,
        "tokens_per_pass": _short(found.tokens_per_pass),
        "mean_accepted": _short(found.mean_accepted),
        "rates": [_short(rate) for rate in found.rates],
        "measured": {k: _short(v) for k, v in vars(found.measured).items()},
        "predicted_by_separate_answers": _short(predicted.value) if predicted else None,
        "predicted_in_the_loop": _short(found.own_prediction),
        "pass_cost_in_tokens": _short(found.pass_cost),
        "whole_run": _short(found.whole.median),
        "says": drafting.sentence(found),
    }


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


if __name__ == "__main__":
    main()
