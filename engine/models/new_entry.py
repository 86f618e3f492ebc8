"""A new entry at the end of models.toml, for a folder, a name on the hub or a server.  Text is only
appended, so comments and other entries stay as they are; the whole file is read as entries before
it is replaced."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine import settings
from engine.errors import BadInput, SettingsError
from engine.models import checkpoint, families, model_card, registry
from engine.models.checkpoint import DTYPE_BYTES, ModelEntry
from engine.plain_files import read_text, reason, write_whole
from engine.quoting import quoted, shown

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}")
_PAGE = re.compile(r"https?://(www\.)?huggingface\.co/(?P<name>[^/]+/[^/?#]+)/?")
_DTYPE = "bfloat16"  # of a checkpoint that is not here yet, or that no model can run in
_ORDER = ("name", "label", "family", "checkpoint", "revision", "dtype", "server", "model",
          "api_key_env", "weights", "shows")  # fmt: skip


@dataclass(frozen=True)
class NewEntry:
    """An entry that may be written: `lines` in TOML; `here`: its files were checked."""

    entry: ModelEntry
    lines: str
    here: bool
    path: Path
    whole: str  # the file's text with the entry

    def write(self) -> None:
        """Replaces models.toml, or SettingsError."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            there = self.path.exists()
            if there and not (os.access(self.path, os.W_OK) and self.path.stat().st_mode & 0o222):
                raise PermissionError(0, "it is read-only", str(self.path))
            write_whole(self.path.resolve(), self.whole.encode())
        except OSError as error:
            raise SettingsError(
                f"{shown(self.path)} cannot be written ({reason(error)}): make it writable, or "
                "copy what --dry-run prints into it."
            ) from error


def make(where: str, **chosen: str | None) -> NewEntry:
    """The entry for a checkpoint, with the chosen fields name, label, dtype and shows."""
    path = settings.own_models_file()
    place, folder = _place(where, path)
    short = Path(place).name
    row = {"name": short.lower(), "label": short, "checkpoint": place} | _given(chosen)
    stored = None
    if folder is None:
        row["revision"] = "main"
        folder = checkpoint.hub_folder(place, "main")
    if folder is not None:
        entry = _added(row, path).entry
        row["family"] = entry.family
        registry.check(entry)
        stored = model_card.read(entry, folder).stored_dtype
    row.setdefault("dtype", stored if stored in DTYPE_BYTES else _DTYPE)
    return _added(row, path, folder is not None)


def make_server(url: str, model: str, **chosen: str | None) -> NewEntry:
    """Of a server's model, with the chosen fields name, label, shows, weights and api_key_env."""
    path, short = settings.own_models_file(), Path(model).name
    row = {"name": short.lower(), "label": short, "server": checkpoint.server_url(url)}
    return _added(row | {"model": model} | _given(chosen), path)


def _given(chosen: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in chosen.items() if value is not None}


def _added(row: Mapping[str, str], path: Path, here: bool = True) -> NewEntry:
    """The row as an entry, read back from the whole new file."""
    read = settings.load().models_file
    text = read_text(read, settings.MAX_TOML, "The list of models", error=SettingsError)
    known = checkpoint.read_entries(settings.parse_toml(text, path), path)
    if not _NAME.fullmatch(row["name"]):
        raise BadInput(
            f"{quoted(row['name'])} cannot be a model's name: give one with --name, of up to 80 "
            "letters, digits, dots, hyphens, underscores and plus signs."
        )
    if row["name"] in {entry.name for entry in known} | {"add"}:
        raise BadInput(
            f"{shown(path)} holds {quoted(row['name'])} already: choose another name (--name)."
        )
    fields = [f"{k} = {json.dumps(row[k], ensure_ascii=False)}" for k in _ORDER if k in row]
    lines = "\n".join(["[[model]]", *fields, ""])
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    whole = f"{text}{gap}{lines}"
    *before, entry = checkpoint.read_entries(settings.parse_toml(whole, path), path)
    if tuple(before) != known:
        raise SettingsError(
            f"{shown(path)} would be read differently with another entry at its end: add the entry "
            "by hand."
        )
    return NewEntry(entry, lines, here, path, whole)


def _place(where: str, path: Path) -> tuple[str, Path | None]:
    """The checkpoint as models.toml writes it, and its folder; None for a hub name."""
    folder = settings.expand(where)
    if folder.is_dir():
        near = folder.is_relative_to(path.parent)
        return (f"./{folder.relative_to(path.parent).as_posix()}" if near else str(folder)), folder
    if folder.exists():
        families.refuse_listed(quoted(where), shown(folder), {folder.name})
        raise BadInput(f"{quoted(where)} is a file, not a checkpoint: name its folder.")
    if page := _PAGE.fullmatch(where):
        where = page["name"]
    if checkpoint.is_hub_name(where):
        return where, None
    raise BadInput(
        f"{quoted(where)} is neither a folder here nor a name on the Hugging Face hub: write "
        "OWNER/NAME, such as Qwen/Qwen2.5-VL-3B-Instruct."
    )
