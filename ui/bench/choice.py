"""What a dataset run is to do: a dataset, its samples, models, a question, how often and how.

Boundary: widgets of the sidebar in, a Plan out.  Every widget lives in the URL under its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import streamlit as st

from engine import dataset, settings
from engine.cluster.options import AUTO, LOCAL, ClusterOptions
from engine.dataset import Dataset
from engine.errors import BadInput, DatasetError
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.plan import MAX_BATCH, MAX_REPEAT, MAX_WARMUP, ORDERS, Order, Plan
from engine.prompts import DEFAULT_QUESTION, MAX_QUESTION_CHARS
from engine.types import FRAME_RULES, MAX_NEW_TOKENS, CachePolicy, DecodeConfig, Mode, Pixels
from ui import cards, datasets, links
from ui.knobs import (
    CACHE_HELP,
    CACHE_WORDS,
    FRAME_WORDS,
    MODE_HELP,
    MODE_WORDS,
    pick_pixels,
)
from ui.picker import say_why_not
from ui.text import count

WHICH = {"all": "All", "first": "The first", "ids": "By id"}
ASKS = {"own": "Each record's own", "one": "One for all"}
ORDER_WORDS: dict[Order, str] = {"sequential": "Model by model", "interleaved": "By turns"}
LENGTHS = {"natural": "Natural", "forced": "Forced"}
WARMUP_HELP = "Runs of each model before the first sample. They are kept, and stay out of means."
ORDER_HELP = (
    "Model by model: only one has to be in memory. By turns: every sample by all models, one after "
    "another, so that a slow drift of the machine meets them alike."
)
LENGTH_HELP = (
    "Natural: each answer ends where its model ends it. Forced: every answer has as many tokens, "
    "so that a model is not faster because it says less."
)
BATCH_HELP = (
    "1: each sample by itself, with all its times. More: stage 3 and decoding of so many samples "
    "together, for throughput. Answers stay those of single runs in float32; in other dtypes they "
    "may differ. A batch that does not fit in memory is halved, and its results say so."
)
OWN_HELP = f"A record without a question is asked: {DEFAULT_QUESTION}"
MEASURED = (
    f"{CACHE_HELP} A dataset run measures: with features from the cache, stage 3 of that "
    "result is left out of the figures."
)
WHERE_HELP = (
    "Ray: one worker on each device of the cluster, each with one model at a time; results of "
    "different types of devices are kept apart. This process: one after another, here."
)
SOME = 20  # samples, when not all are wanted


@dataclass(frozen=True)
class Choice:
    """A plan and its dataset; `problem` says what is missing or wrong where there is no plan.

    `cluster` is where the models run; None: in this process.
    """

    dataset: Dataset | None
    plan: Plan | None
    problem: str = ""
    cluster: ClusterOptions | None = None


def choose(entries: Sequence[ModelEntry]) -> Choice:
    """Draw the widgets and give what they say now."""
    found = _dataset()
    models = _models(entries)
    cluster = None
    try:
        cluster = _cluster()
        samples = _samples(found)
        prompt = _prompt()
        numbers = _numbers()
        batch = _batch()
        decode = _length()
        frames, cache, mode, pixels = _pipeline()
        if found is None or not models or not samples:
            return Choice(found, None, _missing(found, models), cluster)
        repeat, warmup, order = numbers
        how = (repeat, warmup, order, cache, decode, frames, mode)
        plan = Plan(models, samples, prompt, *how, pixels=pixels, batch=batch)
        if cluster is not None:
            cluster.check(plan)
    except BadInput as error:
        return Choice(found, None, str(error), cluster)
    return Choice(found, plan, cluster=cluster)


def _cluster() -> ClusterOptions | None:
    """The Ray of the settings, if they name one and it is wanted; workers on all its devices."""
    address = settings.load().ray_address
    if not address:
        return None
    place = "Ray on this machine" if address in (LOCAL, AUTO) else f"Ray at {address}"
    names = {"here": "This process", "ray": "Ray"}
    where = st.segmented_control(
        "Runs on",
        list(names),
        default="ray",
        required=True,
        format_func=names.__getitem__,
        key="benchmark_where",
        bind="query-params",
        help=WHERE_HELP,
    )
    if where != "ray":
        return None
    cards.small(place, "benchmark_address")
    return ClusterOptions(address)


def _missing(found: Dataset | None, models: Sequence[str]) -> str:
    what = "a dataset" if found is None else "models" if not models else "samples"
    return f"Choose {what} in the sidebar."


def _dataset() -> Dataset | None:
    try:
        return datasets.read(datasets.pick("benchmark_root"))
    except BadInput as error:
        cards.problem(str(error), "benchmark_dataset")
        return None


def _models(entries: Sequence[ModelEntry]) -> tuple[str, ...]:
    by_name = {entry.name: entry for entry in entries}
    reasons = {entry.name: registry.unavailable(entry) for entry in entries}
    links.say_unknown("benchmark_models", [entry.label for entry in entries], "model")
    chosen = st.multiselect(
        "Models",
        list(by_name),
        default=[entry.name for entry in entries if reasons[entry.name] is None][:3],
        format_func=lambda name: by_name[name].label if name in by_name else name,
        key="benchmark_models",
        bind="query-params",
        placeholder="Choose the models that answer",
    )
    say_why_not([(by_name[n], reason) for n, reason in reasons.items() if reason], "bench")
    return tuple(entry.name for entry in entries if entry.name in chosen)


def _samples(found: Dataset | None) -> tuple[str, ...]:
    """The chosen ids in the dataset's order, or in the order they were typed."""
    held = found.samples if found else ()
    which = st.segmented_control(
        f"Samples (of {len(held):,})" if found else "Samples",
        list(WHICH),
        default="all",
        required=True,
        format_func=WHICH.__getitem__,
        key="benchmark_which",
        bind="query-params",
    )
    if which == "ids":
        return _typed(found)
    if which == "first":
        most = max(1, len(held))
        number = st.number_input(
            "How many",
            1,
            most,
            min(SOME, most),
            key="benchmark_samples",
            bind="query-params",
            help="In the dataset's order. Neighbours overlap in time: an interval needs several "
            "sequences.",
        )
        held = held[: int(number)]
    return tuple(sample.id for sample in held)


