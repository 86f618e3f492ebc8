"""The rows of models.toml as entries, checked field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from engine import settings
from engine.errors import ModelUnavailable, SettingsError
from engine.models import checkpoint, checkpoint_files, quantization, supported
from engine.models.checkpoint import DTYPE_BYTES, ModelEntry
from engine.models.families import FAMILIES, OWN
from engine.quoting import quoted, shown
from engine.types import VARIANT_MARK, MediaKind

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


def read(path: Path) -> tuple[ModelEntry, ...]:
    """All entries of this file in its order; SettingsError says what is wrong."""
    found = of_table(settings.read_toml(path), path)
    if not found:
        raise SettingsError(f"{shown(path)} holds no [[model]] entry: add one.")
    return found


def of_table(table: dict[str, Any], path: Path) -> tuple[ModelEntry, ...]:
    """As `read`, of the parsed text of this file; it may hold no entry."""
    rows = table.get("model", [])
    if not isinstance(rows, list):
        raise SettingsError(f"{shown(path)}: model is {quoted(rows)}: write [[model]] entries.")
    found = tuple(_entry(row, path) for row in rows)
    names = [entry.name for entry in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(f"{shown(path)} holds {quoted(twice)} twice: rename one.")
    return found


def _entry(row: Any, path: Path) -> ModelEntry:
    if not isinstance(row, dict) or not {"name", "checkpoint"} <= set(row):
        raise SettingsError(f"{shown(path)}: {quoted(row)} needs name and checkpoint.")
    name, where = str(row["name"]), str(row["checkpoint"])
    if VARIANT_MARK in name:
        raise SettingsError(
            f"{shown(path)}: {quoted(name)} holds {VARIANT_MARK}, which begins the words of a "
            "variant: rename it."
        )
    _one_of(path, name, "field", set(row), _FIELDS)
    for key, value in row.items():
        text = isinstance(value, str) and 0 < len(value) <= MAX_TEXT and value.isprintable()
        if key != "demo" and not text:
            raise SettingsError(
                f"{shown(path)}: {quoted(key)} is {quoted(value)}: write it as a text of 1 to "
                f"{MAX_TEXT:,} characters, in quotes."
            )
    for field, allowed in _ALLOWED.items():
        _one_of(path, name, field, {row[field]} if field in row else set[str](), allowed)
    folder = settings.expand(where, path.parent)
    hub = checkpoint.is_hub_name(where) and not folder.exists()
    family = row.get("family") or _family_of(name, where, None if hub else folder, row)
    return ModelEntry(
        name=name,
        label=row.get("label", name),
        family=family,
        kind=row.get("shows", FAMILIES[family].kind),
        checkpoint=where,
        folder=None if hub else folder,
        revision=row.get("revision"),
        dtype=row.get("dtype", "float32"),
        demo=row.get("demo") is True,
        quantization=row.get("quantization"),
        download=row.get("download"),
    )


def _family_of(name: str, where: str, folder: Path | None, row: dict[str, Any]) -> str:
    """The family by the checkpoint's config.json; transformers if that is not here to be read."""
    folder = folder or checkpoint.hub_folder(where, row.get("revision"))
    try:
        config = checkpoint_files.read_json(folder / "config.json", name) if folder else {}
    except ModelUnavailable:
        return supported.ANY_FAMILY  # `unavailable` says what is wrong with it
    return supported.family_of(config, OWN)


def _one_of(path: Path, name: str, what: str, values: set[str], allowed: set[str]) -> None:
    for value in sorted(values - allowed):
        known = ", ".join(sorted(allowed))
        raise SettingsError(
            f"{shown(path)}: {quoted(name)} has the unknown {what} {quoted(value)}: known are "
            f"{known}."
        )
