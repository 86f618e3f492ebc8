"""What Compare folds away below the answers: a row of tabs, of which only the open one is drawn."""

from collections.abc import Mapping, Sequence

import streamlit as st
from msgspec import structs

from engine.analysis.compared import ComparedModel
from engine.analysis.model_summary import STAGE_MEANING
from engine.models.checkpoint import ModelEntry
from engine.storage.result_rows import ResultRow
from engine.types import RunOptions, Sample
from ui.compare import agreement_view, draft_panel, explain_panel, recording_view, run_bars
from ui.compare.card_board import found_verdict
from ui.widgets import blocks, followed_runs, notices
from ui.widgets.text import ms, name_of

KEY, WHY = explain_panel.TAB
TIMES, AGREEMENT, SEEN, DRAFT = "Times and replay", "Agreement", "What each model saw", "Draft"
TABS = (TIMES, AGREEMENT, SEEN, WHY, DRAFT)
REPLAY = "compare_replay"  # in the URL
REPLAY_HELP = "At the recorded times: stages, tokens and totals appear when they did, or slower."


def show(
    by_name: Mapping[str, ModelEntry],
    sample: Sample | None,
    chosen: Sequence[ModelEntry],
    question: str,
    options: RunOptions,
    running: bool,
) -> None:
    """The tabs of the shown runs; without runs those of what is chosen."""
    views = [view for view in followed_runs.views() if view.model in by_name]
    compared = followed_runs.compared(by_name)
    if not views and (sample is None or not chosen):
        return
    # The cards have the sample of the shown runs; the window and the draft follow the sidebar.
    shown = views[0].request.sample if views else sample
    models = [by_name[view.model] for view in views] or chosen
    how = views[0].request.how.media if views else options.media
    for name, place in zip(TABS, st.tabs(TABS, key=KEY, bind="query-params"), strict=True):
        if not place.open:
            continue
        with place:
            if name == SEEN and shown is not None:
                recording_view.rates(sample, chosen, options)
                recording_view.seen(shown, models, how)
            elif running:
                st.caption("Models are running: this opens when all have ended.")
            elif name == DRAFT:
                if sample is None or not chosen:
                    st.caption("A draft needs a sample and a model: choose them in the sidebar.")
                else:
                    draft_panel.section(sample, chosen, question, options)
            elif name == WHY:
                explain_panel.section(by_name)
            elif not compared:
                st.caption(explain_panel.NOTHING)
            elif name == AGREEMENT:
                agreement_view.section(compared, compared[0].last.request.sample)
            else:
                _times(compared, by_name)


def _times(compared: Sequence[ComparedModel], by_name: Mapping[str, ModelEntry]) -> None:
    from engine.report import answer_part, charts  # import much, which the first page lacks

    found = found_verdict(followed_runs.views(), by_name)
    notices.each(found.notes, "verdict", notices.small)
    if found.split is not None:
        apart = ms(found.split.b_ms - found.split.a_ms)
        st.subheader(f"The {apart} between the first two, in parts", anchor=False)
        steps = charts.split_steps(found.split)
        st.altair_chart(charts.waterfall(steps), alt=charts.waterfall_words(steps))
    rows = []
    for one in compared:
        row = ResultRow.from_result(one.middle)
        notes = (*row.notes, *filter(None, [one.total.words]))
        rows.append((one.label, structs.replace(row, notes=notes)))
    request = compared[0].last.request
    repeated = any(len(one.counted) > 1 for one in compared)
    playing = st.query_params.get(REPLAY) == "true"
    title = f"Play {'the median run' if repeated else 'the run'} of each model"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Close the replay" if playing else title,
            key="compare_play",
            type="primary",
            help=REPLAY_HELP,
            on_click=st.query_params.update,
            args=({REPLAY: str(not playing).lower()},),
        )
        if st.button("Copy the answers", key="compare_copy"):
            whole = "\n\n".join(f"{one.label}:\n{one.last.generation.text}" for one in compared)
            asked = f"{name_of(request.sample)}: {request.prompt}"
            notices.copied(f"{asked}\n\n{whole}\n", "answers.txt")
    if playing:
        scheme = st.context.theme.type or "light"
        page = answer_part.page(name_of(request.sample), request.prompt, rows, scheme)
        st.iframe(page, height=600, alt="Replay of recorded times")  # it sets its own height
    blocks.draw((run_bars.table(compared),), "compare_times")
    meanings = "; ".join(f"{name}: {words}" for name, words in STAGE_MEANING.items())
    st.caption(f"{meanings}. Of several runs: the times of the one with the median total.")
