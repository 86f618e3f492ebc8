"""The settings of runs: chips for those that are not the default, and a table of all.

Boundary: RunRequests in, widgets out.  All text is made of constants, numbers and checked choices.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import streamlit as st

from engine.types import CACHE_WORDS, EXTENT_WORDS, FRAME_WORDS, RunOptions, RunRequest
from ui.compare.card_figures import FORMULAS
from ui.widgets.text import count

WHOLE, UNPERTURBED = "the sample's whole recording or window", "not perturbed"
PREFIX_WORDS = {False: "prompt prefix reuse off", True: "prompt prefix reuse on"}


def settings(options: RunOptions, prefix: bool = False) -> dict[str, str]:
    """Every setting's name and its value in words."""
    d = options.decode
    sampled = f"temperature {d.temperature:g}, top p {d.top_p:g}, seed {d.seed}"
    return {
        "Decoding": "greedy" if d.greedy else f"sampled ({sampled})",
        "Max new tokens": f"at most {count(d.max_new_tokens, 'new token')}",
        "Token steps": f"{d.backend} token steps",
        "Frames": f"8 {FRAME_WORDS[options.frames]} frames",
        "Feature cache": CACHE_WORDS[options.cache],
        "Mode": options.mode,
        "Pixels": f"{options.pixels} pixels",
        "Event pictures": f"event pictures {EXTENT_WORDS[options.extent]}",
        "Window": f"window {options.window}" if options.window else WHOLE,
        "Split": f"split into {options.split.words}",
        "Perturbation": f"perturbed by {options.perturbed}" if options.perturbed else UNPERTURBED,
        "Prompt prefix": PREFIX_WORDS[prefix],
    }


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
