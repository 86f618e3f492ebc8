"""The section "Draft" of the Compare page: speculative decoding with a model or prompt lookup."""

from collections import Counter
from collections.abc import Sequence
from html import escape as escape_html

import streamlit as st

from engine.analysis import drafting
from engine.analysis.drafting import DraftReport
from engine.jobs.model_work import DraftJob
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.pipeline.drafts import LOOKUP, MAX_GAMMA, AnswerPiece, DraftRequest
from engine.prompts import OFF_SCRIPT
from engine.quoting import NONE, printable, times
from engine.types import RunOptions, Sample
from ui.widgets import choices, followed_runs, notices, uploads
from ui.widgets.followed_runs import Followed
from ui.widgets.text import escape, name_of

JOB = Followed("compare_draft_job", DraftJob)
LOOK_S = 0.5  # each update uses the CPU that is being timed
TARGET, DRAFT = "compare_draft_target", "compare_draft_by"
GAMMA, RUNS = "compare_draft_gamma", "compare_draft_runs"
LOOKUP_WORDS = "Prompt lookup (no model)"
TARGET_HELP = "The model that answers. Choose models in the sidebar."
DRAFT_HELP = (
    "A model with the target's vocabulary, or prompt lookup: the tokens that followed the last "
    "words earlier in the text."
)
WHAT = (
    "A cheap draft proposes several tokens and the target checks them in one pass: it keeps those "
    "that it would have chosen itself, up to the first difference. The answer is the target's own "
    "greedy answer. The speed is measured here, in pairs with the target alone."
)
FIGURES = {
    "Tokens per pass": "Mean number of tokens that one pass of the target adds to the answer.",
    "Accepted": "Mean number of drafted tokens that the target accepts per pass.",
    "Measured": "Time from first to last token: the target alone / drafted, median of pairs. "
    "Above 1, drafting is faster.",
    "Predicted": "From the acceptance in both models' separate answers: (1 + g W) / (c g + 1).",
    "Predicted in the loop": "From the tokens accepted here: tokens per pass / (c d + 1). Both "
    "predictions assume that a pass over several tokens costs as much as one token.",
    "Whole run": "As Measured, but from the start of the run, including the draft model's own "
    "pictures and prefill.",
}
# The states of a token of a drafted answer; each has its own underline, so that colours need not
# be seen.
DRAFTED = {
    "accepted": "drafted and accepted",
    "rejected": "drafted and rejected: not part of the answer",
    "own": "the target's own",
}


def section(
    sample: Sample, models: Sequence[ModelEntry], question: str, options: RunOptions
) -> None:
    job = JOB.shown()
    notices.small(WHAT, "draft_what")
    names = {entry.name: entry.label for entry in models}
    first = next((entry.name for entry in models if entry.kind == "video"), models[0].name)
    left, middle, right, last = st.columns(4, vertical_alignment="bottom")
    target = choices.listed("Target", names, TARGET, left, first, help=TARGET_HELP)
    others = {name: label for name, label in names.items() if name != target}
    others[LOOKUP] = LOOKUP_WORDS
    draft = choices.listed("Drafted by", others, DRAFT, middle, help=DRAFT_HELP)
    title = "Tokens drafted at once"
    gamma = choices.number(title, GAMMA, 1, MAX_GAMMA, DraftRequest.gamma, place=right)
    runs = choices.number("Timed pairs", RUNS, 1, 20, DraftRequest.runs, place=last)
    live = job is not None and not job.ended
    if live:
        st.button("Cancel", key="compare_draft_cancel", on_click=JOB.cancel)
    elif st.button("Draft", key="compare_draft_run"):
        what = (target, draft, int(gamma), question, options.decode, int(runs))
        with notices.telling("draft", notices.problem):
            request = DraftRequest((sample,), *what, **vars(options.media))
            JOB.start(DraftJob(request=request, owner=uploads.owner(sample)))
            st.rerun()
    if JOB.lost():
        notices.notice(
            "The drafting in this link is no longer in memory: press Draft.", "draft_lost"
        )
    if job is not None and live:
        followed_runs.bar(job, LOOK_S, _doing)
    elif job is not None:
        _ended(job)


