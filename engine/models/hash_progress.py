"""How far a long look at a checkpoint has come, for whoever started it.

Boundary: one context variable.  What reads a checkpoint reports here, whoever wants to know (a job)
listens, and nothing between the two passes it on.  A listener may raise Cancelled: the reader
ends there and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

Step = Literal["hash", "weights"]
Listener = Callable[[Step, int, int], None]  # a step, how much of it is done, out of how much


def _nobody(step: Step, done: int, total: int) -> None: ...


_listener: ContextVar[Listener] = ContextVar("listener", default=_nobody)


@contextmanager
def told_to(listener: Listener) -> Iterator[None]:
    """Within it, on this thread, every report goes to the listener."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


def report(step: Step, done: int, total: int) -> None:
    """Bytes of a hash, or weights in place, out of `total`."""
    _listener.get()(step, done, total)
