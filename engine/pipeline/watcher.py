"""Follows work while it goes on: a run, a batch, a dataset run, a verification.

Boundary: notifications and two questions; no torch.  Verification and drafting add their own
notifications where they are.
"""

from __future__ import annotations

from engine.types import Doing


class Watcher:
    """Follows nothing and cancels nothing; a follower overrides what it needs."""

    def stage(self, name: Doing) -> None:
        """This stage, or compiling, begins."""

    def token(self, token: int, ms: float) -> None:
        """A new token, `ms` after the run's start."""

    def cancelled(self) -> bool:
        """Whether the work should stop."""
        return False

    def give_way(self) -> float:
        """Lets other jobs have the device; returns for how many milliseconds."""
        return 0.0