def _doing(job: DraftJob) -> str:
    done, total = job.progress
    words = f"Round {done + 1:,} of {total:,} (the first is a warm-up)"
    return "Loading the models …" if job.state == "loading" else words


def _ended(job: DraftJob) -> None:
    request = job.request
    target = registry.label(request.target)
    draft = LOOKUP_WORDS if request.draft == LOOKUP else registry.label(request.draft)
    subject = f"{name_of(request.samples[0])}: {request.prompt}"
    how = f"{target}, drafted by {draft}, up to {request.gamma} tokens at once"
    notices.small(f"{subject}\n{how}; {request.how}", "draft_subject")
    if job.report is None:
        notices.ended(job.state, job.error, "draft_error")
        return
    show = notices.notice if job.report.equal else notices.problem
    show(drafting.sentence(job.report), "draft_outcome")
    for name in job.report.off_script:
        notices.notice(f"{registry.label(name)}: {OFF_SCRIPT}", f"draft_off_script_{name}")
    with st.container(horizontal=True, gap="small"):
        for name, value in figures(job.report).items():
            st.metric(name, escape(value), help=FIGURES[name], width="content")
    tried = job.report.samples[0]
    notices.each(tried.notes, "draft_note")
    st.html(drafted_html(tried.marks))
    counts = Counter[str](mark.state for mark in tried.marks)
    counted = (f"{words}: {counts[state]:,}" for state, words in DRAFTED.items())
    notices.small("; ".join(counted), "draft_counts")
    if (found := tried.difference) is None:
        notices.small("The drafted answer equals the target's own, token by token.", "draft_equal")
    else:
        words = (
            f"Token {found.position + 1:,} is {found.drafted!r} instead of {found.alone!r}: logits "
            f"{found.logits[1]:.4g} and {found.logits[0]:.4g}, rounding {found.rounding:.2g}"
        )
        show = notices.notice if found.tied else notices.problem
        show(f"{words}; {'a tie' if found.tied else 'not a tie'}.", "draft_difference")
    rates = ", ".join(map(_number, job.report.rates))
    lines = [f"Accepted by position in the draft: {rates}."]
    if (cost := job.report.pass_cost) is not None:
        lines.append(f"A pass over a draft costs as much as {cost:.2f} single tokens.")
    notices.small(" ".join(lines), "draft_details")


def figures(found: DraftReport) -> dict[str, str]:
    """Headline figures in a fixed order; an unknown one is a dash."""
    speedup = found.predicted.speedup if found.predicted else None
    return {
        "Tokens per pass": _number(found.tokens_per_pass),
        "Accepted": _number(found.mean_accepted),
        "Measured": times(found.measured.median if found.measured else None),
        "Predicted": times(speedup.value if speedup else None),
        "Predicted in the loop": times(found.own_prediction),
        "Whole run": times(found.whole.median),
    }


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def drafted_html(marks: Sequence[AnswerPiece]) -> str:
    """Legend and text of a drafted answer; rejected tokens are struck through."""
    tags = {"rejected": "del"}
    legend = "".join(
        f'<span><b class="painted-{state}">{"<del>abc</del>" if state in tags else "abc"}</b> '
        f"{words}</span>"
        for state, words in DRAFTED.items()
    )
    pieces = ""
    for mark in marks:
        tag, title = tags.get(mark.state, "span"), DRAFTED[mark.state]
        text = escape_html(printable(mark.text))
        pieces += f'<{tag} class="painted-{mark.state}" title="{title}">{text}</{tag}>'
    return f'<div class="painted-legend">{legend}</div><div class="painted">{pieces}</div>'
