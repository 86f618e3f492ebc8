"""The inputs of the shown runs: chips of changed settings, a table of all, what differs now."""

from collections.abc import Sequence

import streamlit as st
from markupsafe import Markup

from engine.report.answer_part import FORMULAS
from engine.report.blocks import Bullets, Table
from engine.types import OPTIONS, TITLES, RunOptions, RunRequest, Sample, value_of
from ui.widgets import blocks, contact_sheets, notices
from ui.widgets.text import name_of

RUN = "compare_run_changed"


def settings(options: RunOptions) -> dict[str, str]:
    return {TITLES[name]: words for name, words in options.settings.items()}


DEFAULTS = settings(RunOptions())


def changed(request: RunRequest) -> tuple[str, ...]:
    """The settings of a run that are not the default, in words."""
    found = settings(request.how)
    return tuple(words for name, words in found.items() if words != DEFAULTS[name])


def shared(requests: Sequence[RunRequest]) -> tuple[str, ...]:
    first, *others = [changed(request) for request in requests]
    return tuple(words for words in first if all(words in other for other in others))


def own(requests: Sequence[RunRequest], model: str) -> list[str]:
    """The changed settings that only some runs have, this model's among them."""
    found = [words for one in requests if one.model == model for words in changed(one)]
    common = shared(requests) if found else ()
    return [words for words in found if words not in common]


def row(subject: str, requests: Sequence[RunRequest]) -> None:
    """What was asked, the chips of all runs, and a button that shows every setting and formula."""
    notices.small(subject, "subject")
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="settings"):
        chips(shared(requests) or ("default settings",))
        with st.popover("All settings", key="compare_all_settings", on_change="rerun") as menu:
            if menu.open:
                meanings = tuple(f"{name}: {words}" for name, words in FORMULAS.items())
                blocks.draw((table(requests), Bullets(meanings)), "settings")


def chips(words: Sequence[str]) -> None:
    for one in words:
        st.badge(one, color="gray")


def table(requests: Sequence[RunRequest]) -> Table:
    """One row per setting: its value, a line per value if the runs differ, and the default."""
    found = [settings(request.how) for request in requests]
    rows = tuple(
        (name, Markup("<br>").join(dict.fromkeys(one[name] for one in found)), default)
        for name, default in DEFAULTS.items()
    )
    return Table("", ("Setting", "These runs", "Default"), rows, 3)


def changes(
    shown: Sequence[RunRequest], sample: Sample | None, chosen: Sequence[RunRequest]
) -> tuple[str, ...]:
    """What differs between the requests of the shown runs and the chosen ones, in words; without
    `chosen` ones, which cannot be run, the question and the settings are not compared."""
    if not shown:
        return ()
    first, found = shown[0], []
    if sample != first.sample:
        found.append("sample")
    if chosen and chosen[0].prompt != first.prompt:
        found.append("question")
    if {one.model for one in chosen} != {one.model for one in shown}:
        found.append("models")
    by_model = {one.model: one for one in shown}
    pairs = [(by_model[one.model], one) for one in chosen if one.model in by_model]
    found += [
        described.title.lower()
        for name, described in OPTIONS.items()
        if any(value_of(one.how, name) != value_of(other.how, name) for one, other in pairs)
    ]
    return tuple(found)


def banner(found: Sequence[str], sample: Sample | None, ready: bool) -> None:
    """The sentence, a preview of a newly chosen sample, and Run, which the page handles."""
    if not found:
        st.empty()
        return
    with st.container(key="notice_changed", horizontal=True, vertical_alignment="center"):
        new = sample if "sample" in found else None
        if new and (picture := contact_sheets.preview(new)):
            st.image(picture, width=96, alt=f"Preview of the newly chosen {name_of(new)}.")
        told = f" The new sample is {name_of(new)}." if new else ""
        words = f"Changed since these runs: {', '.join(found)}.{told}"
        st.text(f"{words} Press Run to update the answers.")
        st.button("Run", key=RUN, type="primary", disabled=not ready)
