"""A model's card as rows of text: source, size, precision, weights."""

from collections.abc import Sequence

from engine.models.checkpoint import ModelEntry
from engine.quoting import count
from engine.types import MediaKind, ModelInfo

SEES: dict[MediaKind, str] = {
    "events": "event images",
    "video": "frames of a video",
    "image": "one frame",
}
LATER = "known after loading"
FEW = 3  # names of weights that are listed


def rows(
    entry: ModelEntry, card: ModelInfo | None, unhashed: str = "that reads every byte"
) -> list[tuple[str, str]]:
    """The card: what the files contain, and what loading them showed.  Without a card the entry of
    models.toml, for a model whose files are missing.  `unhashed`: what is said of a digest that is
    not computed."""
    known = card or entry
    source = card.source if card else entry.folder or f"Hugging Face hub: {entry.checkpoint}"
    common = [
        ("Name", known.name),
        ("Family", f"{entry.family}, input: {SEES[entry.kind]}"),
        ("From", str(source)),
        *([("Revision", known.revision)] if known.revision else []),
    ]
    if card is None:
        download = [("Download", f"about {entry.download}")] if entry.download else []
        return [*common, *download, ("Runs in", entry.precision)]
    pictures = "" if card.images is None else f" from {count(card.images, 'picture')}"
    stored = f"stored as {card.stored_dtype or 'an unknown dtype'}"
    return [
        *common,
        ("Digest", f"{card.headers} (names, shapes and sizes)"),
        ("Full hash", card.digest or f"not computed: {unhashed}"),
        ("Parameters", parameters(card.parameters)),
        ("Runs in", f"{card.dtype}, {card.quantization or 'not quantized'}; {stored}"),
        ("Vision tower", (card.tower and card.tower.words) or LATER),
        ("Visual tokens", LATER if not card.visual_tokens else f"{card.visual_tokens:,}{pictures}"),
        ("Context limit", LATER if not card.context_limit else f"{card.context_limit:,} tokens"),
        ("Missing weights", _weights(card.missing)),
        ("Extra weights", _weights(card.extra)),
        *([("Generation settings", " ".join(card.generation))] if card.generation else []),
    ]


def parameters(number: int | None) -> str:
    """7,063,427,072 (7.06 billion)."""
    if number is None:
        return LATER
    for size, name in ((10**9, "billion"), (10**6, "million")):
        if number >= size:
            return f"{number:,} ({number / size:.2f} {name})"
    return f"{number:,}"


def _weights(names: Sequence[str] | None) -> str:
    if not names:
        return LATER if names is None else "none"
    more = f" and {len(names) - FEW:,} more" if len(names) > FEW else ""
    return f"{len(names):,}: {', '.join(names[:FEW])}{more}"
