"""An entry of models.toml and the folder that holds its checkpoint."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from engine.errors import ModelUnavailable
from engine.models import supported
from engine.models.checkpoint_files import check_settings, read_json
from engine.models.weights import weight_files
from engine.types import MediaKind, Pixels

Quantization = Literal["8bit", "4bit"]
DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class ModelEntry:
    """One entry of models.toml, or a variant of it (variants.py).

    `kind`: what the model is shown.  `folder` is set for local checkpoints, None for hub names.
    `pixels`: a variant's own setting; None: the run's.  `of`: the entry that a variant is derived
    from.
    """

    name: str
    label: str = field(compare=False)  # a page may shorten it
    family: str
    kind: MediaKind
    checkpoint: str
    folder: Path | None
    revision: str | None
    dtype: str
    demo: bool
    quantization: Quantization | None = None
    pixels: Pixels | None = None
    of: ModelEntry | None = None
    download: str | None = None  # about how much a download fetches, such as "7.5 GB"
    tone: str = field(default="", compare=False)  # of its column on a page; see palette.tones

    @property
    def colour(self) -> str:
        """The name of its colour in palette.py: its column's, else its family's."""
        return self.tone or self.family

    @property
    def precision(self) -> str:
        """As in ModelInfo: "float16", or "float16 4bit" for a quantized model."""
        return f"{self.dtype} {self.quantization}" if self.quantization else self.dtype


def is_hub_name(checkpoint: str) -> bool:
    """Whether this is a hub name "owner/name"; a folder with one slash is written ./owner/name."""
    return _HUB_NAME.fullmatch(checkpoint) is not None


def locate(entry: ModelEntry) -> Path:
    """The folder that holds the checkpoint's files, or ModelUnavailable with what to do."""
    folder = entry.folder or _in_hub_cache(entry)
    try:
        if not folder.is_dir():
            raise _not_here(entry, folder)
        if not (found := weight_files(folder, entry.name)):
            supported.refuse_without_weights(entry.name, folder)
        config = read_json(folder / "config.json", entry.name)
        if not found:
            fix = "copy its *.safetensors (or *.bin) there."
            if entry.folder is None:
                fix = f"run `python -m engine download {entry.name}` to finish its download."
            raise ModelUnavailable(f"{entry.name} has no weights in {folder}: {fix}")
        supported.refuse_packed(entry.name, folder / "config.json", config)
        check_settings(folder, entry.name)
    except OSError as error:
        raise ModelUnavailable(
            f"{entry.name}: {error.filename or folder} cannot be read ({error.strerror}): "
            "give this user read permission."
        ) from error
    return folder


def revision(entry: ModelEntry, folder: Path) -> str | None:
    """The commit if the hub's cache names the folder by it, else the entry's revision."""
    return folder.name if _COMMIT.fullmatch(folder.name) else entry.revision


def _not_here(entry: ModelEntry, folder: Path) -> ModelUnavailable:
    supported.refuse_gguf_file(entry.name, folder)
    if folder.exists():
        return ModelUnavailable(
            f"{entry.name}: {folder} is a file, not a checkpoint folder: correct its "
            "checkpoint in models.toml."
        )
    return ModelUnavailable(
        f"{entry.name} is not on this machine: put its checkpoint folder at {folder}, "
        "or change its checkpoint in models.toml."
    )


def _in_hub_cache(entry: ModelEntry) -> Path:
    if (folder := hub_folder(entry.checkpoint, entry.revision)) is None:
        size = f" (about {entry.download})" if entry.download else ""
        raise ModelUnavailable(
            f"{entry.name} has not been downloaded: run `python -m engine download {entry.name}` "
            f"once{size}, or set its checkpoint in models.toml to a folder."
        )
    return folder


def hub_folder(checkpoint: str, revision: str | None) -> Path | None:
    """The folder in the hub's cache that holds this revision's config.json, or None."""
    from huggingface_hub import constants

    # The client takes 0.1 s to import, so it is only imported if its cache has such a folder.
    name = constants.REPO_ID_SEPARATOR.join(["models", *checkpoint.split("/")])
    if not Path(constants.HF_HUB_CACHE, name).is_dir():
        return None
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(checkpoint, "config.json", revision=revision)
    return Path(found).parent if isinstance(found, str) else None
