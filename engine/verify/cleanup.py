"""Checks that verification leaves the model unchanged.

Boundary: inspects modules, settings and generators; runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from engine.models.adapter import Adapter


@dataclass(frozen=True)
class ModelState:
    """The state that inference must not change.

    `weights`: the sum of torch's in-place change counters of all parameters.  `generator`: the
    state of torch's global random generator.
    """

    hooks: int
    training: bool
    weights: int
    generation_config: str
    generator: bytes
    threads: int

    def changed(self, later: ModelState) -> list[str]:
        """The names of the fields that differ."""
        return [name for name in vars(self) if getattr(self, name) != getattr(later, name)]


def state(adapter: Adapter) -> ModelState:
    model = adapter.model
    return ModelState(
        hooks=sum(_hooks(model)),
        training=any(module.training for module in model.modules()),
        weights=sum(weight._version for weight in model.parameters()),
        generation_config=model.generation_config.to_json_string(),
        generator=bytes(torch.get_rng_state().tolist()),
        threads=torch.get_num_threads(),
    )


def _hooks(model: torch.nn.Module) -> Iterator[int]:
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    for module in model.modules():
        yield from (len(getattr(module, kind)) for kind in kinds)
