"""Loading and unloading a model as jobs, so that neither happens under a run's feet.

Boundary: the queue on one side, the registry on the other.  Whoever waits sees the state, as with
any other job; a failure is the sentence of what failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from engine.jobs import Job
from engine.models import registry
from engine.models.checkpoint import ModelEntry


@dataclass(eq=False, kw_only=True)
class ModelJob(Job):
    """Loads the entry's model, or unloads it; `freed` is how many bytes its weights took."""

    brief: ClassVar[bool] = True

    entry: ModelEntry
    action: Literal["load", "unload"] = "load"
    freed: int = 0

    @property
    def title(self) -> str:
        return self.entry.name

    def run(self) -> None:
        self.state = "loading"
        if self.action == "load":
            registry.load(self.entry)
        else:
            size = registry.resident_bytes().get(self.entry, 0)
            self.freed = size if registry.unload(self.entry) else 0
        self.state = "done"
