"""Verify: is decoupled inference the model's own inference, on this machine and now?

Boundary: puts the parts of ui/verify on the page.  The work is a job of the engine's queue, so
nothing here is lost when the page is drawn again.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine.errors import BadInput, StageScopeError
from engine.jobs.verify_job import VerifyJob, VerifyView
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.verify import certificates
from ui.verify import kept_certificates, report_view, verify_job_view
from ui.verify.verdict_board import Board
from ui.verify.verify_choice import Choice, choose_all
from ui.widgets import first_visit, followed_runs, links, notices
from ui.widgets.run_settings import run_and_cancel
from ui.widgets.text import count, escape

EMPTY = (
    "Press Verify (Ctrl+Enter). Each chosen model then answers the same question in five ways: by "
    "its own generate() on pixels, by the same under the probe, decoupled (features encoded once, "
    "put on disk, read back), from given features and going on from a prefix that another question "
    "left in memory. Every check says what it found and shows its evidence; what cannot be told "
    "apart from noise stays open. A certificate keeps the result."
)


def buttons(choice: Choice, shown: VerifyJob | None) -> None:
    """Verify and Cancel.  A pressed Verify starts the page over, so that the buttons know of it."""
    live = shown is not None and not shown.ended
    other = verify_job_view.running()
    with st.container(horizontal=True, vertical_alignment="center"):
        run = ("Verify", "verify_run")
        pressed = run_and_cancel("verify", run, live, choice.ready, verify_job_view.cancel)
        if other is not None and other is not shown:
            st.button(
                "Show the one running",
                key="verify_other",
                on_click=verify_job_view.show,
                args=(other,),
            )
    if pressed:
        start(choice)


def start(choice: Choice) -> None:
    links.forget()
    try:
        assert choice.dataset is not None  # the button is disabled otherwise
        verify_job_view.start(choice.request(), str(choice.dataset.root))
    except StageScopeError as error:
        notices.problem(str(error), "verify")
        return
    kept_certificates.close()
    st.rerun()


def show_certificate(entries: Sequence[ModelEntry]) -> bool:
    """The certificate that the link names; False if it names none."""
    if not kept_certificates.asked():
        return False
    found = kept_certificates.opened()
    if found is None:
        notices.notice(
            f"No certificate {kept_certificates.asked()[: certificates.SHOWN]!r} is kept here: "
            "choose one of those below.",
            "no_certificate",
        )
        return False
    try:
        read = report_view.of_certificate(found)
        kept_certificates.head(found, entries)
        Board(read, entries)
    except BadInput as error:
        notices.problem(str(error), "certificate")
    return True


def show_job(shown: VerifyJob | None, entries: Sequence[ModelEntry]) -> None:
    """The verification as it stands, followed to its end, above the earlier certificates."""
    if shown is None:
        if verify_job_view.lost():
            notices.notice(
                "This link's verification is no longer in memory: open its certificate below, or "
                "press Verify to repeat it.",
                "lost",
            )
        notices.hint(EMPTY)
        kept_certificates.listed(entries)
        return
    state = st.empty()
    view = shown.view()
    board = Board(report_view.of_view(view), entries)
    kept_certificates.listed(entries)

    def draw(now: VerifyView) -> None:
        _status(now, state)
        board.draw(report_view.of_view(now))

    if verify_job_view.follow(shown, draw):
        st.rerun()


def _status(view: VerifyView, place: st.delta_generator.DeltaGenerator) -> None:
    """How far it is, or how it ended."""
    found = report_view.of_view(view)
    done, total = found.progress
    seconds = f"{view.elapsed_s:,.0f} s"
    if not view.ended:
        words = f"{doing(view, found)} · {done} of {total} checks · {seconds}"
        place.progress(min(1.0, done / total) if total else 0.0, text=escape(words))
        return
    with place.container():
        if view.error:
            show = notices.problem if view.state == "failed" else notices.notice
            show(view.error, "verify_job")
        subject = f"{count(len(found.samples), 'sample')}, {count(found.runs, 'warm run')}"
        ended = {"done": "Ended", "failed": "Failed", "cancelled": "Cancelled"}[view.state]
        words = f"{ended} after {seconds} · {count(done, 'check')} · {subject}"
        if view.certificate is not None:
            words += f" · certificate {view.certificate['hash'][: certificates.SHOWN]}"
        st.caption(words)
        if view.unkept:
            notices.notice(view.unkept, "unkept")


def doing(view: VerifyView, found: report_view.Report) -> str:
    """What is done now, in words."""
    model, sample, what = view.doing
    if view.state == "queued" or not model:
        if view.position:
            return f"Waiting: {count(view.position, 'job')} before this one"
        return "Starting"
    names = report_view.short_names(found.samples)
    where = f", sample {names.get(sample, sample)}" if sample else ""
    return f"{model}{where}: {what}"


def main() -> None:
    followed_runs.keep_alive()
    try:
        entries = registry.entries()
    except StageScopeError as error:
        notices.problem(str(error), "models_file")
        st.stop()
    links.remember()
    with st.sidebar:
        choice = choose_all(entries)
    st.title("Verify", anchor=False)
    st.caption(
        "Is what StageScope times the model's own inference? Proved on this machine, for the "
        "chosen models and samples."
    )
    shown = verify_job_view.shown()
    buttons(choice, shown)
    if verify_job_view.fresh():
        return
    if show_certificate(entries):
        kept_certificates.listed(entries)
    else:
        show_job(shown, entries)


first_visit.through_app()
main()
