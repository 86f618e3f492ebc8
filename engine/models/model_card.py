"""A model's card (identity and size), read from its folder without loading weights.

Fields that are only known after loading (unused weights, the exact count in .bin files) are None
here; loading.py fills them in.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from engine import settings
from engine.decoding import generation_rules
from engine.errors import ModelUnavailable
from engine.models import checkpoint, checkpoint_files, shape, weights
from engine.models.checkpoint import ModelEntry
from engine.models.shape import Form
from engine.prompts import plain_question
from engine.types import MediaKind, ModelInfo

# A small checkpoint lists in this file the few questions that it was trained on, and what it was
# shown ("inputs") if that was more than one thing.  Without the file any question is accepted.
TRAINED = "trained_questions.json"


def card(entry: ModelEntry, folder: Path, form: Form) -> ModelInfo:
    """The card of the checkpoint in this folder, or ModelUnavailable.

    `digest`, the hash of all bytes, is set only if it is already known; see `full_digest`.
    """
    sizes = shape.read(form, folder, entry.name)
    exact = weights.counts_exactly(folder, entry.name)
    memo = settings.load().hashes_file
    return ModelInfo(
        name=entry.name,
        family=entry.family,
        checkpoint=entry.checkpoint,
        revision=checkpoint.revision(entry, folder),
        dtype=entry.dtype,
        demo=entry.demo,
        digest=weights.digest_if_known(folder, entry.name, memo) or "",
        quantization=entry.quantization,
        source=str(folder) if entry.folder else f"Hugging Face hub: {entry.checkpoint}",
        headers=weights.header_digest(folder, entry.name),
        parameters=weights.weight_count(folder, entry.name) if exact else None,
        stored_dtype=sizes.stored_dtype,
        tower=sizes.tower,
        visual_tokens=sizes.visual_tokens,
        images=None if sizes.visual_tokens is None else sizes.images,
        context_limit=sizes.text.context,
        questions=trained_questions(folder, entry.name),
        generation=generation_rules.notes(
            checkpoint_files.read_if_there(folder / "generation_config.json", entry.name)
        ),
        shows=entry.kind,
    )


def full_digest(entry: ModelEntry, folder: Path) -> str:
    """The hash of all bytes; the first call reads the whole checkpoint, which takes as long as
    loading."""
    return weights.digest(folder, entry.name, settings.load().hashes_file)


def trained_questions(folder: Path, name: str) -> frozenset[str] | None:
    """The trained questions as plain_question() gives them, None for a folder without the file.

    Each counts as written and in lower case, because training uses both.
    """
    path = folder / TRAINED
    if not path.exists():
        return None
    found = checkpoint_files.read_json(path, name).get("questions")
    if not isinstance(found, list) or not found or not all(isinstance(q, str) for q in found):
        raise ModelUnavailable(
            f"{name}: {path} has no list of texts under 'questions': copy it again."
        )
    return frozenset(plain_question(form) for q in found for form in (q, q.lower()))


def trained_inputs(folder: Path, name: str) -> frozenset[MediaKind]:
    """The inputs that the file lists; empty if it lists none."""
    listed = checkpoint_files.read_if_there(folder / TRAINED, name).get("inputs", [])
    return frozenset(kind for kind in get_args(MediaKind) if kind in listed)
