"""The sidebar of the Benchmark page: dataset, samples, models, question and run settings; what the
planned run would cost, from an earlier run; and the command that starts it."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from engine import media_options, settings
from engine.analysis import run_planning
from engine.analysis.run_planning import EarlierRun
from engine.benchmark.cluster.ray_link import AUTO, LOCAL, ClusterOptions
from engine.errors import BadInput
from engine.jobs.benchmark_job import refuse_sweep_elsewhere
from engine.media import dataset
from engine.media.dataset import Dataset
from engine.media_options import Box
from engine.models.checkpoint import ModelEntry
from engine.prompts import DEFAULT_QUESTION, MAX_QUESTION_CHARS
from engine.storage import run_store
from engine.storage.plan import MAX_BATCH, MAX_REPEAT, MAX_WARMUP, Order, Plan, flags
from engine.storage.run_store import RESULTS, RunInfo, Stamp
from engine.types import MAX_NEW_TOKENS, OPTIONS, DecodeConfig
from ui.widgets import choices, dataset_picker, notices
from ui.widgets.choices import BOXES, pick_box
from ui.widgets.model_picker import pick_loadable_models, unasked_hosts
from ui.widgets.text import count

PLACES = {"ray": "Ray", "here": "This process"}
WHERE_HELP = (
    "Ray: one worker per device of the cluster, each with one model at a time; results of "
    "different device types are kept apart. This process: one run after another, on this machine."
)
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
MOST_AT_ONCE = 8 * 2**20  # bytes of results that are read for a forecast
LENGTHS = {"natural": "Natural", "forced": "Forced"}
SAMPLES_HELP = (
    "In dataset order. Neighbouring samples overlap in time: confidence intervals need several "
    "sequences."
)
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


@dataclass(frozen=True)
class RunChoice:
    """What Start starts: one plan, or one per strength of a sweep; without one, `problem` says what
    is missing or wrong.  `cluster`: where the models run, None for this process.  `blocked`: the
    cluster options are invalid, so nothing may start."""

    dataset: Dataset | None
    plans: tuple[Plan, ...] = ()
    problem: str = ""
    cluster: ClusterOptions | None = None
    blocked: bool = False


def choose(entries: Sequence[ModelEntry]) -> RunChoice:
    """Draws all widgets, since one that is not drawn loses its value; then makes the plan."""
    found = dataset_picker.choose("benchmark")
    chosen = pick_loadable_models(entries, "benchmark", 3)
    models = tuple(entry.name for entry in chosen)
    problem = unasked_hosts("benchmark", chosen)
    workers = _workers()
    ids, lines = _samples(found)
    prompt: str | None = None
    own = f"Records without a question get: {DEFAULT_QUESTION}"
    if choices.buttons("Question", ASKS, "benchmark_asks", help_=own) == "one":
        shown: dict[str, Any] = {"max_chars": MAX_QUESTION_CHARS, "label_visibility": "collapsed"}
        prompt = choices.question("Question for all", "benchmark_question", **shown)
    left, right = st.columns(2)
    repeat_help = "Runs of each sample by each model."
    repeat = choices.number("Repeats", "benchmark_repeat", 1, MAX_REPEAT, 1, repeat_help, left)
    warmup = choices.number("Warm-up", "benchmark_warmup", 0, MAX_WARMUP, 1, WARMUP_HELP, right)
    order = choices.buttons("Order", ORDER_LABELS, "benchmark_order", help_=ORDER_HELP)
    batch = choices.number("Samples at once", "benchmark_batch", 1, MAX_BATCH, help_=BATCH_HELP)
    if batch > 1:
        st.caption("Only whole batches are timed: a sample has no stage times, TTFT or TPOT.")
    forced = choices.buttons("Length of answers", LENGTHS, "benchmark_length", help_=LENGTH_HELP)
    title = "New tokens each" if forced == "forced" else "Max new tokens"
    first = DecodeConfig.max_new_tokens
    tokens = int(choices.number(title, "benchmark_tokens", 1, MAX_NEW_TOKENS, first, step=16))
    options = dict[str, Any]()
    boxes: tuple[Box, ...] = ("pipeline", "recording")
    for box in boxes:
        with st.expander(BOXES[box], key=f"benchmark_{box}"):
            more, wrong = pick_box("benchmark", box, Plan, CHANGED)
        options, problem = options | more, problem or wrong
    runs = options.pop("perturb", ((),))

    cluster = None
    try:
        if workers is not None:
            cluster = ClusterOptions(*workers)
        if found is not None and lines:
            ids = tuple(dict.fromkeys(dataset.find_all(found, lines)))
        if found is None or not models or not ids:
            missing = "a dataset" if found is None else "samples" if models else "models"
            raise BadInput(f"Choose {missing} in the sidebar.")
        if problem:
            raise BadInput(problem)
        decode = DecodeConfig(tokens, min_new_tokens=tokens if forced == "forced" else 0)
        plan = Plan(
            models, ids, prompt, int(repeat), int(warmup), order,
            batch=int(batch), decode=decode, **options,
        )  # fmt: skip
        plans = tuple(replace(plan, perturb=run) for run in runs)
        if cluster is not None:
            cluster.check(plan)
            if len(plans) > 1:
                refuse_sweep_elsewhere(len(plans))
    except BadInput as error:
        blocked = workers is not None and cluster is None
        return RunChoice(found, problem=str(error), cluster=cluster, blocked=blocked)
    return RunChoice(found, plans, cluster=cluster)


def _workers() -> tuple[str, int | None, int, float | None] | None:
    """The cluster's address, the workers, cores and GPUs of each; None: this process."""
    address = settings.load().ray_address
    if not address:
        return None
    if choices.buttons("Runs on", PLACES, "benchmark_where", help_=WHERE_HELP) != "ray":
        return None
    place = "on this machine" if address in (LOCAL, AUTO) else f"at {address}"
    notices.small(f"Ray {place}: model by model, one sample at a time.", "benchmark_address")
    workers: int | None = choices.number(
        "Workers", "benchmark_workers", value=None, step=1, placeholder="One per device",
        help_="At most one per device. Empty: one per device.",
    )  # fmt: skip
    cpus: int = choices.number(
        "Cores per worker", "benchmark_cpus", value=ClusterOptions.cpus, step=1,
        help_="The number of threads of each worker.",
    )  # fmt: skip
    gpus: float | None = choices.number(
        "GPUs per worker", "benchmark_gpus", value=None, step=1.0, format="%g",
        placeholder="1 if there are any", help_=GPUS_HELP,
    )  # fmt: skip
    return address, workers, cpus, gpus


