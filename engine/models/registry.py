"""models.toml -> entries -> adapters, loaded when they are first asked for.

Boundary: the only file that names a concrete model.  Listing entries and saying why one cannot be
used imports neither torch nor transformers; `load` does.  A new family is one line in FAMILIES.
"""

from __future__ import annotations

import difflib
import importlib
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import device, settings
from engine.errors import ModelUnavailable, SettingsError, UnknownModel
from engine.models import checkpoint
from engine.models.checkpoint import DTYPE_BYTES, ModelEntry
from engine.types import MediaKind, Sample

if TYPE_CHECKING:
    from engine.models.base import Adapter


@dataclass(frozen=True)
class Family:
    """Where a family's adapter is, what it is shown, and its model_type in config.json."""

    adapter: str
    kind: MediaKind
    model_type: str


FAMILIES: dict[str, Family] = {
    "eventgpt": Family("engine.models.eventgpt:EventGPTAdapter", "events", "EventChat_llama"),
    "video_llava": Family("engine.models.video_llava:VideoLlavaAdapter", "video", "video_llava"),
    "llava": Family("engine.models.llava:LlavaAdapter", "image", "llava"),
}
_FIELDS = {"name", "label", "family", "checkpoint", "revision", "dtype", "demo"}
_resident: dict[ModelEntry, Adapter] = {}
_lock = threading.Lock()


def entries() -> tuple[ModelEntry, ...]:
    """All entries of models.toml in the file's order, or SettingsError naming what is wrong."""
    path = settings.load().models_file
    rows = settings.read_toml(path).get("model", [])
    if not isinstance(rows, list) or not rows:
        raise SettingsError(f"{path} holds no [[model]] entry: add one.")
    found = tuple(_entry(row, path) for row in rows)
    names = [entry.name for entry in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(f"{path} holds {twice!r} twice: rename one.")
    return found


def _entry(row: Any, path: Path) -> ModelEntry:
    if not isinstance(row, dict) or not {"name", "family", "checkpoint"} <= set(row):
        raise SettingsError(f"{path}: {row!r} needs name, family and checkpoint.")
    name, family = str(row["name"]), str(row["family"])
    dtype = str(row.get("dtype", "float32"))
    _one_of(path, name, "field", set(row), _FIELDS)
    _one_of(path, name, "family", {family}, set(FAMILIES))
    _one_of(path, name, "dtype", {dtype}, set(DTYPE_BYTES))
    where = str(row["checkpoint"])
    folder = settings.expand(where, path.parent)
    hub = checkpoint.is_hub_name(where) and not folder.exists()
    return ModelEntry(
        name=name,
        label=str(row.get("label", name)),
        family=family,
        kind=FAMILIES[family].kind,
        checkpoint=where,
        folder=None if hub else folder,
        revision=str(row["revision"]) if "revision" in row else None,
        dtype=dtype,
        demo=row.get("demo") is True,
    )


def _one_of(path: Path, name: str, what: str, values: set[str], allowed: set[str]) -> None:
    for value in sorted(values - allowed):
        known = ", ".join(sorted(allowed))
        raise SettingsError(
            f"{path}: {name!r} has the unknown {what} {value!r}: known are {known}."
        )


def entry(name: str) -> ModelEntry:
    """The entry of this name, or UnknownModel with the nearest one."""
    known = {item.name: item for item in entries()}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}."
    raise UnknownModel(f"{name!r} is not a known model: {hint}")


def unavailable(item: ModelEntry) -> str | None:
    """Why this model cannot be loaded here and what to do, or None."""
    if item in _resident:
        return None
    try:
        folder = checkpoint.locate(item)
        _check_family(item, folder)
        _check_memory(item, folder)
        device.check()
    except (ModelUnavailable, SettingsError) as error:
        return str(error)
    return None


def cannot_run(item: ModelEntry, sample: Sample) -> str | None:
    """Why this model cannot run on this sample, or None."""
    return sample.missing.get(item.kind) or unavailable(item)


def load(item: ModelEntry) -> Adapter:
    """The adapter, with its weights on the device; at most one copy of each entry."""
    with _lock:
        if item not in _resident:
            folder = checkpoint.locate(item)
            _check_family(item, folder)
            _check_memory(item, folder)
            module, name = FAMILIES[item.family].adapter.split(":")
            _resident[item] = getattr(importlib.import_module(module), name).load(item, folder)
        return _resident[item]


def unload(item: ModelEntry) -> None:
    """Forgets the adapter; its memory is free once nobody runs it."""
    with _lock:
        _resident.pop(item, None)


def resident() -> tuple[ModelEntry, ...]:
    return tuple(_resident)


def _check_family(item: ModelEntry, folder: Path) -> None:
    found = checkpoint.read_json(folder / "config.json", item.name).get("model_type")
    wanted = FAMILIES[item.family].model_type
    if found != wanted:
        raise ModelUnavailable(
            f"{item.name} is entered as {item.family}, but {folder / 'config.json'} says its "
            f"model_type is {found!r} (not {wanted!r}): correct its entry in models.toml."
        )


def _weight_bytes(item: ModelEntry, folder: Path) -> int:
    return checkpoint.weight_count(folder, item.name) * DTYPE_BYTES[item.dtype]


def _check_memory(item: ModelEntry, folder: Path) -> None:
    needed, free = _weight_bytes(item, folder), device.free_bytes()
    if needed > free:
        raise ModelUnavailable(
            f"{item.name} needs {needed / 2**30:.1f} GiB for its weights and "
            f"{free / 2**30:.1f} GiB are free: close other programs, or choose a smaller dtype "
            "or model."
        )
