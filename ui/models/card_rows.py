"""A model's card as rows of text: source, size, precision, weights."""

from __future__ import annotations

from collections.abc import Sequence

from engine.models.checkpoint import ModelEntry
from engine.types import MediaKind, ModelInfo
from ui.widgets.text import count

SEES: dict[MediaKind, str] = {
    "events": "event images",
    "video": "frames of a video",
    "image": "one frame",
}
LATER = "known after loading"
FEW = 3  # names of weights that are listed
Rows = list[tuple[str, str]]


def of_entry(entry: ModelEntry) -> Rows:
    """The entry of models.toml, for a model whose files are missing."""
    return [
        ("Name", entry.name),
        ("Family", family(entry)),
        ("From", str(entry.folder or f"Hugging Face hub: {entry.checkpoint}")),
        *([("Revision", entry.revision)] if entry.revision else []),
        *([("Download", f"about {entry.download}")] if entry.download else []),
        ("Runs in", entry.precision),
    ]


def of_card(entry: ModelEntry, card: ModelInfo) -> Rows:
    """The card: what the files contain, and what loading them showed."""
    pictures = "" if card.images is None else f" from {count(card.images, 'picture')}"
    return [
        ("Name", card.name),
        ("Family", family(entry)),
        ("From", card.source),
        *([("Revision", card.revision)] if card.revision else []),
        ("Digest", f"{card.headers} (names, shapes and sizes)"),
        ("Full hash", card.digest or "not computed: that reads every byte"),
        ("Parameters", parameters(card.parameters)),
        (
            "Runs in",
            f"{card.dtype}, {card.quantization or 'not quantized'}; "
            f"stored as {card.stored_dtype or 'an unknown dtype'}",
        ),
        ("Vision tower", (card.tower and card.tower.words) or LATER),
        ("Visual tokens", LATER if not card.visual_tokens else f"{card.visual_tokens:,}{pictures}"),
        ("Context limit", LATER if not card.context_limit else f"{card.context_limit:,} tokens"),
        ("Missing weights", weights(card.missing)),
        ("Extra weights", weights(card.extra)),
        *([("Generation settings", " ".join(card.generation))] if card.generation else []),
    ]


def family(entry: ModelEntry) -> str:
    return f"{entry.family}, input: {SEES[entry.kind]}"


def parameters(number: int | None) -> str:
    """7,063,427,072 (7.06 billion)."""
    if number is None:
        return LATER
    for size, name in ((10**9, "billion"), (10**6, "million")):
        if number >= size:
            return f"{number:,} ({number / size:.2f} {name})"
    return f"{number:,}"


def weights(names: Sequence[str] | None) -> str:
    """The number of weights and the first few names."""
    if names is None:
        return LATER
    if not names:
        return "none"
    more = f" and {len(names) - FEW:,} more" if len(names) > FEW else ""
    return f"{len(names):,}: {', '.join(names[:FEW])}{more}"
