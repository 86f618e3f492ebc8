"""The sidebar of the Benchmark page: dataset, samples, models, question and run settings.

Each widget's option label is in the URL under its key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st

from engine import media_options, settings
from engine.benchmark import sweep
from engine.benchmark.cluster.cluster_options import AUTO, LOCAL, ClusterOptions
from engine.errors import BadInput
from engine.media import dataset
from engine.media.dataset import Dataset
from engine.models.checkpoint import ModelEntry
from engine.prompts import DEFAULT_QUESTION, MAX_QUESTION_CHARS
from engine.storage.plan import MAX_BATCH, MAX_REPEAT, MAX_WARMUP, Order, Plan
from engine.types import MAX_NEW_TOKENS, OPTIONS, DecodeConfig
from ui.widgets import choices, dataset_picker, notices
from ui.widgets.model_picker import pick_loadable_models
from ui.widgets.run_settings import open_box, pick_box
from ui.widgets.text import count

PLACES = {"ray": "Ray", "here": "This process"}
WHERE_HELP = (
    "Ray: one worker per device of the cluster, each with one model at a time; results of "
    "different device types are kept apart. This process: one run after another, on this machine."
)
WORKERS_HELP = "At most one per device. Empty: one per device."
CORES_HELP = "The number of threads of each worker."
GPUS_HELP = (
    "Empty: 1 if the cluster has GPUs, otherwise 0. A fraction such as 0.5 lets several workers "
    "share a GPU; their results say so."
)
WHICH = {"all": "All", "first": "The first", "ids": "By id"}
ASKS = {"own": "Each record's own", "one": "One for all"}
ORDER_LABELS: dict[Order, str] = {
    "auto": "Automatic",
    "sequential": "Model by model",
    "interleaved": "By turns",
}
LENGTHS = {"natural": "Natural", "forced": "Forced"}
SAMPLES_HELP = (
    "In dataset order. Neighbouring samples overlap in time: confidence intervals need several "
    "sequences."
)
REPEAT_HELP = "Runs of each sample by each model."
WARMUP_HELP = "Runs of each model before the first sample. They are saved, but not in the figures."
ORDER_HELP = (
    "By turns: all models answer a sample before the next one, so changes of the machine's load "
    "affect all models alike. Model by model: only one has to be in memory. Automatic: by turns if "
    "all models fit into memory at once, otherwise model by model; the run says which and why."
)
LENGTH_HELP = (
    "Natural: each answer ends where its model ends it. Forced: all answers have the same number "
    "of tokens, so a model is not faster just because its answers are shorter."
)
BATCH_HELP = (
    "1: each sample alone, with all its times. More: stage 3 and decoding run for this many "
    "samples together, for throughput. In float32 the answers equal those of single runs; in other "
    "dtypes they may differ. A batch that does not fit in memory is halved; its results say so."
)
OWN_HELP = f"Records without a question get: {DEFAULT_QUESTION}"
# As on the Compare page, with what only concerns a dataset run.
CHANGED = {
    "cache": replace(
        OPTIONS["cache"],
        help=f"{OPTIONS['cache'].help} Where features come from the cache, stage 3 of that result "
        "is left out of the figures.",
    ),
    "perturb": replace(
        OPTIONS["perturb"],
        help=f"{OPTIONS['perturb'].help} Several strengths of one change, as in drop:0/0.3/0.6, "
        "are a sweep: a run per strength, one after another. Results then shows accuracy and "
        "changed answers by strength; strength 0 is the reference.",
        read=media_options.sweep,
        example="drop:0/0.3/0.6",
    ),
}
ON_RAY = "With Ray: model by model, one sample at a time."
SOME = 20  # default number of samples if not all are chosen


@dataclass(frozen=True)
class RunChoice:
    """A plan and its dataset; without a plan, `problem` says what is missing or wrong.

    `sweep`: a plan per strength, of which `plan` is the first; otherwise `plan` alone.  `cluster`:
    where the models run, None for this process.  `blocked`: the cluster options are invalid, so
    nothing may start.
    """

    dataset: Dataset | None
    plan: Plan | None
    problem: str = ""
    cluster: ClusterOptions | None = None
    blocked: bool = False
    sweep: tuple[Plan, ...] = ()


def choose(entries: Sequence[ModelEntry]) -> RunChoice:
    found = dataset_picker.choose("benchmark")
    models = tuple(entry.name for entry in pick_loadable_models(entries, "benchmark", 3))
    place = _place()
    samples = _samples(found)
    prompt = _prompt()
    left, right = st.columns(2)
    repeat, warmup = (
        int(choices.number(title, key, low, high, 1, help_, place))
        for title, key, low, high, help_, place in (
            ("Repeats", "benchmark_repeat", 1, MAX_REPEAT, REPEAT_HELP, left),
            ("Warm-up", "benchmark_warmup", 0, MAX_WARMUP, WARMUP_HELP, right),
        )
    )
    order, batch = _order(place is not None), _batch(place is not None)
    decode = _length()
    options, problem = dict[str, Any](), ""
    for box in ("pipeline", "recording"):
        with open_box("benchmark", box):
            found_options, wrong = pick_box("benchmark", box, Plan, CHANGED)
        options, problem = options | found_options, problem or wrong
    runs = options.pop("perturb", ((),))

    try:
        cluster = place() if place else None
    except BadInput as error:
        return RunChoice(found, None, str(error), blocked=True)
    try:
        ids = samples()
        if found is None or not models or not ids:
            missing = "a dataset" if found is None else "samples" if models else "models"
            return RunChoice(found, None, f"Choose {missing} in the sidebar.", cluster)
        if problem:
            return RunChoice(found, None, problem, cluster)
        plan = Plan(
            models, ids, prompt, repeat, warmup, order, batch=batch, decode=decode, **options
        )
        plans = sweep.plans(plan, runs)
        if cluster is not None:
            cluster.check(plan)
            if len(plans) > 1:
                sweep.refuse_elsewhere(len(plans))
    except BadInput as error:
        return RunChoice(found, None, str(error), cluster)
    return RunChoice(found, plans[0], cluster=cluster, sweep=plans)


def configured() -> bool:
    """Whether the settings name a cluster."""
    return bool(settings.load().ray_address)


def _place() -> Callable[[], ClusterOptions] | None:
    """A function that returns the options, or raises BadInput; None: this process.

    Call it after the last widget is drawn, because a widget that is not drawn loses its value.
    """
    address = settings.load().ray_address
    if (
        not address
        or choices.buttons("Runs on", PLACES, "benchmark_where", help_=WHERE_HELP) != "ray"
    ):
        return None
    place = st.container()
    with st.expander("Workers", key="benchmark_crew"):
        # The engine checks the bounds and words the errors.
        workers: int | None = choices.number(
            "Workers", "benchmark_workers", value=None, help_=WORKERS_HELP, step=1,
            placeholder="One per device",
        )  # fmt: skip
        cpus: int = choices.number(
            "Cores per worker", "benchmark_cpus", value=ClusterOptions.cpus, help_=CORES_HELP,
            step=1,
        )  # fmt: skip
        gpus: float | None = choices.number(
            "GPUs per worker", "benchmark_gpus", value=None, help_=GPUS_HELP, step=1.0, format="%g",
            placeholder="1 if there are any",
        )  # fmt: skip
    with place:
        notices.small(cluster_words(address, workers, cpus, gpus), "benchmark_address")
    return partial(ClusterOptions, address, workers, cpus, gpus)


def cluster_words(address: str, workers: int | None, cpus: int, gpus: float | None) -> str:
    """The cluster, the number of workers, and their resources if not the default."""
    place = "Ray on this machine" if address in (LOCAL, AUTO) else f"Ray at {address}"
    number = "one worker per device" if workers is None else count(workers, "worker")
    each = []
    if cpus != ClusterOptions.cpus or gpus is not None:
        each.append(count(cpus, "core"))
    if gpus is not None:
        each.append("no GPU" if gpus == 0 else "1 GPU" if gpus == 1 else f"{gpus:g} GPUs")
    return f"{place}: {number}{', each with ' if each else ''}{' and '.join(each)}"


def _samples(found: Dataset | None) -> Callable[[], tuple[str, ...]]:
    """A function that returns the chosen ids; it raises BadInput for unknown ones."""
    held = found.samples if found else ()
    label = f"Samples (of {len(held):,})" if found else "Samples"
    which = choices.buttons(label, WHICH, "benchmark_which")
    if which == "ids":
        text = st.text_area(
            "Ids, one on each line",
            key="benchmark_ids",
            bind="query-params",
            help="Full ids, the start of an id, or sequence/number.",
        )
        lines = (text or "").splitlines()
        return lambda: tuple(dict.fromkeys(dataset.find_all(found, lines))) if found else ()
    if which == "first" and found is not None:  # keeps a link's number while the scenes are made
        most = max(1, len(held))
        some = min(SOME, most)
        number = choices.number("How many", "benchmark_samples", 1, most, some, SAMPLES_HELP)
        held = held[: int(number)]
    ids = tuple(sample.id for sample in held)
    return lambda: ids


def _prompt() -> str | None:
    """The question for all samples; None: each record's own."""
    if choices.buttons("Question", ASKS, "benchmark_asks", help_=OWN_HELP) != "one":
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


