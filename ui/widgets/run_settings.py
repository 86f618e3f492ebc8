"""The settings of a run as widgets: how to decode, which pictures, the cache, the mode, pixels.

Boundary: widgets in, the engine's values out.  Every widget lives in the URL under its key; what
several pages have alike takes the page's name, with which its keys begin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.types import (
    FRAME_RULES,
    MAX_NEW_TOKENS,
    Backend,
    CachePolicy,
    DecodeConfig,
    Extent,
    Mode,
    Pixels,
    RunOptions,
)

Value = TypeVar("Value", bound=str)
FRAME_WORDS = {
    "arange": "evenly from the first (arange)",
    "spread": "first to last (spread)",
    "linspace": "first to last, rounded down (linspace)",
}
CACHE_WORDS: dict[CachePolicy, str] = {"use": "Use", "refresh": "Refresh", "off": "Off"}
BACKEND_WORDS: dict[Backend, str] = {"auto": "Auto", "eager": "Eager", "compiled": "Compiled"}
MODE_WORDS: dict[Mode, str] = {"decoupled": "Decoupled", "hooked": "Hooked"}
FRAMES_HELP = "For models that watch a video. The result names the rule."
CACHE_HELP = (
    "Use: read stage 3's features if they were kept, else compute and keep them. "
    "Refresh: compute and keep them anew. Off: neither read nor write."
)
BACKEND_HELP = (
    "How tokens after the first are computed. Eager: operation by operation. Compiled: as one "
    "program, which is made once per model (seconds to a minute, before the run's clock starts, "
    "and kept on disk). Auto: compiled on CUDA, eager elsewhere. The result says which ran."
)
PIXELS_WORDS: dict[Pixels, str] = {"exact": "Exact", "fast": "Fast"}
PIXELS_HELP = (
    "How pictures are resized for the model. Exact: the values of its own image processor. Fast: "
    "several times quicker, and some values are a grey level or two off; the result says so."
)
EXTENT_CHOICES: dict[Extent, str] = {"slice": "Per slice", "stream": "Common"}
EXTENT_HELP = (
    "For models that see events, where a sample has no prepared event images. Per slice: each "
    "picture is as large as its own events reach, as in EventGPT's published code. Common: all "
    "are as large as the whole recording. The result says which ran."
)
MODE_HELP = (
    "Decoupled: the four stages run one by one, so that stage 3 can come from the cache. "
    "Hooked: the model's own generate() runs whole and hooks time its vision part."
)
PREFIX_HELP = (
    "A model keeps what it has read of a sample's prompt, up to the last visual token, in memory. "
    "A second question about the sample then skips the pictures and most of the prefill. Such "
    "times are shown striped, as reused. Needs Feature cache: Use, and Mode: Decoupled."
)


def compare_options() -> tuple[RunOptions, bool]:
    """Draw the widgets of the Compare page; the options, and whether a prompt's start is kept."""
    with st.expander("Decoding", key="compare_decoding"):
        decode = _decode()
    with pipeline_box("compare"):
        options = replace(pick_pipeline("compare", CACHE_WORDS, CACHE_HELP), decode=decode)
        return options, _prefix(options)


def _decode() -> DecodeConfig:
    tokens = st.number_input(
        "Max new tokens",
        1,
        MAX_NEW_TOKENS,
        DecodeConfig.max_new_tokens,
        step=16,
        key="compare_tokens",
        bind="query-params",
        help="A model may stop earlier. Prompt, pictures and new tokens must fit its context.",
    )
    sampled = st.toggle(
        "Sample",
        key="compare_sample_tokens",
        bind="query-params",
        help="Off: greedy, always the likeliest token. On: drawn with the values below.",
    )
    temperature = st.slider(
        "Temperature",
        0.05,
        2.0,
        0.7,
        0.05,
        key="compare_temperature",
        bind="query-params",
        disabled=not sampled,
    )
    top_p = st.slider(
        "Top p",
        0.05,
        1.0,
        0.95,
        0.05,
        key="compare_top_p",
        bind="query-params",
        disabled=not sampled,
    )
    seed = st.number_input(
        "Seed", 0, 2**32 - 1, 0, key="compare_seed", bind="query-params", disabled=not sampled
    )
    backend = either("Token steps", BACKEND_WORDS, "compare_backend", BACKEND_HELP)
    if not sampled:
        return DecodeConfig(max_new_tokens=int(tokens), backend=backend)
    return DecodeConfig(
        int(tokens), temperature=temperature, top_p=top_p, seed=int(seed), backend=backend
    )


def _prefix(how: RunOptions) -> bool:
    """Whether a prompt's beginning is kept; it goes with a used cache and stages of our own."""
    possible = how.cache == "use" and how.mode == "decoupled"
    chosen = st.toggle(
        "Go on from the last question",
        key="compare_prefix",
        bind="query-params",
        disabled=not possible,
        help=PREFIX_HELP,
    )
    return chosen and possible


# What several pages have alike.
def either(label: str, words: Mapping[Value, str], key: str, help_text: str | None = None) -> Value:
    """One of a few values, the first unless the URL says another under this key."""
    chosen: Value = st.segmented_control(
        label,
        list(words),
        default=next(iter(words)),
        required=True,
        format_func=words.__getitem__,
        key=key,
        bind="query-params",
        help=help_text,
    )
    return chosen


def run_and_cancel(
    page: str, run: tuple[str, str], live: bool, ready: bool, cancel: Callable[[], None]
) -> bool:
    """The two buttons of a page, its `run` button by label and key; whether that was pressed."""
    label, key = run
    disabled = live or not ready
    pressed = st.button(label, type="primary", key=key, shortcut="Ctrl+Enter", disabled=disabled)
    st.button("Cancel", key=f"{page}_cancel", on_click=cancel, disabled=not live)
    return pressed


def pipeline_box(page: str) -> DeltaGenerator:
    """Where pick_pipeline() draws: closed until it is asked for."""
    return st.expander("Pictures, cache, mode", key=f"{page}_pipeline")


def pick_pipeline(page: str, caches: Mapping[CachePolicy, str], cache_help: str) -> RunOptions:
    """Frames, cache, mode, pixels and extent; the first of `caches` is the page's usual one."""
    frames = st.selectbox(
        "Which 8 frames",
        FRAME_RULES,
        format_func=lambda rule: FRAME_WORDS.get(rule, rule),
        key=f"{page}_frames",
        bind="query-params",
        help=FRAMES_HELP,
    )
    cache = either("Feature cache", caches, f"{page}_cache", cache_help)
    mode = either("Mode", MODE_WORDS, f"{page}_mode", MODE_HELP)
    pixels, extent = pick_pixels(f"{page}_pixels"), pick_extent(f"{page}_extent")
    return RunOptions(frames=frames, cache=cache, mode=mode, pixels=pixels, extent=extent)


def pick_pixels(key: str) -> Pixels:
    """Exact or fast, as the URL says under this key."""
    return either("Pixels", PIXELS_WORDS, key, PIXELS_HELP)


def pick_extent(key: str) -> Extent:
    """Per slice or common, as the URL says under this key."""
    return either("Event pictures", EXTENT_CHOICES, key, EXTENT_HELP)
