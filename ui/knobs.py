"""The settings of a run as widgets: how to decode, which frames, the cache, the mode, pixels.

Boundary: widgets in, the engine's values out.  Every widget lives in the URL under its key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import streamlit as st

from engine.types import (
    BACKENDS,
    FRAME_RULES,
    MAX_NEW_TOKENS,
    Backend,
    CachePolicy,
    DecodeConfig,
    Mode,
    Pixels,
)

FRAME_WORDS = {
    "arange": "evenly from the first (arange)",
    "spread": "first to last (spread)",
    "linspace": "first to last, rounded down (linspace)",
}
CACHE_WORDS = {"use": "Use", "refresh": "Refresh", "off": "Off"}
BACKEND_WORDS = {"auto": "Auto", "eager": "Eager", "compiled": "Compiled"}
MODE_WORDS = {"decoupled": "Decoupled", "hooked": "Hooked"}
CACHE_HELP = (
    "Use: read stage 3's features if they were kept, else compute and keep them. "
    "Refresh: compute and keep them anew. Off: neither read nor write."
)
BACKEND_HELP = (
    "How tokens after the first are computed. Eager: operation by operation. Compiled: as one "
    "program, which is made once per model (seconds to a minute, before the run's clock starts, "
    "and kept on disk). Auto: compiled on CUDA, eager elsewhere. The result says which ran."
)
PIXELS_WORDS = {"exact": "Exact", "fast": "Fast"}
PIXELS_HELP = (
    "How pictures are resized for the model. Exact: the values of its own image processor. Fast: "
    "several times quicker, and some values are a grey level or two off; the result says so."
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


@dataclass(frozen=True)
class Knobs:
    """What a run needs beside sample, models and question."""

    decode: DecodeConfig
    frames: str
    cache: CachePolicy
    mode: Mode
    pixels: Pixels
    prefix: bool


def knobs() -> Knobs:
    """Draw the widgets and give their values."""
    with st.expander("Decoding", key="compare_decoding"):
        decode = _decode()
    with st.expander("Frames, cache, mode, pixels", key="compare_pipeline"):
        return _pipeline(decode)


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
    backend = cast(Backend, _backend())
    if not sampled:
        return DecodeConfig(max_new_tokens=int(tokens), backend=backend)
    return DecodeConfig(
        int(tokens), temperature=temperature, top_p=top_p, seed=int(seed), backend=backend
    )


def _backend() -> str:
    chosen: str = st.segmented_control(
        "Token steps",
        list(BACKENDS),
        default="auto",
        required=True,
        format_func=BACKEND_WORDS.__getitem__,
        key="compare_backend",
        bind="query-params",
        help=BACKEND_HELP,
    )
    return chosen


def _pipeline(decode: DecodeConfig) -> Knobs:
    frames = st.selectbox(
        "Which 8 frames",
        FRAME_RULES,
        format_func=lambda rule: FRAME_WORDS.get(rule, rule),
        key="compare_frames",
        bind="query-params",
        help="For models that watch a video. The result names the rule.",
    )
    cache = st.segmented_control(
        "Feature cache",
        list(CACHE_WORDS),
        default="use",
        required=True,
        format_func=CACHE_WORDS.__getitem__,
        key="compare_cache",
        bind="query-params",
        help=CACHE_HELP,
    )
    mode = st.segmented_control(
        "Mode",
        list(MODE_WORDS),
        default="decoupled",
        required=True,
        format_func=MODE_WORDS.__getitem__,
        key="compare_mode",
        bind="query-params",
        help=MODE_HELP,
    )
    pixels = pick_pixels("compare_pixels")
    going_on = _prefix(cache, mode)
    return Knobs(decode, frames, cast(CachePolicy, cache), cast(Mode, mode), pixels, going_on)


def _prefix(cache: str | None, mode: str | None) -> bool:
    """Whether a prompt's beginning is kept; it goes with a used cache and stages of our own."""
    possible = cache == "use" and mode == "decoupled"
    chosen = st.toggle(
        "Go on from the last question",
        key="compare_prefix",
        bind="query-params",
        disabled=not possible,
        help=PREFIX_HELP,
    )
    return chosen and possible


def pick_pixels(key: str) -> Pixels:
    """Exact or fast, as the URL says under this key."""
    chosen = st.segmented_control(
        "Pixels",
        list(PIXELS_WORDS),
        default="exact",
        required=True,
        format_func=PIXELS_WORDS.__getitem__,
        key=key,
        bind="query-params",
        help=PIXELS_HELP,
    )
    return cast(Pixels, chosen)
