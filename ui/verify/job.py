"""The verification a visitor looks at: started here, elsewhere, or named by a link.

Boundary: session state and the URL on one side, the engine's queue on the other.  Only the job's id
is kept, so that a page that is drawn again, or another session, finds the same one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st

from engine import jobs
from engine.verify.verdict import VerifyRequest
from engine.verify_job import VerifyJob, VerifyView

ID = "verify_job"  # in the session and in the URL
REDRAW_S = 0.2  # each look takes the processor from what is being timed
AGAIN_S = 0.1
_FRESH = "verify_fresh"
GRACE_S = 0.5


def start(request: VerifyRequest, dataset: str) -> None:
    """Queue a verification in place of the one shown so far."""
    job = VerifyJob(request=request, dataset=dataset)
    jobs.manager().submit(job)
    _remember(job.id)


def cancel() -> None:
    """Stop the verification shown, and give it a moment to do so."""
    job = shown()
    if job is None:
        return
    job.cancel()
    end = time.monotonic() + GRACE_S
    while time.monotonic() < end and not job.ended:
        time.sleep(0.01)


def shown() -> VerifyJob | None:
    """The verification of the link or of this session; else one that anybody has running."""
    found = _job(_id())
    if found is None and (found := running()) is not None:
        _keep(found.id)  # its result stays when it has ended
    return found


def running() -> VerifyJob | None:
    """The newest verification that has not ended, whoever started it."""
    live = [j for j in jobs.manager().all() if isinstance(j, VerifyJob) and not j.ended]
    return live[-1] if live else None


def lost() -> bool:
    """Whether the link names a verification that this server no longer holds."""
    return bool(_id()) and _job(_id()) is None


def follow(job: VerifyJob, draw: Callable[[VerifyView], None]) -> bool:
    """Redraw five times a second until it has ended; True if there was anything to wait for.

    Streamlit may end this loop at any call to draw (a click, a closed tab): the work goes on.
    """
    view = job.view()
    draw(view)
    waited = not view.ended
    while not view.ended:
        time.sleep(REDRAW_S)
        view = job.view()
        draw(view)
    return waited


def show(job: VerifyJob) -> None:
    """From now on this one."""
    _remember(job.id)


def fresh() -> bool:
    """Whether another verification than before is shown: then this run of the page ends at once.

    Streamlit clears what is no longer drawn only when a script ends, which following a job puts
    off for as long as that takes; the page is drawn again right away.
    """
    if not st.session_state.pop(_FRESH, False):
        return False
    _again()
    return True


@st.fragment(run_every=AGAIN_S)
def _again() -> None:
    if st.session_state.get(_FRESH) is None:
        st.session_state[_FRESH] = False
    else:
        st.rerun()


def _job(job_id: str) -> VerifyJob | None:
    found = jobs.manager().get(job_id)
    return found if isinstance(found, VerifyJob) else None


def _id() -> str:
    if ID not in st.session_state:
        st.session_state[ID] = st.query_params.get(ID, "")
    found, linked = str(st.session_state[ID]), st.query_params.get(ID, "")
    if found and not linked:
        st.query_params[ID] = found  # another page has emptied the URL meanwhile
    elif linked != found:
        st.session_state[ID] = found = linked  # Back or Forward
    return found


def _remember(job_id: str) -> None:
    st.session_state[_FRESH] = True
    _keep(job_id)


def _keep(job_id: str) -> None:
    st.session_state[ID] = job_id
    st.query_params[ID] = job_id