def _order(on_ray: bool) -> Order:
    """The order; on a cluster the widget is shown only if its value has to be changed back."""
    defaults = [word for name in ("auto", "sequential") for word in (name, ORDER_LABELS[name])]
    if on_ray and not _changed("benchmark_order", *defaults):
        notices.small(ON_RAY, "benchmark_on_ray")
        return "sequential"
    return choices.buttons("Order", ORDER_LABELS, "benchmark_order", help_=ORDER_HELP)


def _batch(on_ray: bool) -> int:
    """The batch size; shown on a cluster as in _order()."""
    if on_ray and not _changed("benchmark_batch", "1"):
        return 1
    title, key = "Samples at once", "benchmark_batch"
    batch = int(choices.number(title, key, 1, MAX_BATCH, help_=BATCH_HELP))
    if batch > 1:
        st.caption("Only whole batches are timed: a sample has no stage times, TTFT or TPOT.")
    return batch


def _changed(key: str, *defaults: str) -> bool:
    """Whether this visit or its link has a value under the key that is not a default."""
    value = st.session_state.get(key, st.query_params.get(key))
    return value is not None and str(value) not in defaults


def _length() -> DecodeConfig:
    length = choices.buttons("Length of answers", LENGTHS, "benchmark_length", help_=LENGTH_HELP)
    forced = length == "forced"
    title, first = "New tokens each" if forced else "Max new tokens", DecodeConfig.max_new_tokens
    tokens = int(choices.number(title, "benchmark_tokens", 1, MAX_NEW_TOKENS, first, step=16))
    return DecodeConfig(max_new_tokens=tokens, min_new_tokens=tokens if forced else 0)


def words(plan: Plan, strengths: int = 1) -> str:
    """The number of results of a plan, or of each of a sweep's, and how it is made up."""
    models, samples = count(len(plan.models), "model"), count(len(plan.samples), "sample")
    repeats = "" if plan.repeat == 1 else f" × {plan.repeat:,} repeats"
    run = "warm-up run" if plan.batch == 1 else "warm-up batch"
    warmups = f", after {count(plan.warmup, run)} per model" if plan.warmup else ""
    together = f", {plan.batch:,} at once" if plan.batch > 1 else ""
    runs = "" if strengths == 1 else f"{count(strengths, 'run')}, one per strength, each "
    return (
        f"{runs}{count(plan.planned, 'result')}: {models} × {samples}{repeats}{together}{warmups}"
    )
