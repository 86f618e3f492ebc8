"""The settings of runs: chips for those that are not the default, and a table of all."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import streamlit as st

from engine.types import TITLES, RunOptions, RunRequest
from ui.compare.card_figures import FORMULAS

PREFIX_WORDS = {False: "prompt prefix reuse off", True: "prompt prefix reuse on"}


def settings(options: RunOptions, prefix: bool = False) -> dict[str, str]:
    """Every setting's name and its value in words."""
    found = {TITLES[name]: words for name, words in options.settings.items()}
    return found | {"Prompt prefix": PREFIX_WORDS[prefix]}


DEFAULTS = settings(RunOptions())


def changed(request: RunRequest) -> tuple[str, ...]:
    """The settings of a run that are not the default, in words."""
    found = settings(request, request.prefix)
    return tuple(words for name, words in found.items() if words != DEFAULTS[name])


def shared(requests: Sequence[RunRequest]) -> tuple[str, ...]:
    """The changed settings that all the runs have."""
    first, *others = [changed(request) for request in requests]
    return tuple(words for words in first if all(words in other for other in others))


def row(requests: Sequence[RunRequest]) -> None:
    """The chips of all runs, and a button that shows every setting and every formula."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="settings"):
        chips(shared(requests) or ("default settings",))
        with st.popover("All settings"):
            st.html(table(requests) + _formulas())


def chips(words: Sequence[str]) -> None:
    for one in words:
        st.badge(one, color="gray")


def table(requests: Sequence[RunRequest]) -> str:
    """One row per setting: its value, a line per value if the runs differ, and the default."""
    found = [settings(request, request.prefix) for request in requests]
    rows = "".join(
        f'<tr><th class="figures-word" scope="row">{escape(name)}</th>'
        f"<td>{'<br>'.join(escape(one) for one in dict.fromkeys(s[name] for s in found))}</td>"
        f"<td>{escape(default)}</td></tr>"
        for name, default in DEFAULTS.items()
    )
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("Setting", "These runs", "Default"))
    return f'<table class="figures"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'


def _formulas() -> str:
    lines = "".join(f"<li><b>{escape(n)}</b>: {escape(f)}</li>" for n, f in FORMULAS.items())
    return f'<ul class="card-formulas">{lines}</ul>'
