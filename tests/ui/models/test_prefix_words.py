"""Prefixes in memory, in a sentence on the Models page."""

from __future__ import annotations

import torch

from engine.pipeline.prefix_cache import Prefix, Prefixes
from ui.models import memory_bars


class Owner:
    """A model."""


def test_nothing_is_said_of_none() -> None:
    assert memory_bars.prefix_words(Prefixes(1)) == ""


def test_their_bytes_and_their_bound_are_said() -> None:
    store, owner = Prefixes(2), Owner()
    layer = (torch.zeros(1, 1, 128, 1), torch.zeros(1, 1, 128, 1))
    store.keep("a", Prefix((layer,), {}, False), owner)
    said = memory_bars.prefix_words(store)
    assert "1.0 KiB (at most 2.0 MiB)" in said and "1 prompt prefix kept" in said
