"""Verify: does StageScope run and time the model's own inference, on this machine?"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.jobs.model_work import VerifyJob
from engine.media.dataset import Dataset
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.prompts import MAX_QUESTION_CHARS
from engine.types import OPTIONS
from engine.verify.report import Report
from engine.verify.verdict import MAX_RUNS, MAX_TOKENS, MIN_TOKENS, VerifyRequest, choose
from ui.verify import verdict_board
from ui.widgets import choices, dataset_picker, followed_runs, links, notices, preparation
from ui.widgets.choices import pick, run_and_cancel
from ui.widgets.followed_runs import Followed
from ui.widgets.model_picker import entries_or_stop, pick_loadable_models, unasked_hosts
from ui.widgets.text import count, escape, names_of, queued

JOB = Followed("verify_job", VerifyJob)  # in the session and in the URL
REDRAW_S = 0.2  # each update uses the CPU that is being timed
SAMPLES = 3
SAMPLES_HELP = "Evenly spread over the dataset, because neighbouring samples overlap."
RUNS_HELP = "Timed warm runs of each kind, after a first run that is kept apart."
TOKENS = replace(OPTIONS["max_new_tokens"], low=MIN_TOKENS, high=MAX_TOKENS,
                 help="Longer answers compare more tokens and take longer.")  # fmt: skip
EMPTY = (
    "Verify checks that StageScope runs and times the model's own inference on this machine. Press "
    "Verify (Ctrl+Enter). Each chosen model then answers the same question in four ways: its "
    "own generate() on pixels; the same with the probe; decoupled (features encoded once, saved to "
    "disk, read back); and from given features. Every check shows its result and its evidence. A "
    "result that cannot be told apart from noise stays open. The outcome is saved as a "
    "certificate. A served model is compared with the same checkpoint on this machine."
)


def buttons(
    dataset: Dataset | None, asked: Mapping[str, Any], shown: VerifyJob | None, live: bool
) -> None:
    """Verify and Cancel.  Pressing Verify reruns the page, which updates both buttons."""
    running = JOB.live()  # of any visitor
    with st.container(horizontal=True, vertical_alignment="center"):
        unasked = unasked_hosts("verify", [registry.entry(name) for name in asked["models"]])
        ready = dataset is not None and bool(asked["models"]) and not unasked
        pressed = run_and_cancel("verify", "Verify", "verify_run", live, ready, JOB.cancel)
        if running and running[-1] is not shown:
            label, other = "Show the running verification", running[-1]
            st.button(label, key="verify_other", on_click=JOB.show, args=(other,))
    if not pressed or dataset is None:
        return
    links.forget()
    with notices.telling("verify", notices.problem):
        JOB.start(VerifyJob(request=VerifyRequest(**asked), dataset=str(dataset.root)))
        st.rerun()


def show_job(shown: VerifyJob | None, live: bool, entries: Sequence[ModelEntry]) -> None:
    """The shown verification, followed to its end, above the certificates; live: what the buttons
    show.  Streamlit may end this loop at any call to draw (a click, a closed tab): the job goes on.
    """
    if shown is None:
        with st.container():
            if JOB.lost():
                notices.notice(
                    "The verification in this link is no longer in memory: open its certificate "
                    "below, or press Verify to repeat it.",
                    "lost",
                )
            notices.hint(EMPTY)
        verdict_board.listed(entries)
        return
    state = st.empty()
    board = verdict_board.Board(shown.report, entries, "verify")
    verdict_board.listed(entries, shown.certificate["hash"] if shown.certificate else "")
    while True:
        ended, found = shown.ended, shown.report
        _status(shown, ended, found, state)
        board.draw(found)
        if ended:
            break
        time.sleep(REDRAW_S)
    if live:
        st.rerun()


def _status(job: VerifyJob, ended: bool, found: Report, place: DeltaGenerator) -> None:
    done, total = found.progress
    seconds = f"{job.elapsed_s:,.0f} s"
    if not ended:
        words = f"{_doing(job)} · {done} of {total} checks · {seconds}"
        place.progress(followed_runs.share(found.progress), text=escape(words))
        return
    with place.container():
        if job.error:
            notices.ended(job.state, job.error, "verify_job")
        subject = f"{count(len(found.samples), 'sample')}, {count(found.runs, 'warm run')}"
        how = {"done": "Ended", "failed": "Failed", "cancelled": "Cancelled"}[job.state]
        told = "" if job.state == "done" else f"{count(done, 'check')} · "  # the report has it
        st.caption(f"{how} after {seconds} · {told}{subject}")
        if job.unkept:
            notices.notice(job.unkept, "unkept")


def _doing(job: VerifyJob) -> str:
    model, sample, what = job.step
    if job.state == "queued" or not model:
        return queued(job.position) if job.position else "Starting"
    where = f", sample {names_of(job.request.samples)[sample]}" if sample else ""
    return f"{registry.label(model)}{where}: {what}"


def main() -> None:
    entries = entries_or_stop()
    with st.sidebar:
        dataset = dataset_picker.choose("verify")
        models = pick_loadable_models(entries, "verify")
        # What a VerifyRequest takes.
        asked: dict[str, Any] = {"models": tuple(model.name for model in models), "samples": ()}
        if dataset is None:  # keeps a link's number while the demo scenes are made
            st.number_input("Samples", value=None, key="verify_no_samples", disabled=True)
        else:
            most = len(dataset.samples)
            label, usual = f"Samples (of {most:,})", min(SAMPLES, most)
            number = choices.number(label, "verify_samples", 1, most, usual, SAMPLES_HELP)
            asked["samples"] = choose(dataset.samples, int(number))
        usual = VerifyRequest.runs
        runs = choices.number("Warm runs", "verify_runs", 1, MAX_RUNS, usual, RUNS_HELP)
        asked["runs"] = int(runs)
        with st.expander("Question, length, pictures", key="verify_question_box"):
            key, most = "verify_question", MAX_QUESTION_CHARS
            asked["prompt"] = choices.question("Question", key, max_chars=most)
            usual = VerifyRequest.max_new_tokens
            asked["max_new_tokens"] = pick("verify", "max_new_tokens", usual, TOKENS)
            asked["extent"] = pick("verify", "extent", VerifyRequest.extent)
    st.title("Verify", anchor=False)
    shown = JOB.shown()
    live = shown is not None and not shown.ended
    with st.container():
        buttons(dataset, asked, shown, live)
    show_job(shown, live, entries)


preparation.through_app(main)
