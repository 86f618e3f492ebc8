"""The entries of models.toml, checked field by field, and the folder of each one's checkpoint."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct

from engine import settings
from engine.errors import ModelUnavailable, SettingsError
from engine.models import quantization, supported
from engine.models.checkpoint_files import check_settings, read_json, weight_files
from engine.models.families import ANY_FAMILY, FAMILIES
from engine.quoting import one_line, quoted, shown
from engine.types import VARIANT_MARK, MediaKind

Quantization = Literal["8bit", "4bit"]
DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
MAX_TEXT = 1000  # characters of a value in models.toml
Text = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT, pattern=r"^[^\x00-\x1f\x7f]+$")]
_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ALLOWED: dict[str, set[str]] = {  # the values of these fields
    "family": set(FAMILIES),
    "dtype": set(DTYPE_BYTES),
    "quantization": set(quantization.KINDS),
    "shows": {*get_args(MediaKind)},
}


@dataclass(frozen=True)
class ModelEntry:
    """One entry of models.toml, or a variant of it (variants.py).

    `kind`: what the model is shown.  `folder` is set for local checkpoints, None for hub names.
    `of`: the entry that a variant is derived from.
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


class Row(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One [[model]] of models.toml."""

    name: Text
    checkpoint: Text
    label: Annotated[str, Meta(max_length=MAX_TEXT)] | None = None  # made one line
    family: Text | None = None
    revision: Text | None = None
    dtype: Text = "float32"
    demo: bool = False
    quantization: Text | None = None
    shows: Text | None = None
    download: Text | None = None


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


def _entry(given: Any, path: Path) -> ModelEntry:
    try:
        row = msgspec.convert(given, Row)
    except msgspec.ValidationError as error:
        why = str(error).replace("`", "'")
        raise SettingsError(
            f"{shown(path)}: {quoted(given)} is no entry ({why[:1].lower()}{why[1:]}): correct it; "
            f"its fields are {', '.join(Row.__struct_fields__)}."
        ) from error
    if VARIANT_MARK in row.name:
        raise SettingsError(
            f"{shown(path)}: {quoted(row.name)} holds {VARIANT_MARK}, which begins the words of a "
            "variant: rename it."
        )
    for key, allowed in _ALLOWED.items():
        if (value := getattr(row, key)) is not None and value not in allowed:
            raise SettingsError(
                f"{shown(path)}: {quoted(row.name)} has the unknown {key} {quoted(value)}: known "
                f"are {', '.join(sorted(allowed))}."
            )
    place = settings.expand(row.checkpoint, path.parent)
    folder = None if is_hub_name(row.checkpoint) and not place.exists() else place
    local = folder or hub_folder(row.checkpoint, row.revision)
    family = row.family or _family_of(row.name, local)
    fields = msgspec.structs.asdict(row)
    kind = fields.pop("shows") or FAMILIES[family].kind
    fields |= {"label": one_line(row.label or "").strip() or row.name, "family": family}
    return ModelEntry(**fields, kind=kind, folder=folder)


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
            supported.refuse_listed(name, shown(folder), {folder.name})
            why = f"{folder} is a file, not a checkpoint folder" if folder.exists() else ""
            raise ModelUnavailable(
                f"{name}: {why}: correct its checkpoint in models.toml."
                if why
                else f"{name} is not on this machine: put its checkpoint folder at {folder}, or "
                "change its checkpoint in models.toml."
            )
        if not (files := weight_files(folder, name)):
            supported.refuse_without_weights(name, folder)
        config = read_json(folder / "config.json", name)
        if not files:
            fix = "copy its *.safetensors (or *.bin) there, of shards with their index."
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
