"""Chooses the order of models for a plan with the order "auto".

Boundary: a plan and the models' memory needs in, a plan with an order and its reason out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.errors import ModelUnavailable
from engine.machine.memory import gib
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.storage.plan import Order, Plan

ROOM = 0.9  # of the free memory; the rest is a reserve for errors of the estimate


def settled(plan: Plan, entries: Mapping[str, ModelEntry], elsewhere: bool) -> Plan:
    """The plan with "auto" replaced by an order; other plans are returned unchanged.

    If all models fit into memory at once they take turns, so that a change of the machine's load
    affects all of them.  `elsewhere`: workers answer, and each holds one model.
    """
    if plan.order != "auto":
        return plan
    order, why = _chosen(plan, entries, elsewhere)
    return replace(plan, order=order, order_why=f"auto: {why}")


def _chosen(plan: Plan, entries: Mapping[str, ModelEntry], elsewhere: bool) -> tuple[Order, str]:
    if len(plan.models) == 1:
        return "sequential", "there is only one model"
    if elsewhere:
        return "sequential", "each worker of a cluster holds one model"
    try:
        room = registry.combined_memory(
            [entries[name] for name in plan.models], plan.decode.max_new_tokens
        )
    except ModelUnavailable as error:
        return "sequential", f"the memory that the models need is not known ({error})".rstrip(".")
    needed = room.weights + plan.batch * room.run
    of = f"{gib(needed)} needed, {gib(room.free)} free"
    if needed <= ROOM * room.free:
        every = "both" if len(plan.models) == 2 else f"all {len(plan.models):,}"
        return "interleaved", f"{every} models fit into memory at once ({of})"
    return "sequential", f"the {len(plan.models):,} models do not fit into memory at once ({of})"
