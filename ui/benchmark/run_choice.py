"""What a dataset run is to do: a dataset, its samples, models, a question, how often and how.

Boundary: widgets of the sidebar in, a Plan out.  Every widget lives in the URL under its key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import streamlit as st

from engine.benchmark.cluster.cluster_options import ClusterOptions
from engine.errors import BadInput
from engine.media import dataset
from engine.media.dataset import Dataset
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.prompts import DEFAULT_QUESTION, MAX_QUESTION_CHARS
from engine.storage.plan import MAX_BATCH, MAX_REPEAT, MAX_WARMUP, Order, Plan
from engine.types import MAX_NEW_TOKENS, CachePolicy, DecodeConfig
from ui.benchmark import executor_choice
from ui.widgets import dataset_picker, links, notices
from ui.widgets.run_settings import CACHE_HELP, CACHE_WORDS, either, pick_pipeline, pipeline_box
from ui.widgets.sample_picker import say_why_not
from ui.widgets.text import count

WHICH = {"all": "All", "first": "The first", "ids": "By id"}
ASKS = {"own": "Each record's own", "one": "One for all"}
ORDER_WORDS: dict[Order, str] = {
    "auto": "Automatic",
    "sequential": "Model by model",
    "interleaved": "By turns",
}
LENGTHS = {"natural": "Natural", "forced": "Forced"}
WARMUP_HELP = "Runs of each model before the first sample. They are kept, and stay out of means."
ORDER_HELP = (
    "By turns: every sample by all models, one after another, so that a change of the machine's "
    "load meets them alike. Model by model: only one has to be in memory. Automatic: by turns "
    "where all models fit into memory at once, else model by model; the run says which and why."
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
CACHES: dict[CachePolicy, str] = {"off": CACHE_WORDS["off"], **CACHE_WORDS}
ON_RAY = "With Ray: model by model, one sample at a time."
SOME = 20  # samples, when not all are wanted


@dataclass(frozen=True)
class Choice:
    """A plan and its dataset; `problem` says what is missing or wrong where there is no plan.

    `cluster` is where the models run; None: in this process.  `nowhere`: a cluster is wanted as it
    cannot be, so that nothing is to run at all.
    """

    dataset: Dataset | None
    plan: Plan | None
    problem: str = ""
    cluster: ClusterOptions | None = None
    nowhere: bool = False


def choose(entries: Sequence[ModelEntry]) -> Choice:
    """Draw the widgets, every one of them, and give what they say now."""
    found = _dataset()
    models = _models(entries)
    place = executor_choice.pick()
    samples = _samples(found)
    prompt = _prompt()
    repeat, warmup = _numbers()
    order, batch = _order(place is not None), _batch(place is not None)
    decode = _length()
    with pipeline_box("benchmark"):
        how = pick_pipeline("benchmark", CACHES, MEASURED)

    try:
        cluster = place() if place else None
    except BadInput as error:
        return Choice(found, None, str(error), nowhere=True)
    try:
        ids = samples()
        if found is None or not models or not ids:
            return Choice(found, None, _missing(found, models), cluster)
        options = vars(replace(how, decode=decode))
        plan = Plan(models, ids, prompt, repeat, warmup, order, batch=batch, **options)
        if cluster is not None:
            cluster.check(plan)
    except BadInput as error:
        return Choice(found, None, str(error), cluster)
    return Choice(found, plan, cluster=cluster)


def _missing(found: Dataset | None, models: Sequence[str]) -> str:
    what = "a dataset" if found is None else "models" if not models else "samples"
    return f"Choose {what} in the sidebar."


def _dataset() -> Dataset | None:
    try:
        return dataset_picker.read(dataset_picker.pick("benchmark_root"))
    except BadInput as error:
        notices.problem(str(error), "benchmark_dataset")
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


def _samples(found: Dataset | None) -> Callable[[], tuple[str, ...]]:
    """What gives the chosen ids, in the dataset's order or as typed; BadInput for unknown ones."""
    held = found.samples if found else ()
    label = f"Samples (of {len(held):,})" if found else "Samples"
    which = either(label, WHICH, "benchmark_which")
    if which == "ids":
        lines = _typed()
        return lambda: tuple(dict.fromkeys(dataset.find_all(found, lines))) if found else ()
    if which == "first" and found is not None:  # a link's number outlives the making of the scenes
        held = held[: _first(max(1, len(held)))]
    ids = tuple(sample.id for sample in held)
    return lambda: ids


def _first(most: int) -> int:
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
    return int(number)


def _typed() -> list[str]:
    """A line per sample."""
    text = st.text_area(
        "Ids, one on each line",
        key="benchmark_ids",
        bind="query-params",
        help="Whole ids, their beginnings, or clips as sequence/number.",
    )
    return (text or "").splitlines()


def _prompt() -> str | None:
    """The one question for all, or None: each record's own."""
    which = either("Question", ASKS, "benchmark_asks", OWN_HELP)
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


def _numbers() -> tuple[int, int]:
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
    return int(repeat), int(warmup)


def _order(on_ray: bool) -> Order:
    """On a cluster it is offered only where another value than the usual has to be changed."""
    usual = [word for name in ("auto", "sequential") for word in (name, ORDER_WORDS[name])]
    if on_ray and not _changed("benchmark_order", *usual):
        notices.small(ON_RAY, "benchmark_on_ray")
        return "sequential"
    return either("Order", ORDER_WORDS, "benchmark_order", ORDER_HELP)


def _batch(on_ray: bool) -> int:
    """As _order()."""
    if on_ray and not _changed("benchmark_batch", "1"):
        return 1
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


def _changed(key: str, *usual: str) -> bool:
    """Whether this visit, or else its link, has another value under the key than the usual."""
    said = st.session_state.get(key, st.query_params.get(key))
    return said is not None and str(said) not in usual


def _length() -> DecodeConfig:
    length = either("Length of answers", LENGTHS, "benchmark_length", LENGTH_HELP)
    forced = length == "forced"
    tokens = st.number_input(
        "New tokens each" if forced else "Max new tokens",
        1,
        MAX_NEW_TOKENS,
        DecodeConfig.max_new_tokens,
        step=16,
        key="benchmark_tokens",
        bind="query-params",
    )
    return DecodeConfig(max_new_tokens=int(tokens), min_new_tokens=int(tokens) if forced else 0)


def words(plan: Plan) -> str:
    """How many results a plan makes, and of what."""
    models, samples = count(len(plan.models), "model"), count(len(plan.samples), "sample")
    repeats = "" if plan.repeat == 1 else f" × {plan.repeat:,} repeats"
    run = "warm-up run" if plan.batch == 1 else "warm-up batch"
    warmups = f", after {count(plan.warmup, run)} per model" if plan.warmup else ""
    together = f", {plan.batch:,} at once" if plan.batch > 1 else ""
    return f"{count(plan.planned, 'result')}: {models} × {samples}{repeats}{together}{warmups}"
