"""The command that starts the chosen run from a terminal.

Boundary: a plan in, text out; only what differs from the command's defaults is in it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import fields

from engine.benchmark.cluster.cluster_options import ClusterOptions
from engine.media.dataset import Dataset
from engine.media_options import COUNT_SPLIT, sweep_text
from engine.storage.plan import Plan

# Options whose value is a field of the plan.
_SAME = ("repeat", "warmup", "order", "cache", "frames", "mode", "pixels", "extent", "batch")
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
    parts += [
        *_options(plan, dataset),
        *_input(plan, sweep or (plan,)),
        *(_cluster(cluster) if cluster else ()),
    ]
    return shlex.join(["python", "-m", "engine", "bench", *parts])


def _cluster(cluster: ClusterOptions) -> Iterator[str]:
    yield from ("--executor", "ray", "--address", cluster.address)
    if cluster.workers is not None:
        yield from ("--workers", str(cluster.workers))
    if cluster.cpus != ClusterOptions.cpus or cluster.gpus is not None:
        gpus = "" if cluster.gpus is None else f",gpus={cluster.gpus:g}"
        yield from ("--per-worker", f"cpus={cluster.cpus}{gpus}")


def _input(plan: Plan, sweep: Sequence[Plan]) -> Iterator[str]:
    """Window, split and perturbation."""
    if plan.window is not None:
        yield from ("--window", str(plan.window))
    if plan.split != COUNT_SPLIT:
        yield from ("--split", str(plan.split))
    if text := sweep_text([one.perturb for one in sweep]):
        yield from ("--perturb", text)
        if plan.perturb_seed:
            yield from ("--perturb-seed", str(plan.perturb_seed))


def _options(plan: Plan, dataset: Dataset) -> Iterator[str]:
    defaults = {field.name: field.default for field in fields(Plan)}
    ids = tuple(sample.id for sample in dataset.samples)
    if plan.samples != ids:
        first = plan.samples == ids[: len(plan.samples)]
        yield from ("--samples", str(len(plan.samples))) if first else ("--ids", IDS)
    if plan.prompt is not None:
        yield from ("--prompt", plan.prompt)
    for name in _SAME:
        if getattr(plan, name) != defaults[name]:
            yield from (f"--{name}", str(getattr(plan, name)))
    if plan.forced is not None:
        yield from ("--length", f"forced:{plan.forced}")
    elif plan.decode.max_new_tokens != type(plan.decode).max_new_tokens:
        yield from ("--max-new-tokens", str(plan.decode.max_new_tokens))
    if plan.decode.backend != "auto":
        yield from ("--backend", plan.decode.backend)
