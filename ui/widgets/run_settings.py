"""Widgets for the settings of a run: decoding, frames, cache, mode, pixels, window, split, perturb.

Boundary: widgets in, the engine's values out.  Each widget's option label is in the URL under its
key, so labels are part of links.  The keys of widgets on several pages begin with the page's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine import media_options
from engine.errors import BadInput
from engine.media_options import MAX_PARTS, Perturbation, Split, SplitRule, Window
from engine.types import (
    FRAME_RULES,
    MAX_NEW_TOKENS,
    Backend,
    CachePolicy,
    DecodeConfig,
    Extent,
    MediaOptions,
    Mode,
    Pixels,
    RunOptions,
)
from ui.widgets import notices

Value = TypeVar("Value", bound=str)
COMPARE_WINDOW = "compare_part"  # "compare_window" is the length of the scrubber in older links
FRAME_LABELS = {
    "arange": "evenly from the first (arange)",
    "spread": "first to last (spread)",
    "linspace": "first to last, rounded down (linspace)",
}
CACHE_LABELS: dict[CachePolicy, str] = {"use": "Use", "refresh": "Refresh", "off": "Off"}
BACKEND_LABELS: dict[Backend, str] = {"auto": "Auto", "eager": "Eager", "compiled": "Compiled"}
MODE_LABELS: dict[Mode, str] = {"decoupled": "Decoupled", "hooked": "Hooked"}
FRAMES_HELP = "For video models. The result names the rule."
CACHE_HELP = (
    "Use: read stage 3's features from the cache, or compute and store them. "
    "Refresh: always compute and store them. Off: neither read nor write the cache."
)
BACKEND_HELP = (
    "How tokens after the first are computed. Eager: operation by operation. Compiled: as one "
    "program, built once per model (seconds to a minute, before the run's clock starts) and saved "
    "on disk. Auto: compiled on CUDA, eager elsewhere. The result says which was used."
)
PIXELS_LABELS: dict[Pixels, str] = {"exact": "Exact", "fast": "Fast"}
PIXELS_HELP = (
    "How pictures are resized for the model. Exact: the values of its own image processor. Fast: "
    "several times faster, but some values differ by one or two grey levels; the result says so."
)
EXTENT_LABELS: dict[Extent, str] = {"slice": "Per slice", "stream": "Common"}
EXTENT_HELP = (
    "For event models, if a sample has no prepared event images. Per slice: each picture is as "
    "large as the area of its own events, as in EventGPT's published code. Common: all pictures "
    "are as large as the whole recording. The result says which was used."
)
WINDOW_HELP = (
    "The part of a recording of raw events that is shown: START+LENGTH in us, ms, s or min, as in "
    "1.25s+50ms; a LENGTH alone begins at the first event. Empty: the sample's own window, or all "
    "of the recording. For models that are shown event images drawn from raw events."
)
SPLIT_LABELS: dict[SplitRule, str] = {
    "count": "Equal counts",
    "time": "Equal times",
    "densest": "Densest 25 ms",
}
SPLIT_HELP = (
    "How a recording of raw events becomes event images. Equal counts: each shows the same number "
    "of events, as in EventGPT. Equal times: each shows the same time. Densest 25 ms: each shows "
    "the 25 ms with the most events of its time, as in EventGPT-Plus. Another split than the "
    "default is drawn from raw events even if the sample has prepared event images."
)
PARTS_HELP = "The number of event images that are drawn from a recording."
PERTURB_HELP = (
    "Changes the raw events or the frames before the model sees them, as in drop:0.3 or "
    "drop:0.3,jitter:500us. Changes: drop, jitter, hot, window, rate. Empty: none."
)
SWEEP_HELP = (
    "Several strengths of one change, as in drop:0/0.3/0.6, are a sweep: a run per strength, one "
    "after another. Results then shows accuracy and changed answers by strength; strength 0 is the "
    "reference."
)
PERTURB_SEED_HELP = "The same seed changes the same events or frames."
MODE_HELP = (
    "Decoupled: the four stages run separately, so stage 3 can come from the cache. "
    "Hooked: the model's own generate() runs as a whole, and hooks time its vision part."
)
REPEATS = {"1": "1", "3": "3", "5": "5", "10": "10"}
REPEATS_HELP = (
    "More than one: the models take turns, and the page shows the median and the range of each "
    "time. Cold runs do not count, nor do runs that computed what the others read from the cache: "
    "for the time of stage 3, set Feature cache to Off or Refresh."
)
PREFIX_HELP = (
    "Keeps what the model has computed for a sample's prompt, up to the last visual token, in "
    "memory. A second question about the sample then skips the pictures and most of the prefill. "
    "Such times are drawn striped and marked as reused. Needs Feature cache: Use, and Mode: "
    "Decoupled."
)


def pick_run_options() -> tuple[RunOptions, bool, str]:
    """Draw the widgets of the Compare page; the options, whether prompt prefixes are reused, and
    what is wrong with a text, or ""."""
    with st.expander("Decoding", key="compare_decoding"):
        decode = _decode()
    with pipeline_box("compare"):
        options = replace(pick_pipeline("compare", CACHE_LABELS, CACHE_HELP), decode=decode)
        prefix = _prefix(options)
    with st.expander("Window, split, perturb", key="compare_recording"):
        shown, problem = _recording()
    of_recording = ("window", "split", "perturb", "perturb_seed")
    options = replace(options, **{name: getattr(shown, name) for name in of_recording})
    return options, prefix, problem


def _recording() -> tuple[MediaOptions, str]:
    """Window, split and perturbation; those that cannot be read are left out, with a sentence."""
    shown, problem = MediaOptions(), ""
    try:
        shown = replace(shown, window=pick_window(COMPARE_WINDOW))
    except BadInput as error:
        problem = str(error)
        notices.problem(problem, "window")
    shown = replace(shown, split=pick_split("compare_split"))
    try:
        changes, seed = pick_perturb("compare_perturb")
    except BadInput as error:
        notices.problem(str(error), "perturb")
        return shown, problem or str(error)
    return replace(shown, perturb=changes, perturb_seed=seed), problem


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
        help="Off: greedy decoding. On: tokens are sampled with the values below.",
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
    backend = either("Token steps", BACKEND_LABELS, "compare_backend", BACKEND_HELP)
    if not sampled:
        return DecodeConfig(max_new_tokens=int(tokens), backend=backend)
    return DecodeConfig(
        int(tokens), temperature=temperature, top_p=top_p, seed=int(seed), backend=backend
    )


def _prefix(how: RunOptions) -> bool:
    """Whether prompt prefixes are reused; needs cache "use" and mode "decoupled"."""
    possible = how.cache == "use" and how.mode == "decoupled"
    chosen = st.toggle(
        "Reuse the prompt prefix",
        key="compare_prefix",
        bind="query-params",
        disabled=not possible,
        help=PREFIX_HELP,
    )
    return chosen and possible


def pick_repeats() -> int:
    """How often each model of the Compare page answers."""
    return int(either("Runs of each model", REPEATS, "compare_repeat", REPEATS_HELP))


# Shared by several pages.
def either(label: str, words: Mapping[Value, str], key: str, help_text: str | None = None) -> Value:
    """One of a few values; the first is the default."""
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
    """The start button (label and key in `run`) and Cancel; whether start was pressed."""
    label, key = run
    disabled = live or not ready
    pressed = st.button(label, type="primary", key=key, shortcut="Ctrl+Enter", disabled=disabled)
    st.button("Cancel", key=f"{page}_cancel", on_click=cancel, disabled=not live)
    return pressed


def pipeline_box(page: str) -> DeltaGenerator:
    """The closed expander in which pick_pipeline() draws."""
    return st.expander("Pictures, cache, mode", key=f"{page}_pipeline")


def pick_pipeline(page: str, caches: Mapping[CachePolicy, str], cache_help: str) -> RunOptions:
    """Frames, cache, mode, pixels and extent; the first of `caches` is the default."""
    frames = st.selectbox(
        "Which 8 frames",
        FRAME_RULES,
        format_func=lambda rule: FRAME_LABELS.get(rule, rule),
        key=f"{page}_frames",
        bind="query-params",
        help=FRAMES_HELP,
    )
    cache = either("Feature cache", caches, f"{page}_cache", cache_help)
    mode = either("Mode", MODE_LABELS, f"{page}_mode", MODE_HELP)
    pixels, extent = pick_pixels(f"{page}_pixels"), pick_extent(f"{page}_extent")
    return RunOptions(frames=frames, cache=cache, mode=mode, pixels=pixels, extent=extent)


def pick_pixels(key: str) -> Pixels:
    """The pixel setting, exact or fast."""
    return either("Pixels", PIXELS_LABELS, key, PIXELS_HELP)


def pick_extent(key: str) -> Extent:
    """The size of event pictures, per slice or common."""
    return either("Event pictures", EXTENT_LABELS, key, EXTENT_HELP)


def pick_window(key: str) -> Window | None:
    """The part of recordings that is shown, None for all; BadInput if the text is no window."""
    text = st.text_input(
        "Window", key=key, bind="query-params", placeholder="1.25s+50ms", help=WINDOW_HELP
    )
    return media_options.window(text or "")


def pick_split(key: str) -> Split:
    """How a recording becomes event images; the number of parts is under "KEY_parts"."""
    rule = either("Split", SPLIT_LABELS, key, SPLIT_HELP)
    parts = st.number_input(
        "Parts",
        1,
        MAX_PARTS,
        Split.parts,
        key=f"{key}_parts",
        bind="query-params",
        help=PARTS_HELP,
    )
    return Split(rule, int(parts))


def pick_perturb(key: str) -> tuple[tuple[Perturbation, ...], int]:
    """The changes and their seed, which is under "KEY_seed"; BadInput if the text is no change."""
    text, seed = _perturb_fields(key, "drop:0.3", PERTURB_HELP)
    changes = media_options.perturbations(text)
    return changes, seed if changes else 0


def pick_sweep(key: str) -> tuple[tuple[tuple[Perturbation, ...], ...], int]:
    """The changes of each run, several for a sweep, and their seed; else as pick_perturb()."""
    text, seed = _perturb_fields(key, "drop:0/0.3/0.6", f"{PERTURB_HELP} {SWEEP_HELP}")
    runs = media_options.sweep(text)
    return runs, seed if any(runs) else 0


def _perturb_fields(key: str, example: str, help_text: str) -> tuple[str, int]:
    text = st.text_input(
        "Perturb", key=key, bind="query-params", placeholder=example, help=help_text
    )
    seed = st.number_input(
        "Perturb seed",
        0,
        2**32 - 1,
        0,
        key=f"{key}_seed",
        bind="query-params",
        disabled=not text,
        help=PERTURB_SEED_HELP,
    )
    return text or "", int(seed)
