"""Verify: does StageScope run and time the model's own inference, on this machine?

A verification is a job in the engine's queue, so a redraw of the page loses nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import StageScopeError
from engine.jobs.verify_job import VerifyJob, VerifyView
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from ui.verify import kept_certificates
from ui.verify.verdict_board import Board, short_names
from ui.verify.verify_choice import VerifyChoice, choose_all
from ui.widgets import followed_runs, links, notices, preparation
from ui.widgets.followed_runs import Followed
from ui.widgets.model_picker import entries_or_stop
from ui.widgets.run_settings import run_and_cancel
from ui.widgets.text import count, escape, queued

JOB = Followed("verify_job", VerifyJob)  # in the session and in the URL
REDRAW_S = 0.2  # each update uses the CPU that is being timed
LOST = (
    "The verification in this link is no longer in memory: open its certificate below, or press "
    "Verify to repeat it."
)
EMPTY = (
    "Verify checks that StageScope runs and times the model's own inference on this machine. Press "
    "Verify (Ctrl+Enter). Each chosen model then answers the same question in four ways: its "
    "own generate() on pixels; the same with the probe; decoupled (features encoded once, saved to "
    "disk, read back); and from given features. Every check shows its result and its evidence. A "
    "result that cannot be told apart from noise stays open. The outcome is saved as a certificate."
)


def buttons(choice: VerifyChoice, shown: VerifyJob | None, live: bool) -> None:
    """Verify and Cancel.  Pressing Verify reruns the page, which updates both buttons."""
    running = JOB.live()  # of any visitor
    with st.container(horizontal=True, vertical_alignment="center"):
        run = ("Verify", "verify_run")
        pressed = run_and_cancel("verify", run, live, choice.ready, JOB.cancel)
        if running and running[-1] is not shown:
            label, other = "Show the running verification", running[-1]
            st.button(label, key="verify_other", on_click=JOB.show, args=(other,))
    if not pressed:
        return
    links.forget()
    try:
        assert choice.dataset is not None  # the button is disabled otherwise
        job = VerifyJob(request=choice.request(), dataset=str(choice.dataset.root))
    except StageScopeError as error:
        notices.problem(str(error), "verify")
        return
    JOB.start(job)
    st.rerun()


def show_job(shown: VerifyJob | None, live: bool, entries: Sequence[ModelEntry]) -> None:
    """The shown verification, followed to its end, above the certificates.

    live: what the buttons show; they are drawn again once it has ended.  Streamlit may end this
    loop at any call to draw (a click, a closed tab): the job continues.
    """
    if shown is None:
        with st.container():
            if JOB.lost():
                notices.notice(LOST, "lost")
            notices.hint(EMPTY)
        kept_certificates.listed(entries)
        return
    state, view = st.empty(), shown.view()
    board = Board(view.report, entries, "verify")
    kept_certificates.listed(entries, view.certificate["hash"] if view.certificate else "")
    while True:
        _status(view, state)
        board.draw(view.report)
        if view.ended:
            break
        time.sleep(REDRAW_S)
        view = shown.view()
    if live:
        st.rerun()


def _status(view: VerifyView, place: DeltaGenerator) -> None:
    found = view.report
    done, total = found.progress
    seconds = f"{view.elapsed_s:,.0f} s"
    if not view.ended:
        words = f"{_doing(view)} · {done} of {total} checks · {seconds}"
        place.progress(min(1.0, done / total) if total else 0.0, text=escape(words))
        return
    with place.container():
        if view.error:
            notices.ended(view.state, view.error, "verify_job")
        subject = f"{count(len(found.samples), 'sample')}, {count(found.runs, 'warm run')}"
        ended = {"done": "Ended", "failed": "Failed", "cancelled": "Cancelled"}[view.state]
        words = f"{ended} after {seconds} · {count(done, 'check')} · {subject}"
        st.caption(words)
        if view.unkept:
            notices.notice(view.unkept, "unkept")


def _doing(view: VerifyView) -> str:
    model, sample, what = view.doing
    if view.state == "queued" or not model:
        return queued(view.position) if view.position else "Starting"
    names = short_names([sample.id for sample in view.request.samples])
    where = f", sample {names.get(sample, sample)}" if sample else ""
    return f"{registry.label(model)}{where}: {what}"


def main() -> None:
    followed_runs.keep_alive()
    entries = entries_or_stop()
    with st.sidebar:
        choice = choose_all(entries)
    st.title("Verify", anchor=False)
    shown = JOB.shown()
    live = shown is not None and not shown.ended
    with st.container():
        buttons(choice, shown, live)
    show_job(shown, live, entries)


preparation.through_app()
main()