def _samples(found: Dataset | None) -> tuple[tuple[str, ...], list[str]]:
    """The ids of the chosen samples, or the lines that name them."""
    held = found.samples if found else ()
    label = f"Samples (of {len(held):,})" if found else "Samples"
    which = choices.buttons(label, WHICH, "benchmark_which")
    if which == "ids":
        title, help_ = "Ids, one on each line", "Full ids, the start of an id, or sequence/number."
        text = st.text_area(title, key="benchmark_ids", bind="query-params", help=help_)
        return (), (text or "").splitlines()
    if which == "first" and found is not None:  # keeps a link's number while the scenes are made
        most, some = len(held), min(20, len(held))  # the default, if not all
        number = choices.number("How many", "benchmark_samples", 1, most, some, SAMPLES_HELP)
        held = held[: int(number)]
    return tuple(sample.id for sample in held), []


def words(plans: Sequence[Plan]) -> str:
    """The number of results of a plan, or of each of a sweep's, and how it is made up."""
    plan = plans[0]
    models, samples = count(len(plan.models), "model"), count(len(plan.samples), "sample")
    repeats = "" if plan.repeat == 1 else f" × {plan.repeat:,} repeats"
    run = "warm-up run" if plan.batch == 1 else "warm-up batch"
    warmups = f", after {count(plan.warmup, run)} per model" if plan.warmup else ""
    together = f", {plan.batch:,} at once" if plan.batch > 1 else ""
    runs = "" if len(plans) == 1 else f"{count(len(plans), 'run')}, one per strength, each "
    results = count(plan.planned, "result")
    return f"{runs}{results}: {models} × {samples}{repeats}{together}{warmups}"


def forecast(choice: RunChoice) -> None:
    """The forecast in one line, if an earlier run allows one and is read quickly."""
    plans, dataset = choice.plans, choice.dataset
    if not plans or dataset is None:
        return
    plan, base = plans[0], settings.load().runs_dir
    with notices.telling("benchmark_forecast", notices.small):
        info = run_planning.newest(plan, dataset.root, _listing(base, run_store.stamps(base)))
        if info is None:
            return
        stamp = run_store.stamp(info.folder)
        if sum(size for name, size, _ in stamp if name.endswith(RESULTS)) > MOST_AT_ONCE:
            return
        earlier = _measured(info.folder, stamp, plan.models)
        sequences = {sample.id: sample.sequence for sample in dataset.samples}
        found = run_planning.forecast(plan, sequences, earlier, len(plans))
        notices.small(run_planning.short(found, earlier), "benchmark_forecast")


@st.cache_resource(max_entries=4, show_spinner=False)
def _listing(base: Path, stamps: tuple[Stamp, ...]) -> tuple[RunInfo, ...]:
    return run_store.listing(base)


@st.cache_resource(max_entries=16, show_spinner="Reading the earlier run …")
def _measured(folder: Path, stamp: Stamp, models: tuple[str, ...]) -> EarlierRun:
    return run_planning.measure(run_store.read(folder), models)


def command(plans: Sequence[Plan], dataset: Dataset, cluster: ClusterOptions | None = None) -> str:
    """`python -m engine bench` for a plan or a sweep, for a shell; `cluster` None: this process.
    Ids of samples that are not the first ones are expected in the file plan.IDS."""
    parts = [*flags(plans, str(dataset.root), [sample.id for sample in dataset.samples])]
    parts += cluster.flags if cluster else ()
    return f"{settings.COMMAND} bench {shlex.join(parts)}"
