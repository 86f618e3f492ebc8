"""Drafting: token steps with a draft against without, beside the predicted ratio.

Video-LLaVA's demo checkpoint on demo scenes, drafted by EventGPT's and by prompt lookup, in pairs
with the target alone, wall time.
"""

from __future__ import annotations

from typing import Any

from benchmarks.machine import Row, demo_samples, main

TARGET, DRAFTS, GAMMAS = "video-llava-demo", ("eventgpt-demo", "lookup"), (2, 5, 8)


def measure(quick: bool) -> list[Row]:
    samples, found = demo_samples()[: 1 if quick else 6], list[Row]()
    for draft in DRAFTS:
        for gamma in GAMMAS[: 1 if quick else None]:
            one = figures(TARGET, draft, gamma, samples, 1 if quick else 3)
            predicted = one["predicted_in_the_loop"]
            known = "unknown" if predicted is None else f"{predicted:.2f}x"
            found.append({
                "what": f"token steps of {TARGET}, drafted by {draft}, gamma {gamma}, wall",
                "against": f"without a draft (predicted {known})",
                "ratio": one["measured"]["median"],
            })  # fmt: skip
    return found


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
    main("drafting", measure, __doc__)
