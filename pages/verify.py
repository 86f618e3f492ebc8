"""Verify: is decoupled inference the model's own inference, on this machine and now?

Boundary: puts the parts of ui/verify on the page.  The work is a job of the engine's queue, so
nothing here is lost when the page is drawn again.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine import certificates
from engine.errors import BadInput, StageScopeError
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.verify_job import VerifyJob, VerifyView
from ui import cards, front, links, runs
from ui.knobs import run_and_cancel
from ui.text import count, escape
from ui.verify import job, kept, report
from ui.verify.board import Board
from ui.verify.choice import Choice, choose_all

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
    other = job.running()
    with st.container(horizontal=True, vertical_alignment="center"):
        run = ("Verify", "verify_run")
        pressed = run_and_cancel("verify", run, live, choice.ready, job.cancel)
        if other is not None and other is not shown:
            st.button("Show the one running", key="verify_other", on_click=job.show, args=(other,))
    if pressed:
        start(choice)


def start(choice: Choice) -> None:
    links.forget()
    try:
        assert choice.dataset is not None  # the button is disabled otherwise
        job.start(choice.request(), str(choice.dataset.root))
    except StageScopeError as error:
        cards.problem(str(error), "verify")
        return
    kept.close()
    st.rerun()


def show_certificate(entries: Sequence[ModelEntry]) -> bool:
    """The certificate that the link names; False if it names none."""
    if not kept.asked():
        return False
    found = kept.opened()
    if found is None:
        cards.notice(
            f"No certificate {kept.asked()[: certificates.SHOWN]!r} is kept here: choose one of "
            "those below.",
            "no_certificate",
        )
        return False
    try:
        read = report.of_certificate(found)
        kept.head(found, entries)
        Board(read, entries)
    except BadInput as error:
        cards.problem(str(error), "certificate")
    return True


def show_job(shown: VerifyJob | None, entries: Sequence[ModelEntry]) -> None:
    """The verification as it stands, followed to its end, above the earlier certificates."""
    if shown is None:
        if job.lost():
            cards.notice(
                "This link's verification is no longer in memory: open its certificate below, or "
                "press Verify to repeat it.",
                "lost",
            )
        cards.hint(EMPTY)
        kept.listed(entries)
        return
    state = st.empty()
    view = shown.view()
    board = Board(report.of_view(view), entries)
    kept.listed(entries)

    def draw(now: VerifyView) -> None:
        _status(now, state)
        board.draw(report.of_view(now))

    if job.follow(shown, draw):
        st.rerun()


def _status(view: VerifyView, place: st.delta_generator.DeltaGenerator) -> None:
    """How far it is, or how it ended."""
    found = report.of_view(view)
    done, total = found.progress
    seconds = f"{view.elapsed_s:,.0f} s"
    if not view.ended:
        words = f"{doing(view, found)} · {done} of {total} checks · {seconds}"
        place.progress(min(1.0, done / total) if total else 0.0, text=escape(words))
        return
    with place.container():
        if view.error:
            show = cards.problem if view.state == "failed" else cards.notice
            show(view.error, "verify_job")
        subject = f"{count(len(found.samples), 'sample')}, {count(found.runs, 'warm run')}"
        ended = {"done": "Ended", "failed": "Failed", "cancelled": "Cancelled"}[view.state]
        words = f"{ended} after {seconds} · {count(done, 'check')} · {subject}"
        if view.certificate is not None:
            words += f" · certificate {view.certificate['hash'][: certificates.SHOWN]}"
        st.caption(words)
        if view.unkept:
            cards.notice(view.unkept, "unkept")


def doing(view: VerifyView, found: report.Report) -> str:
    """What is done now, in words."""
    model, sample, what = view.doing
    if view.state == "queued" or not model:
        if view.position:
            return f"Waiting: {count(view.position, 'job')} before this one"
        return "Starting"
    names = report.short_names(found.samples)
    where = f", sample {names.get(sample, sample)}" if sample else ""
    return f"{model}{where}: {what}"


def main() -> None:
    runs.keep_alive()
    try:
        entries = registry.entries()
    except StageScopeError as error:
        cards.problem(str(error), "models_file")
        st.stop()
    links.remember()
    with st.sidebar:
        choice = choose_all(entries)
    st.title("Verify", anchor=False)
    st.caption(
        "Is what StageScope times the model's own inference? Proved on this machine, for the "
        "chosen models and samples."
    )
    shown = job.shown()
    buttons(choice, shown)
    if job.fresh():
        return
    if show_certificate(entries):
        kept.listed(entries)
    else:
        show_job(shown, entries)


front.through_app()
main()
