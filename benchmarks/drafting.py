"""Drafting: token steps with a draft against without, beside the predicted ratio.

Video-LLaVA's demo checkpoint on demo scenes, drafted by EventGPT's and by prompt lookup, in pairs
with the target alone, wall time.
"""

from benchmarks.machine import Row, demo_samples, main

TARGET, DRAFTS, GAMMAS = "video-llava-demo", ("eventgpt-demo", "lookup"), (2, 5, 8)


def measure(quick: bool) -> list[Row]:
    from engine.jobs.model_work import DraftJob
    from engine.pipeline.drafts import DraftRequest

    samples, found = demo_samples()[: 1 if quick else 6], list[Row]()
    for draft in DRAFTS:
        for gamma in GAMMAS[: 1 if quick else None]:
            request = DraftRequest(samples, TARGET, draft, gamma, runs=1 if quick else 3)
            job = DraftJob(request=request)
            job.work()
            if job.report is None or not job.report.equal or job.report.measured is None:
                raise SystemExit(job.error or f"{draft} changes the answer of {TARGET}.")
            predicted = job.report.own_prediction
            known = "unknown" if predicted is None else f"{predicted:.2f}x"
            found.append({
                "what": f"token steps of {TARGET}, drafted by {draft}, gamma {gamma}, wall",
                "against": f"without a draft (predicted {known})",
                "ratio": round(job.report.measured.median, 3),
            })  # fmt: skip
    return found


if __name__ == "__main__":
    main("drafting", measure, __doc__)
