"""A model's card as rows of words: who it is, how large, and what its files turned out to hold.

Boundary: ModelInfo, Need and an entry of models.toml in, (name, value) out; no streamlit.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.models.checkpoint import ModelEntry
from engine.types import MediaKind, ModelInfo, Tower
from ui.widgets.text import count

SEES: dict[MediaKind, str] = {
    "events": "event images",
    "video": "frames of a video",
    "image": "one frame",
}
LATER = "known once it is loaded"
FEW = 3  # names of weights that are written out
Rows = list[tuple[str, str]]


def of_entry(entry: ModelEntry) -> Rows:
    """What models.toml says of a model whose files are not here."""
    return [
        ("Name", entry.name),
        ("Family", family(entry)),
        ("From", str(entry.folder or f"Hugging Face hub: {entry.checkpoint}")),
        *([("Revision", entry.revision)] if entry.revision else []),
        ("Runs in", entry.precision),
    ]


def of_card(entry: ModelEntry, card: ModelInfo) -> Rows:
    """What its files say, and what loading them showed."""
    pictures = "" if card.images is None else f" from {count(card.images, 'picture')}"
    return [
        ("Name", card.name),
        ("Family", family(entry)),
        ("From", card.source),
        *([("Revision", card.revision)] if card.revision else []),
        ("Digest", f"{card.headers} (names, shapes and sizes)"),
        ("Full hash", card.digest or "not computed: it reads every byte"),
        ("Parameters", parameters(card.parameters)),
        ("Runs in", numbers(card)),
        ("Vision tower", tower(card.tower)),
        ("Visual tokens", LATER if not card.visual_tokens else f"{card.visual_tokens:,}{pictures}"),
        ("Context limit", LATER if not card.context_limit else f"{card.context_limit:,} tokens"),
        ("Missing weights", weights(card.missing)),
        ("Extra weights", weights(card.extra)),
        *([("Generation settings", " ".join(card.generation))] if card.generation else []),
    ]


def family(entry: ModelEntry) -> str:
    return f"{entry.family}, sees {SEES[entry.kind]}"


def parameters(number: int | None) -> str:
    """7,063,427,072 (7.06 billion)."""
    if number is None:
        return LATER
    for size, name in ((10**9, "billion"), (10**6, "million")):
        if number >= size:
            return f"{number:,} ({number / size:.2f} {name})"
    return f"{number:,}"


def numbers(card: ModelInfo) -> str:
    """Its dtype and quantization when it runs, and how the files hold it."""
    shrunk = card.quantization or "not quantized"
    return f"{card.dtype}, {shrunk}; stored as {card.stored_dtype or 'the files do not say what'}"


def tower(shape: Tower | None) -> str:
    if shape is None:
        return LATER
    layers, heads = count(shape.layers, "layer"), count(shape.heads, "head")
    return (
        f"{layers} of {shape.hidden:,}, {heads}, "
        f"{shape.image_size} px in patches of {shape.patch_size} px"
    )


def weights(names: Sequence[str] | None) -> str:
    """Names of weights, the first few of many."""
    if names is None:
        return LATER
    if not names:
        return "none"
    more = f" and {len(names) - FEW:,} more" if len(names) > FEW else ""
    return f"{len(names):,}: {', '.join(names[:FEW])}{more}"
