"""Which order a run of several models takes, where its plan leaves that open.

Boundary: from a plan and what the models need to a plan with an order and the reason for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.errors import ModelUnavailable
from engine.machine.memory import gib
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.storage.plan import Order, Plan

ROOM = 0.9  # of the free memory: the rest is for what no estimate knows


def settled(plan: Plan, entries: Mapping[str, ModelEntry], elsewhere: bool) -> Plan:
    """The plan with "auto" replaced by an order; any other plan as it is.

    By turns, a change of the machine's load meets all models alike; so that is the order wherever
    all models fit into memory at once.  `elsewhere`: workers answer, each of which holds one model.
    """
    if plan.order != "auto":
        return plan
    order, why = _chosen(plan, entries, elsewhere)
    return replace(plan, order=order, order_why=f"auto: {why}")


def _chosen(plan: Plan, entries: Mapping[str, ModelEntry], elsewhere: bool) -> tuple[Order, str]:
    if len(plan.models) == 1:
        return "sequential", "there is one model"
    if elsewhere:
        return "sequential", "each worker of a cluster holds one model"
    try:
        room = registry.combined_memory([entries[name] for name in plan.models], _tokens(plan))
    except ModelUnavailable as error:
        return "sequential", f"what the models need together is not known ({error})".rstrip(".")
    needed = room.weights + plan.batch * room.run
    of = f"{gib(needed)} needed, {gib(room.free)} free"
    if needed <= ROOM * room.free:
        return "interleaved", f"all {len(plan.models):,} models fit into memory at once ({of})"
    return "sequential", f"the {len(plan.models):,} models do not fit into memory at once ({of})"


def _tokens(plan: Plan) -> int:
    return plan.decode.max_new_tokens
