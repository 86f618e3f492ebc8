"""The adapters in memory, and which of them are unloaded when memory is needed.

Boundary: counts bytes and drops references; loads nothing and knows no family.  An adapter that is
running stays in memory until the run ends.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.machine import device, memory
from engine.models.checkpoint import ModelEntry
from engine.models.shape import Shape

if TYPE_CHECKING:
    from engine.models.adapter import Adapter


@dataclass(frozen=True, eq=False)
class View:
    """A loaded model as one entry uses it, and its shape, which gives its memory need."""

    adapter: Adapter
    shape: Shape


@dataclass(frozen=True, eq=False)
class Resident(View):
    """A loaded model, and how its variants use it."""

    views: dict[ModelEntry, View] = field(default_factory=dict)


class Residents:
    """The loaded models, under the entries whose weights they hold (variants.loaded).

    Not thread-safe: the registry calls it under its lock.
    """

    def __init__(self) -> None:
        self._held: OrderedDict[ModelEntry, Resident] = OrderedDict()

    def __contains__(self, item: ModelEntry) -> bool:
        return item in self._held

    def entries(self) -> tuple[ModelEntry, ...]:
        """The least recently used first."""
        return tuple(self._held)

    def use(self, item: ModelEntry) -> Resident | None:
        """The model, which becomes the most recently used one."""
        if item in self._held:
            self._held.move_to_end(item)
        return self._held.get(item)

    def peek(self, item: ModelEntry) -> Resident | None:
        """The model; does not count as a use."""
        return self._held.get(item)

    def add(self, item: ModelEntry, adapter: Adapter, shape: Shape) -> Resident:
        found = self._held[item] = Resident(adapter, shape)
        return found

    def drop(self, item: ModelEntry) -> bool:
        """Drops the adapter and frees its memory; returns whether it was loaded."""
        if self._held.pop(item, None) is None:
            return False
        memory.release()
        return True

    def sizes(self) -> dict[ModelEntry, int]:
        """Bytes of each adapter's weights on its device."""
        return {item: _bytes(found.adapter) for item, found in list(self._held.items())}

    def could_free(self, keep: ModelEntry) -> int:
        """Bytes of everything except `keep`, including reserves."""
        models = sum(size for item, size in self.sizes().items() if item != keep)
        return models + memory.reserved_bytes()

    def make_room(self, needed: int, keep: ModelEntry) -> int:
        """Frees the reserves, then the least recently used models, until `needed` bytes are free;
        returns the free bytes.
        """
        if device.free_bytes() < needed and memory.clear_reserves():
            memory.release()
        while (free := device.free_bytes()) < needed:
            other = next((item for item in self._held if item != keep), None)
            if other is None:
                break
            self.drop(other)
        return free


def _bytes(adapter: Adapter) -> int:
    model = adapter.model
    return sum(
        int(part.nbytes) for parts in (model.parameters(), model.buffers()) for part in parts
    )
