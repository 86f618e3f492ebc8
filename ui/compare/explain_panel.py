"""What an answer rests on: a sentence of it is chosen; its explanation is followed and drawn.  The
words and the answer are a model's: they are shown as plain text."""

from collections.abc import Mapping, Sequence
from html import escape

import streamlit as st

from engine.attribution import explained, wording
from engine.attribution.explained import FILLS, ExplainOptions, ExplainRequest, Explanation, Fill
from engine.attribution.wording import NOT_SAID
from engine.errors import StageScopeError
from engine.jobs.model_work import ExplainJob
from engine.jobs.run_job import RunView
from engine.media.thumbnails import stamp_of
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.models.families import ANY_FAMILY
from engine.report.blocks import Paragraph
from engine.types import MediaKind, RunRequest
from ui.widgets import blocks, choices, contact_sheets, followed_runs, notices, uploads
from ui.widgets.followed_runs import EXPLAINED as JOB
from ui.widgets.followed_runs import explains
from ui.widgets.text import name_of

TAB = ("compare_tab", "Why this answer")  # the key of the row of tabs, and its label there
MODEL, SENTENCE, OWN = "compare_explain_model", "compare_explain_sentence", "compare_explain_words"
GRID, SIDE, FILL = "compare_explain_grid", "compare_explain_side", "compare_explain_fill"
REFINED, TIME = "compare_explain_refined", "compare_explain_time"
NOTHING = "There is no answer yet: press Run."
GRIDS = (4, 8, 16, 32)
WHOLE = 16  # of 16 coarse cells: the whole map is fine
FILL_WORDS: dict[Fill, str] = {"blur": "A blur", "neutral": "The mean colour"}
LOOK_S = 0.3
MOST_SENTENCES = 30
OWN_WORDS = "Own words …"
WHAT = (
    "Parts of the picture are removed one by one, the model sees what is left, and the chosen "
    "words lose probability where they rest on the part. Frames and event images are removed one "
    "by one too."
)
OTHER = (
    "This explanation is about an answer that the cards do not show now. The answer it explains "
    "is: {}"
)
TOGETHER = "A part counts together with its neighbours, so the order is not that of single losses."
SAME_MAP = "A part is removed from all pictures at once, so all show the same map."
GONE = "The explanation in this link is no longer in memory: choose the words again."


def section(by_name: Mapping[str, ModelEntry]) -> None:
    """The tab's content; nothing before the first answer."""
    views = [view for view in followed_runs.views() if view.result and view.text.strip()]
    job = JOB.linked()
    if not (views or job or JOB.lost()):
        st.caption(NOTHING)
        return
    labels = {name: entry.label for name, entry in by_name.items()}
    live = job is not None and not job.ended
    with st.container(key="compare_explain"):
        if views:
            _choose(views, labels, live)
        notices.said("explain", notices.problem)
        if job is None:
            if JOB.lost():
                notices.notice(GONE, "explain_lost")
        elif live:
            with st.container(key="explain_room"):
                followed_runs.bar(job, LOOK_S, _doing)
        else:
            _ended(job, views, labels)


def _choose(views: Sequence[RunView], labels: dict[str, str], live: bool) -> None:
    by_model = {view.model: view for view in views}
    if st.session_state.get(MODEL) not in by_model:
        st.session_state.pop(MODEL, None)
    left, right = st.columns([1, 3], vertical_alignment="bottom")
    shown = {name: labels.get(name, name) for name in by_model}
    model = left.selectbox("Answer of", list(shown), format_func=shown.__getitem__, key=MODEL)
    view = by_model[model or views[0].model]
    found = [*wording.sentences(view.text)[:MOST_SENTENCES], OWN_WORDS]
    words = right.selectbox("Sentence", found, key=SENTENCE) or found[0]
    if words == OWN_WORDS:
        hint = "A phrase or a word of the answer, or what the model might have said"
        words = st.text_input("Own words", key=OWN, placeholder=hint)
    why = _refusal(registry.find(view.model))
    with st.container(horizontal=True, vertical_alignment="center"):
        if live:
            st.button("Cancel", key="compare_explain_cancel", on_click=JOB.cancel)
        pressed = not live and st.button("Explain", key="compare_explain_run", disabled=bool(why))
        with st.popover("Settings", key="compare_explain_settings"):
            _settings()
        notices.small(why or _cost(view), "explain_cost")
    if pressed:
        notices.attempt("explain", _start, view, words)
        st.rerun()


def _settings() -> None:
    notices.small(WHAT, "explain_what")
    defaults = ExplainOptions()
    st.selectbox("Cells per side", GRIDS, GRIDS.index(defaults.grid), key=GRID, bind="query-params")
    title, help_ = "Removed together (cells per side)", "A part is removed with its neighbours."
    choices.number(title, SIDE, 1, max(GRIDS), defaults.side, help_)
    help_ = "Of pictures and frames. Events are dropped."
    fills = {fill: FILL_WORDS[fill] for fill in FILLS}
    choices.listed("Filled with", fills, FILL, default=defaults.fill, help=help_)
    help_ = "A map of 4 x 4 comes first; only its strongest parts are refined. 16: all of them."
    choices.number("Refined parts, of 16", REFINED, 1, WHOLE, defaults.refined, help_)
    st.toggle("Frames and event images too", defaults.time, key=TIME, bind="query-params")


