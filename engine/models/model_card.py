"""A model's card (identity and size), read from its folder without loading weights.

Boundary: headers, sizes and config.json in, a ModelInfo out; imports neither torch nor
transformers.  Fields that are only known after loading (unused weights, the exact count in .bin
files) are None here; loading.py fills them in.
"""

from __future__ import annotations

from pathlib import Path

from engine import settings
from engine.decoding import generation_rules
from engine.models import checkpoint, checkpoint_files, shape, trained_questions, weights
from engine.models.checkpoint import ModelEntry
from engine.models.shape import AnyForm, Form
from engine.types import ModelInfo


def card(entry: ModelEntry, folder: Path, form: Form | AnyForm) -> ModelInfo:
    """The card of the checkpoint in this folder, or ModelUnavailable.

    `digest`, the hash of all bytes, is set only if it is already known; see `full_digest`.
    """
    sizes = shape.read(form, folder, entry.name)
    exact = weights.counts_exactly(folder, entry.name)
    return ModelInfo(
        name=entry.name,
        family=entry.family,
        checkpoint=entry.checkpoint,
        revision=checkpoint.revision(entry, folder),
        dtype=entry.dtype,
        demo=entry.demo,
        digest=weights.digest_if_known(folder, entry.name, memo()) or "",
        quantization=entry.quantization,
        source=str(folder) if entry.folder else f"Hugging Face hub: {entry.checkpoint}",
        headers=weights.header_digest(folder, entry.name),
        parameters=weights.weight_count(folder, entry.name) if exact else None,
        stored_dtype=sizes.stored_dtype,
        tower=sizes.tower,
        visual_tokens=sizes.visual_tokens,
        images=None if sizes.visual_tokens is None else sizes.images,
        context_limit=sizes.text.context,
        questions=trained_questions.declared(folder, entry.name),
        generation=generation_rules.notes(
            checkpoint_files.read_if_there(folder / "generation_config.json", entry.name)
        ),
        shows=entry.kind,
    )


def full_digest(entry: ModelEntry, folder: Path) -> str:
    """The hash of all bytes; the first call reads the whole checkpoint, which takes as long as
    loading."""
    return weights.digest(folder, entry.name, memo())


def memo() -> Path:
    """The file that keeps the hashes of checkpoint files."""
    return settings.load().hashes_file
