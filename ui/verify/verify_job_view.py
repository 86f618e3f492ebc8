"""The verification that a visitor watches: started here, elsewhere, or named in a link."""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st

from engine.jobs.verify_job import VerifyJob, VerifyView
from engine.verify.verdict import VerifyRequest
from ui.widgets.followed_runs import Followed

ID = "verify_job"  # in the session and in the URL
REDRAW_S = 0.2  # each update uses the CPU that is being timed
AGAIN_S = 0.1
_FRESH = "verify_fresh"
RUN = Followed(ID, VerifyJob)
cancel, shown, lost = RUN.cancel, RUN.shown, RUN.lost


def start(request: VerifyRequest, dataset: str) -> None:
    st.session_state[_FRESH] = True
    RUN.start(VerifyJob(request=request, dataset=dataset))


def running() -> VerifyJob | None:
    """The newest live verification, of any visitor."""
    live = RUN.live()
    return live[-1] if live else None


def follow(job: VerifyJob, draw: Callable[[VerifyView], None]) -> None:
    """Redraw five times a second until it has ended.

    Streamlit may end this loop at any call to draw (a click, a closed tab): the job continues.
    """
    view = job.view()
    draw(view)
    while not view.ended:
        time.sleep(REDRAW_S)
        view = job.view()
        draw(view)


def show(job: VerifyJob) -> None:
    st.session_state[_FRESH] = True
    RUN.show(job)


def fresh() -> bool:
    """Whether the shown verification has just changed: then this run of the page ends at once.

    Streamlit removes old elements only when a script ends, and following a job delays that.  The
    page is redrawn right away.
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
