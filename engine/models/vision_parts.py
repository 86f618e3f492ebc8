"""Finds the modules whose time is stage 3: what pictures pass through before the language model.

Boundary: hooks on a loaded model while somebody else calls it; knows no family.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from engine.decoding.decode import Decoder

_NAMES = ("vision", "visual", "image")  # how the modules of a tower are called


def outside_language(model: Any, decoder: Decoder) -> Iterator[torch.nn.Module]:
    """The modules that are neither in the language model nor around it, nor the head.

    A few old models have their tower inside the language model: there the names decide.
    """
    if decoder.language_model in (model, model.base_model):
        names = ((name.split(".")[-1], one) for name, one in model.named_modules())
        yield from (one for name, one in names if name.startswith(_NAMES))
        return
    parts = (decoder.language_model, decoder.head)
    inside = {id(one) for part in parts for one in part.modules()}
    for module in model.modules():
        if id(module) not in inside and not any(id(one) in inside for one in module.modules()):
            yield module


class Outermost:
    """Inside a `with`: which of these modules are called while none of the others is running."""

    def __init__(self, modules: Iterator[torch.nn.Module]) -> None:
        self.modules: list[torch.nn.Module] = []
        self._given, self._depth = list(modules), 0
        self._handles: list[torch.utils.hooks.RemovableHandle] = []

    def __enter__(self) -> Outermost:
        for module in self._given:
            self._handles.append(module.register_forward_pre_hook(self._enter))
            self._handles.append(module.register_forward_hook(self._leave))
        return self

    def __exit__(self, *exc: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _enter(self, module: torch.nn.Module, *_: Any) -> None:
        if self._depth == 0 and not any(module is one for one in self.modules):
            self.modules.append(module)
        self._depth += 1

    def _leave(self, *_: Any) -> None:
        self._depth -= 1
