"""The columns of a page: their labels say what differs, and each has a colour of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from engine import palette
from engine.models import registry, variants
from engine.models.checkpoint import ModelEntry


def columns(items: Sequence[ModelEntry]) -> tuple[ModelEntry, ...]:
    """The entries as columns beside each other, with their labels and colours."""
    tones = palette.tones([item.family for item in items])
    named = variants.labelled(items)
    return tuple(replace(item, tone=tone) for item, tone in zip(named, tones, strict=True))


def on_page(
    entries: Sequence[ModelEntry], chosen: Sequence[ModelEntry], shown: Iterable[str]
) -> tuple[ModelEntry, ...]:
    """All entries and variants of a page: first the columns, which are those of the shown runs,
    otherwise the chosen ones."""
    ran = [item for name in shown if (item := registry.find(name)) is not None]
    beside = columns(ran or chosen)
    names = {item.name for item in beside}
    rest = {item.name: item for item in (*chosen, *entries) if item.name not in names}
    return (*beside, *rest.values())


class Labels(Mapping[str, str]):
    """Labels by name, also of variants; other names are not in it."""

    def __init__(self, entries: Sequence[ModelEntry]) -> None:
        self._entries = {entry.name: entry for entry in entries}

    def __getitem__(self, name: str) -> str:
        found = variants.named(name, self._entries)
        if found is None:
            raise KeyError(name)
        return found.label

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
