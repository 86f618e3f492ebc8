"""The section "Draft" of the Compare page: one model's tokens, or the text's own, as drafts.

Boundary: widgets and the drafting job's view; the figures and their sentences are the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from engine.errors import StageScopeError
from engine.jobs.draft_job import DraftJob, DraftView
from engine.models.checkpoint import ModelEntry
from engine.pipeline import draft_results
from engine.pipeline.draft_results import LOOKUP, MAX_GAMMA, DraftReport, DraftRequest, SampleTrial
from engine.prompts import OFF_SCRIPT
from engine.types import RunOptions, Sample
from ui.compare import drafted_text
from ui.widgets import notices, uploads
from ui.widgets.followed_job import Followed
from ui.widgets.text import count, escape, name_of

JOB = Followed("compare_draft_job", DraftJob)
LOOK_S = 0.5  # each look takes the processor from what is being timed
TARGET, DRAFT = "compare_draft_target", "compare_draft_by"
GAMMA, RUNS = "compare_draft_gamma", "compare_draft_runs"
LOOKUP_WORDS = "Prompt lookup (no model)"
WHAT = (
    "Something cheap drafts some tokens, and the target reads them in one pass: it keeps what it "
    "would have said itself, up to the first other token. The answer is the target's own greedy "
    "answer; whether it comes sooner is measured here, in pairs with the target alone."
)
FIGURES = {
    "Tokens per pass": "Tokens that one pass of the target added to the answer, in the mean.",
    "Accepted": "Drafted tokens that the target took over, per pass, in the mean.",
    "Measured": "Time from the first to the last token: the target alone / drafted, median of "
    "pairs. Above 1 drafting is faster.",
    "Predicted": "By the acceptance analysis, from both models' separate answers: "
    "(1 + g W) / (c g + 1).",
    "Predicted in the loop": "From what was accepted here: tokens per pass / (c d + 1). Both "
    "predictions suppose that a pass over several tokens costs what one token does.",
    "Whole run": "Start to last token, the draft model's own pictures and prefill included.",
}


def section(
    sample: Sample | None,
    models: Sequence[ModelEntry],
    question: str,
    options: RunOptions,
) -> None:
    """The widgets, closed until they are asked for, and what the last drafting gave."""
    job = JOB.shown()
    if sample is None or not models:
        return
    with st.expander("Draft", expanded=job is not None, key="compare_draft"):
        notices.small(WHAT, "draft_what")
        target, draft, gamma, runs = _choose(models)
        live = job is not None and not job.ended
        with st.container(horizontal=True):
            pressed = st.button("Draft", key="compare_draft_run", disabled=live)
            st.button("Cancel", key="compare_draft_cancel", on_click=JOB.cancel, disabled=not live)
        if pressed:
            what = (target, draft, gamma, question, options.decode, runs)
            shown = (options.frames, options.pixels, options.extent)
            _start(lambda: DraftRequest((sample,), *what, *shown))
        if JOB.lost():
            notices.notice(
                "This link's drafting is no longer in memory: press Draft.", "draft_lost"
            )
        if live:
            _follow()
        elif job is not None:
            _ended(job.view())


def _choose(models: Sequence[ModelEntry]) -> tuple[str, str, int, int]:
    labels = {entry.name: entry.label for entry in models} | {LOOKUP: LOOKUP_WORDS}
    names = [entry.name for entry in models]
    first = next((entry.name for entry in models if entry.kind == "video"), names[0])
    left, middle, right, last = st.columns(4, vertical_alignment="bottom")
    target = left.selectbox(
        "Target",
        names,
        names.index(first),
        format_func=labels.__getitem__,
        key=TARGET,
        bind="query-params",
        help="Whose answer it is. Choose models in the sidebar.",
    )
    others = [*(name for name in names if name != target), LOOKUP]
    draft = middle.selectbox(
        "Drafted by",
        others,
        format_func=labels.__getitem__,
        key=DRAFT,
        bind="query-params",
        help="A model that shares the target's vocabulary, or the text so far: what followed its "
        "last words earlier.",
    )
    gamma = right.number_input(
        "Tokens drafted at once",
        1,
        MAX_GAMMA,
        DraftRequest.gamma,
        key=GAMMA,
        bind="query-params",
    )
    runs = last.number_input("Timed pairs", 1, 20, DraftRequest.runs, key=RUNS, bind="query-params")
    return str(target), str(draft), int(gamma), int(runs)


def _start(make: Callable[[], DraftRequest]) -> None:
    try:
        request = make()
    except StageScopeError as error:
        notices.problem(str(error), "draft")
        return
    JOB.start(DraftJob(request=request, owner=uploads.owner(request.samples[0])))
    st.rerun()


@st.fragment(run_every=LOOK_S)
def _follow() -> None:
    """Looks now and then; at its end the whole page is drawn again, with the buttons."""
    job = JOB.shown()
    if job is None or job.ended:
        st.rerun()
    view = job.view()
    st.progress(view.done / view.total, text=_doing(view))


def _doing(view: DraftView) -> str:
    if view.state == "queued":
        return (
            f"Waiting: {count(view.position, 'job')} before this one" if view.position else "Next"
        )
    if view.state == "loading":
        return "Loading the models …"
    return f"Round {view.done + 1:,} of {view.total:,}, the first to warm up"


def _ended(view: DraftView) -> None:
    request = view.request
    subject = f"{name_of(request.samples[0])}: {request.prompt}"
    how = f"{request.target}, drafted by {request.draft}, up to {request.gamma} tokens at once"
    notices.small(f"{subject}\n{how}; {request.how}", "draft_subject")
    if view.report is None:
        show = notices.problem if view.state == "failed" else notices.notice
        show(view.error, "draft_error")
        return
    (notices.notice if view.report.equal else notices.problem)(
        draft_results.sentence(view.report), "draft_outcome"
    )
    for name in view.report.off_script:
        notices.notice(f"{name}: {OFF_SCRIPT}", f"draft_off_script_{name}")
    with st.container(horizontal=True, gap="small"):
        for name, value in figures(view.report).items():
            st.metric(name, escape(value), help=FIGURES[name], width="content")
    _answer(view.report.samples[0])
    _details(view.report)


def figures(found: DraftReport) -> dict[str, str]:
    """Headline figures in a fixed order; what cannot be known is a dash."""
    speedup = found.predicted.speedup if found.predicted else None
    return {
        "Tokens per pass": _number(found.tokens_per_pass),
        "Accepted": _number(found.mean_accepted),
        "Measured": _times(found.measured.median if found.measured else None),
        "Predicted": _times(speedup.value if speedup else None),
        "Predicted in the loop": _times(found.own_prediction),
        "Whole run": _times(found.whole.median),
    }


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _times(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}x"


def _answer(one: SampleTrial) -> None:
    st.html(drafted_text.page(one.marks))
    notices.small(drafted_text.words(one.marks), "draft_counts")
    if one.difference is None:
        notices.small("The drafted answer is the target's own, token by token.", "draft_equal")
        return
    found = one.difference
    words = (
        f"Token {found.position + 1:,} is {found.drafted!r} and not {found.alone!r}: logits "
        f"{found.logits[1]:.4g} and {found.logits[0]:.4g}, rounding {found.rounding:.2g}"
    )
    show = notices.notice if found.tied else notices.problem
    show(f"{words}; {'a tie' if found.tied else 'not a tie'}.", "draft_difference")


def _details(found: DraftReport) -> None:
    rates = ", ".join(_number(rate) for rate in found.rates)
    lines = [f"Accepted by position in the draft: {rates}."]
    if found.pass_cost is not None:
        lines.append(
            f"A pass of the target over a draft costs {found.pass_cost:.2f} of its single tokens."
        )
    notices.small(" ".join(lines), "draft_details")
