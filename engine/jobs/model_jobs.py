"""Loading, unloading and hashing a model as jobs, so that they never overlap with a run."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from engine.errors import Cancelled, ModelUnavailable
from engine.jobs.queue import Job
from engine.models import checkpoint_files, registry, variants
from engine.models.checkpoint import ModelEntry
from engine.models.checkpoint_files import Step

Action = Literal["load", "unload", "hash"]


@dataclass(eq=False, kw_only=True)
class ModelJob(Job):
    """`freed`: bytes of the weights of an unloaded model; `progress`: hashed bytes, or loaded
    weights."""

    brief: ClassVar[bool] = True

    entry: ModelEntry
    action: Action = "load"
    freed: int = 0
    step: Step | None = None
    progress: tuple[int, int] = (0, 0)

    @property
    def title(self) -> str:
        return self.entry.name

    def run(self) -> None:
        self.state = "loading" if self.action == "load" else "running"
        with checkpoint_files.reported_to(self._follow):
            if self.action == "load":
                if reason := registry.unavailable(self.entry):  # before hashing a large checkpoint
                    raise ModelUnavailable(reason)
                registry.load(self.entry)
            elif self.action == "unload":
                size = registry.resident_bytes().get(variants.loaded(self.entry), 0)
                self.freed = size if registry.unload(self.entry) else 0
            else:
                registry.full_digest(self.entry)

    def _follow(self, step: Step, done: int, total: int) -> None:
        self.step, self.progress = step, (done, total)
        if self.cancelled():
            raise Cancelled(f"The {self.action} of {self.title} was cancelled; nothing is kept.")
