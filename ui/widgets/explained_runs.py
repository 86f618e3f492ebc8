"""The explanations of this server that belong to the answers on a page.

Boundary: reads the engine's queue; draws nothing.  An explanation belongs to an answer if the
request and the token ids are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.attribution.explained import Explanation
from engine.jobs.explain_job import ExplainJob
from engine.jobs.run_job import RunView
from ui.widgets.followed_job import Followed

JOB = Followed("compare_explained", ExplainJob)


def belongs(job: ExplainJob, view: RunView) -> bool:
    """Whether the job explains the answer of this card."""
    result, asked = view.result, job.request
    return (
        result is not None
        and asked.run == view.request
        and asked.token_ids == result.generation.token_ids
    )


def of(views: Sequence[RunView]) -> dict[str, list[Explanation]]:
    """The explanations of each view's answer, by the view's id; of the same words and options the
    newest."""
    found: dict[str, dict[Any, Explanation]] = {view.id: {} for view in views}
    for job in JOB.all():
        for view in views:
            if job.found is not None and belongs(job, view):
                found[view.id][job.request.words, job.request.options] = job.found
    return {name: list(one.values()) for name, one in found.items()}
