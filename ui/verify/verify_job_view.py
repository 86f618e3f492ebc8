"""The verification a visitor looks at: started here, elsewhere, or named by a link.

Boundary: session state and the URL on one side, the engine's queue on the other.  Only the job's id
is kept, so that a page that is drawn again, or another session, finds the same one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st

from engine.jobs.verify_job import VerifyJob, VerifyView
from engine.verify.verdict import VerifyRequest
from ui.widgets.followed_job import Followed

ID = "verify_job"  # in the session and in the URL
REDRAW_S = 0.2  # each look takes the processor from what is being timed
AGAIN_S = 0.1
_FRESH = "verify_fresh"
RUN = Followed(ID, VerifyJob)
cancel, shown, lost = RUN.cancel, RUN.shown, RUN.lost


def start(request: VerifyRequest, dataset: str) -> None:
    """Queue a verification in place of the one shown so far."""
    st.session_state[_FRESH] = True
    RUN.start(VerifyJob(request=request, dataset=dataset))


def running() -> VerifyJob | None:
    """The newest verification that has not ended, whoever started it."""
    live = RUN.live()
    return live[-1] if live else None


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
    st.session_state[_FRESH] = True
    RUN.show(job)


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