def _typed(found: Dataset | None) -> tuple[str, ...]:
    text = st.text_area(
        "Ids, one on each line",
        key="benchmark_ids",
        bind="query-params",
        help="Whole ids, their beginnings, or clips as sequence/number.",
    )
    wanted = [line.strip() for line in (text or "").splitlines() if line.strip()]
    if found is None or not wanted:
        return ()
    ids, absent = list[str](), list[DatasetError]()
    for name in wanted:
        try:
            ids.append(dataset.find(found, name).id)
        except DatasetError as error:
            absent.append(error)
    if absent:
        more = f" ({count(len(absent) - 1, 'more line')} fail likewise)" if absent[1:] else ""
        raise BadInput(f"{absent[0]}{more}")
    return tuple(dict.fromkeys(ids))


def _prompt() -> str | None:
    """The one question for all, or None: each record's own."""
    which = st.segmented_control(
        "Question",
        list(ASKS),
        default="own",
        required=True,
        format_func=ASKS.__getitem__,
        key="benchmark_asks",
        bind="query-params",
        help=OWN_HELP,
    )
    if which != "one":
        return None
    text = st.text_area(
        "Question for all",
        DEFAULT_QUESTION,
        max_chars=MAX_QUESTION_CHARS,
        key="benchmark_question",
        bind="query-params",
        label_visibility="collapsed",
    )
    return text or ""


def _numbers() -> tuple[int, int, Order]:
    left, right = st.columns(2)
    repeat = left.number_input(
        "Repeats",
        1,
        MAX_REPEAT,
        key="benchmark_repeat",
        bind="query-params",
        help="Runs of each sample by each model.",
    )
    warmup = right.number_input(
        "Warm-up", 0, MAX_WARMUP, 1, key="benchmark_warmup", bind="query-params", help=WARMUP_HELP
    )
    order = st.segmented_control(
        "Order",
        list(ORDERS),
        default=ORDERS[0],
        required=True,
        format_func=lambda name: ORDER_WORDS[name],
        key="benchmark_order",
        bind="query-params",
        help=ORDER_HELP,
    )
    return int(repeat), int(warmup), order


def _batch() -> int:
    batch = st.number_input(
        "Samples at once",
        1,
        MAX_BATCH,
        key="benchmark_batch",
        bind="query-params",
        help=BATCH_HELP,
    )
    if batch > 1:
        st.caption("Only the batches are timed: no sample has stages, TTFT or TPOT of its own.")
    return int(batch)


def _length() -> DecodeConfig:
    length = st.segmented_control(
        "Length of answers",
        list(LENGTHS),
        default="natural",
        required=True,
        format_func=LENGTHS.__getitem__,
        key="benchmark_length",
        bind="query-params",
        help=LENGTH_HELP,
    )
    forced = length == "forced"
    tokens = int(
        st.number_input(
            "New tokens each" if forced else "Max new tokens",
            1,
            MAX_NEW_TOKENS,
            DecodeConfig.max_new_tokens,
            step=16,
            key="benchmark_tokens",
            bind="query-params",
        )
    )
    return DecodeConfig(max_new_tokens=tokens, min_new_tokens=tokens if forced else 0)


def _pipeline() -> tuple[str, CachePolicy, Mode, Pixels]:
    with st.expander("Frames, cache, mode, pixels", key="benchmark_pipeline"):
        frames = st.selectbox(
            "Which 8 frames",
            FRAME_RULES,
            format_func=lambda rule: FRAME_WORDS.get(rule, rule),
            key="benchmark_frames",
            bind="query-params",
        )
        cache = st.segmented_control(
            "Feature cache",
            ("off", "use", "refresh"),
            default="off",
            required=True,
            format_func=lambda name: CACHE_WORDS[name],
            key="benchmark_cache",
            bind="query-params",
            help=MEASURED,
        )
        mode = st.segmented_control(
            "Mode",
            list(MODE_WORDS),
            default="decoupled",
            required=True,
            format_func=MODE_WORDS.__getitem__,
            key="benchmark_mode",
            bind="query-params",
            help=MODE_HELP,
        )
        pixels = pick_pixels("benchmark_pixels")
    return frames, cast(CachePolicy, cache), cast(Mode, mode), pixels


def words(plan: Plan) -> str:
    """How many results a plan makes, and of what."""
    models, samples = count(len(plan.models), "model"), count(len(plan.samples), "sample")
    repeats = "" if plan.repeat == 1 else f" × {plan.repeat:,} repeats"
    run = "warm-up run" if plan.batch == 1 else "warm-up batch"
    warmups = f", after {count(plan.warmup, run)} per model" if plan.warmup else ""
    together = f", {plan.batch:,} at once" if plan.batch > 1 else ""
    return f"{count(plan.planned, 'result')}: {models} × {samples}{repeats}{together}{warmups}"
