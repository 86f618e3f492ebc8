"""The command that starts the chosen run from a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

from engine.benchmark.cluster.cluster_options import ClusterOptions
from engine.media.dataset import Dataset
from engine.media_options import sweep_text
from engine.storage.plan import Plan
from engine.types import OFFERED, value_of

IDS = "ids.txt"


def command(
    plan: Plan,
    dataset: Dataset,
    cluster: ClusterOptions | None = None,
    sweep: Sequence[Plan] = (),
) -> str:
    """`python -m engine bench` for this plan, ready for a shell; `cluster` None: this process.

    `sweep`: the plans of a sweep, of which `plan` is the first.  Ids of samples that are not the
    first ones are expected in the file IDS, one on each line.
    """
    parts = ["--dataset", str(dataset.root), "--models", ",".join(plan.models)]
    parts += _options(plan if plan.perturb else replace(plan, perturb_seed=0), dataset)
    if text := sweep_text([one.perturb for one in sweep or (plan,)]):
        parts += ["--perturb", text]
    parts += _cluster(cluster) if cluster else ()
    return shlex.join(["python", "-m", "engine", "bench", *parts])


def _cluster(cluster: ClusterOptions) -> Iterator[str]:
    yield from ("--executor", "ray", "--address", cluster.address)
    if cluster.workers is not None:
        yield from ("--workers", str(cluster.workers))
    if cluster.cpus != ClusterOptions.cpus or cluster.gpus is not None:
        gpus = "" if cluster.gpus is None else f",gpus={cluster.gpus:g}"
        yield from ("--per-worker", f"cpus={cluster.cpus}{gpus}")


def _options(plan: Plan, dataset: Dataset) -> Iterator[str]:
    """What differs from the defaults, without the changes of a sweep."""
    ids = tuple(sample.id for sample in dataset.samples)
    if plan.samples != ids:
        first = plan.samples == ids[: len(plan.samples)]
        yield from ("--samples", str(len(plan.samples))) if first else ("--ids", IDS)
    if plan.decode.forced is not None:
        yield from ("--length", f"forced:{plan.decode.forced}")
    for name in ("prompt", "repeat", "warmup", "order", "batch", *OFFERED):
        value = value_of(plan, name)
        set_by_length = name == "max_new_tokens" and plan.decode.forced is not None
        if value != value_of(Plan, name) and not set_by_length and name != "perturb":
            yield from ("--" + name.replace("_", "-"), str(value))