def options() -> ExplainOptions:
    """The chosen settings; BadInput for those that do not fit together."""
    keys = {"grid": GRID, "side": SIDE, "fill": FILL, "refined": REFINED, "time": TIME}
    chosen = {name: st.session_state[key] for name, key in keys.items() if key in st.session_state}
    return ExplainOptions(**chosen)


def _refusal(entry: ModelEntry | None) -> str | None:
    try:
        return None if entry is None else registry.hooked_only(entry)
    except StageScopeError as error:
        return str(error)


def _cost(view: RunView) -> str:
    """The encodings, prefills and seconds, or why they are not known."""
    entry, run = registry.find(view.model), view.request
    if entry is None:
        return ""
    try:
        chosen = options()
        how = repr((run.sample.id, run.how.media, entry.kind))
        shown = _shown(run, entry.kind, how, stamp_of(run.sample))
    except StageScopeError as error:
        return str(error)
    batched = entry.family != ANY_FAMILY  # its adapters refuse batches
    return explained.cost_of(chosen, *shown, batched, entry.name).sentence


@st.cache_data(max_entries=64, show_spinner=False)
def _shown(_run: RunRequest, kind: MediaKind, how: str, stamp: str) -> tuple[int, bool]:
    from engine.attribution.occlusion import shown

    found = shown(_run, kind)
    return len(found.plain.images), found.raw


def _start(view: RunView, words: str) -> None:
    """Queues the explanation, or shows one that is there already; BadInput for a wrong choice."""
    assert view.result is not None
    request = ExplainRequest(view.request, words, view.result.generation.token_ids, options())
    if there := next((job for job in JOB.all() if job.found and job.request == request), None):
        JOB.show(there)
    else:
        JOB.start(ExplainJob(request=request, owner=uploads.owner(view.request.sample)))


def _doing(job: ExplainJob) -> str:
    done, of = job.progress
    words = f"{done:,} of {of:,} encodings" if of else "Starting …"
    return "Loading the model …" if job.state == "loading" else words


def _ended(job: ExplainJob, views: Sequence[RunView], labels: dict[str, str]) -> None:
    run = job.request.run
    subject = f"{labels.get(run.model, run.model)} · {name_of(run.sample)}: {run.prompt}"
    notices.small(subject, "explain_subject")
    if job.found is None:
        notices.ended(job.state, job.error, "explain_error")
        return
    if not any(explains(job, one) for one in views):
        notices.notice(OTHER.format(job.found.answer), "explain_other")
    draw(job.found, job.map, name_of(run.sample), "compare")


def draw(found: Explanation, picture: bytes, subject: str, key: str) -> None:
    """The whole explanation; `picture`: the map as a PNG, b"" if there is none."""
    from engine.report import explanation_part  # reports import much

    st.container(key=f"explained_words_{key}").text(found.words)
    if not found.said:
        notices.notice(NOT_SAID, f"explained_unsaid_{key}")
    # Read before the map: whether there is anything to see.
    show = notices.notice if wording.no_place(found) else notices.small
    show(found.chance.sentence, f"explained_chance_{key}")
    several = len(found.moments) > 1
    left, right = (st.container(), st.container()) if several else st.columns([3, 2], gap="medium")
    with left:
        if picture:
            address = contact_sheets.address(picture, "png")
            st.image(address, width="stretch", alt=wording.alt(found, subject))
            st.html(legend(found))
        else:
            st.caption("The pictures are not here, so there is no map.")
    with right:
        places, times = st.columns(2, gap="medium") if found.moments else (st.container(), None)
        losses = [cell.nats for cell in found.strongest[: wording.SHOWN]]
        more = [TOGETHER] if losses != sorted(losses, reverse=True) else []
        more += [SAME_MAP] if found.moments else []
        with places:
            text = " ".join((wording.plain(found), *more))
            blocks.draw((explanation_part.places(found), Paragraph(text)), f"explained_parts_{key}")
        if times is not None:
            noun = "Frames" if found.moments[0].label.startswith("frame") else "Event images"
            with times:
                st.markdown(f"**{noun}, one by one**")
                blocks.draw(explanation_part.moments(found), f"explained_moments_{key}")
    notes = [note for note in found.notes if note != NOT_SAID]
    with st.expander("What this does not prove", key=f"explained_limits_{key}"):
        notices.small("\n".join(f"• {line}" for line in wording.LIMITS), f"explained_limits_{key}")
        notices.small(wording.UNIT, f"explained_unit_{key}")
        notices.small("\n".join((wording.how(found), *notes)), f"explained_how_{key}")


def legend(found: Explanation) -> str:
    pale = " heat-pale" if wording.no_place(found) else ""
    low, high = escape(explained.nats_text(-found.most)), escape(explained.nats_text(found.most))
    return (
        f'<div class="heat-legend{pale}"><span>{low}</span><span class="heat-bar" role="img" '
        f'aria-label="Colours of the map, from {low} over 0 to {high}"></span>'
        f"<span>{high}: the words rest on it</span></div>"
    )
