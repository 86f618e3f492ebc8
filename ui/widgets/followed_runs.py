"""The runs a visitor looks at: started here or opened by a link, followed until they end.

Boundary: session state and the URL on one side, the engine's queue on the other.  A page forgets
nothing when it is redrawn or reloaded, because it keeps only the jobs' ids.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import streamlit as st

from engine.jobs import queue, run_job
from engine.jobs.run_job import RunJob, RunView
from engine.types import RunRequest
from ui.widgets import uploads

IDS = "compare_jobs"  # in the session and in the URL
REDRAW_S = 0.1
LOOK_S = 4.0  # well within the engine's patience
GRACE_S = 0.5  # a page drawn after the end need not be drawn twice
MAX_RUNS = 3


def start(requests: Sequence[RunRequest]) -> None:
    """Queue one run per model, in order, in place of those shown so far."""
    cancel()
    owner = uploads.owner(requests[0].sample) if requests else ""
    queued = [
        RunJob(patience_s=run_job.PATIENCE_S, request=request, owner=owner) for request in requests
    ]
    for job in queued:
        queue.manager().submit(job)
    _remember([job.id for job in queued])


def cancel() -> None:
    """Stop every run of this page that has not ended, and give it a moment to do so."""
    found = _jobs(_ids())
    for job in found:
        job.cancel()
    end = time.monotonic() + GRACE_S
    while time.monotonic() < end and not all(job.ended for job in found):
        time.sleep(0.01)


def views() -> list[RunView]:
    """The runs this page shows, one per model, as they stand now; looking keeps them alive."""
    by_model: dict[str, RunView] = {}
    for view in _views(_ids()):
        by_model.setdefault(view.model, view)
    return list(by_model.values())


def _views(ids: Sequence[str]) -> list[RunView]:
    return [job.view() for job in _jobs(ids)]


def _jobs(ids: Sequence[str]) -> list[RunJob]:
    found = (queue.manager().get(job_id) for job_id in ids)
    return [job for job in found if isinstance(job, RunJob) and uploads.may_see(job)]


def live() -> bool:
    """Whether a run is queued or at work that nobody has cancelled.  A compile or a load cannot be
    interrupted: the next run need not wait for its end to be started, it queues behind it."""
    return any(not view.ended and not view.stopping for view in views())


def lost() -> bool:
    """Whether a link names runs that this server no longer holds."""
    return len(_jobs(_ids())) < len(_ids())


def follow(draw: Callable[[list[RunView]], None]) -> bool:
    """Redraw ten times a second until all runs have ended; True if there was anything to wait for.

    Streamlit may end this loop at any call to draw (a click, a closed tab): the runs go on.
    """
    now = views()
    draw(now)
    if all(view.ended for view in now):
        return False
    while not all(view.ended for view in now):
        time.sleep(REDRAW_S)
        now = views()
        draw(now)
    return True


def keep_alive() -> None:
    """On a page that does not show the runs: go on looking at them until they have ended."""
    if any(not view.ended for view in _views(st.session_state.get(IDS, []))):
        _look()


@st.fragment(run_every=LOOK_S)
def _look() -> None:
    _views(st.session_state.get(IDS, []))


def _ids() -> list[str]:
    if IDS not in st.session_state:
        st.session_state[IDS] = st.query_params.get_all(IDS)[:MAX_RUNS]
    found: list[str] = st.session_state[IDS]
    linked = st.query_params.get_all(IDS)[:MAX_RUNS]
    if found and not linked:
        st.query_params[IDS] = found  # another page has emptied the URL meanwhile
    elif linked != found:
        st.session_state[IDS] = found = linked  # Back or Forward
    return found


def _remember(ids: list[str]) -> None:
    st.session_state[IDS] = ids
    st.query_params[IDS] = ids
