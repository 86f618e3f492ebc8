"""The entries of models.toml, checked field by field, and the folder of each one's checkpoint."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from engine import settings
from engine.errors import ModelUnavailable, SettingsError
from engine.models import quantization, supported
from engine.models.checkpoint_files import check_settings, read_json, weight_files
from engine.models.families import ANY_FAMILY, FAMILIES
from engine.quoting import quoted, shown
from engine.types import VARIANT_MARK, MediaKind, Pixels

Quantization = Literal["8bit", "4bit"]
DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_FIELDS = {
    *("name", "label", "family", "checkpoint", "revision"),
    *("dtype", "demo", "quantization", "shows", "download"),
}
_ALLOWED: dict[str, set[str]] = {  # the values of these fields
    "family": set(FAMILIES),
    "dtype": set(DTYPE_BYTES),
    "quantization": set(quantization.KINDS),
    "shows": {*get_args(MediaKind)},
}
MAX_TEXT = 1000  # characters of a value in models.toml


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


def read_entries(table: dict[str, Any], path: Path) -> tuple[ModelEntry, ...]:
    """The entries in the parsed text of this file, in its order; SettingsError says what is
    wrong."""
    rows = table.get("model", [])
    if not isinstance(rows, list):
        raise SettingsError(f"{shown(path)}: model is {quoted(rows)}: write [[model]] entries.")
    entries = tuple(_entry(row, path) for row in rows)
    names = [entry.name for entry in entries]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(f"{shown(path)} holds {quoted(twice)} twice: rename one.")
    return entries


def _entry(row: Any, path: Path) -> ModelEntry:
    if not isinstance(row, dict) or not {"name", "checkpoint"} <= set(row):
        raise SettingsError(f"{shown(path)}: {quoted(row)} needs name and checkpoint.")
    name, where = str(row["name"]), str(row["checkpoint"])
    if VARIANT_MARK in name:
        raise SettingsError(
            f"{shown(path)}: {quoted(name)} holds {VARIANT_MARK}, which begins the words of a "
            "variant: rename it."
        )
    if unknown := sorted(row.keys() - _FIELDS):
        raise _unknown(path, name, "field", unknown[0], _FIELDS)
    for key, value in row.items():
        text = isinstance(value, str) and 0 < len(value) <= MAX_TEXT and value.isprintable()
        if key != "demo" and not text:
            raise SettingsError(
                f"{shown(path)}: {quoted(key)} is {quoted(value)}: write it as a text of 1 to "
                f"{MAX_TEXT:,} characters, in quotes."
            )
    for key, allowed in _ALLOWED.items():
        if key in row and row[key] not in allowed:
            raise _unknown(path, name, key, row[key], allowed)
    place = settings.expand(where, path.parent)
    folder = None if is_hub_name(where) and not place.exists() else place
    family = row.get("family") or _family_of(name, folder or hub_folder(where, row.get("revision")))
    return ModelEntry(
        name=name,
        label=row.get("label", name),
        family=family,
        kind=row.get("shows", FAMILIES[family].kind),
        checkpoint=where,
        folder=folder,
        revision=row.get("revision"),
        dtype=row.get("dtype", "float32"),
        demo=row.get("demo") is True,
        quantization=row.get("quantization"),
        download=row.get("download"),
    )


def _unknown(path: Path, name: str, what: str, value: str, allowed: set[str]) -> SettingsError:
    return SettingsError(
        f"{shown(path)}: {quoted(name)} has the unknown {what} {quoted(value)}: known are "
        f"{', '.join(sorted(allowed))}."
    )


def _family_of(name: str, folder: Path | None) -> str:
    """The family by the checkpoint's config.json; transformers if that is not here to be read."""
    try:
        config = read_json(folder / "config.json", name) if folder else {}
    except ModelUnavailable:
        return ANY_FAMILY  # `unavailable` says what is wrong with it
    return supported.family_of(config)


def is_hub_name(checkpoint: str) -> bool:
    """Whether this is a hub name "owner/name"; a folder with one slash is written ./owner/name."""
    return _HUB_NAME.fullmatch(checkpoint) is not None


def locate(entry: ModelEntry) -> Path:
    """The folder that holds the checkpoint's files, or ModelUnavailable with what to do."""
    name, download = entry.name, f"python -m engine download {entry.name}"
    folder = entry.folder or hub_folder(entry.checkpoint, entry.revision)
    if folder is None:
        size = f" (about {entry.download})" if entry.download else ""
        raise ModelUnavailable(
            f"{name} has not been downloaded: run `{download}` once{size}, or set its checkpoint "
            "in models.toml to a folder."
        )
    try:
        if not folder.is_dir():
            supported.refuse_gguf_file(name, folder)
            raise ModelUnavailable(
                f"{name}: {folder} is a file, not a checkpoint folder: correct its checkpoint in "
                "models.toml."
                if folder.exists()
                else f"{name} is not on this machine: put its checkpoint folder at {folder}, or "
                "change its checkpoint in models.toml."
            )
        if not (files := weight_files(folder, name)):
            supported.refuse_without_weights(name, folder)
        config = read_json(folder / "config.json", name)
        if not files:
            fix = "copy its *.safetensors (or *.bin) there."
            if entry.folder is None:
                fix = f"run `{download}` to finish its download."
            raise ModelUnavailable(f"{name} has no weights in {folder}: {fix}")
        supported.refuse_packed(name, folder / "config.json", config)
        check_settings(folder, name)
    except OSError as error:
        raise ModelUnavailable(
            f"{name}: {error.filename or folder} cannot be read ({error.strerror}): "
            "give this user read permission."
        ) from error
    return folder


def revision(entry: ModelEntry, folder: Path) -> str | None:
    """The commit if the hub's cache names the folder by it, else the entry's revision."""
    return folder.name if _COMMIT.fullmatch(folder.name) else entry.revision


def hub_folder(checkpoint: str, revision: str | None) -> Path | None:
    """The folder in the hub's cache that holds this revision's config.json, or None."""
    from huggingface_hub import constants

    # The client takes 0.1 s to import, so it is only imported if its cache has such a folder.
    name = constants.REPO_ID_SEPARATOR.join(["models", *checkpoint.split("/")])
    if not Path(constants.HF_HUB_CACHE, name).is_dir():
        return None
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(checkpoint, "config.json", revision=revision)
    return Path(config).parent if isinstance(config, str) else None
