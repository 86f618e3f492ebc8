"""The runs of the Compare page: started here or opened by a link, followed until they end.

Boundary: connects session state and the URL to the engine's queue.  It stores only the jobs' ids,
so a redrawn or reloaded page finds the same runs.
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
LOOK_S = 4.0  # well below run_job.PATIENCE_S
GRACE_S = 0.5  # wait for the end: the page is then drawn once instead of twice
MAX_RUNS = 3


def start(requests: Sequence[RunRequest]) -> None:
    """Cancel the shown runs and queue one run per request, in order."""
    cancel()
    owner = uploads.owner(requests[0].sample) if requests else ""
    queued = [
        RunJob(patience_s=run_job.PATIENCE_S, request=request, owner=owner) for request in requests
    ]
    for job in queued:
        queue.manager().submit(job)
    st.session_state[IDS] = st.query_params[IDS] = [job.id for job in queued]


def again(model: str) -> None:
    """Replace the shown run of one model by a new run of the same request."""
    ids = list(_ids())
    old = next((job for job in _jobs(ids) if job.request.model == model), None)
    if old is not None:
        new = RunJob(patience_s=run_job.PATIENCE_S, request=old.request, owner=old.owner)
        queue.manager().submit(new)
        ids[ids.index(old.id)] = new.id
        st.session_state[IDS] = st.query_params[IDS] = ids


def cancel() -> None:
    """Cancel every run of this page and wait briefly for their end."""
    jobs = _jobs(_ids())
    for job in jobs:
        job.cancel()
    end = time.monotonic() + GRACE_S
    while time.monotonic() < end and not all(job.ended for job in jobs):
        time.sleep(0.01)


def views() -> list[RunView]:
    """The current state of the shown runs, one per model; reading it keeps them alive."""
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
    """Whether a run is queued or running and not cancelled.  A new run may be queued behind a
    cancelled one, whose compiling or loading cannot be interrupted."""
    return any(not view.ended and not view.stopping for view in views())


def lost() -> bool:
    """Whether a link names runs that this server no longer has."""
    return len(_jobs(_ids())) < len(_ids())


def follow(draw: Callable[[list[RunView]], None]) -> bool:
    """Redraw ten times a second until all runs have ended; True if any was live.

    Streamlit may end this loop at any call to draw (a click, a closed tab): the runs continue.
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
    """On a page that does not show the runs: keep them alive until they end."""
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
        st.query_params[IDS] = found  # another page has cleared the URL
    elif linked != found:
        st.session_state[IDS] = found = linked  # Back or Forward
    return found
