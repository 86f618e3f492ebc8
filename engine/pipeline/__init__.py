"""The four stages in order: one run, several at once, the feature cache, drafting; and the
callbacks that the engine calls during a run, a batch, a dataset run or a verification."""

from engine import media
from engine.types import Doing, Media, MediaKind, MediaOptions, Sample


class Watcher:
    """Does nothing and cancels nothing; subclasses override what they need."""

    def load(self, sample: Sample, kind: MediaKind, how: MediaOptions) -> Media:
        """Stage 1 of a run: a verification observes it, or shows other pictures."""
        return media.load(sample, kind, how)

    def stage(self, name: Doing) -> None:
        """Called when this stage, or compiling, begins."""

    def token(self, token: int, ms: float) -> None:
        """Called for each new token, `ms` after the run's start."""

    def piece(self, text: str, ms: float) -> None:
        """Called for each piece of text of a server, with the text so far, `ms` after the start."""

    def cancelled(self) -> bool:
        return False

    def give_way(self) -> float:
        """Lets other jobs use the device; returns the pause in milliseconds."""
        return 0.0

    def round(self, done: int, of: int) -> None:
        """Round `done + 1` of the `of` rounds of a drafting trial begins."""
