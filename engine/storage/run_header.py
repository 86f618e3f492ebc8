"""run.json: the plan, dataset, models, code and machine of a run, on which all figures depend.
VERSION is that of all files of a run: a run of another version is refused."""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import MsgspecError, convert, to_builtins

from engine.errors import BadInput, StoreError
from engine.plain_files import read_json, reason
from engine.quoting import cut, one_line, quoted, shown
from engine.storage.plan import Plan
from engine.types import MediaKind

FORMAT, VERSION, HEADER = "stagescope-run", 3, "run.json"
MAX_BYTES = 2**28  # of run.json; a plan may name a million samples


@dataclass(frozen=True)
class DatasetIdentity:
    """The root of the samples, and a digest of the chosen ones."""

    root: str
    digest: str


@dataclass(frozen=True)
class ModelIdentity:
    """An entry of models.toml and the digest of its checkpoint."""

    name: str
    label: str
    family: str
    checkpoint: str
    revision: str | None
    dtype: str
    digest: str
    shows: MediaKind | None = None  # what its family usually gets


@dataclass(frozen=True)
class Header:
    """The content of run.json.  `together`: equal in two runs that were measured by turns."""

    plan: Plan
    dataset: DatasetIdentity
    models: tuple[ModelIdentity, ...]
    environment: Mapping[str, str]
    code: str
    id: str = field(default_factory=lambda: new_id())
    created: str = field(default_factory=lambda: now())
    together: str = ""


def read(folder: Path) -> Header:
    """Reads run.json; StoreError if it is missing or of another version."""
    what, place = "The header of the run", shown(folder / HEADER)
    if not os.path.lexists(folder / HEADER):
        raise StoreError(f"{shown(folder)} holds no {HEADER}: name the folder of a run.")
    value = read_json(folder / HEADER, MAX_BYTES, what, dict, links=False, error=StoreError)
    if value.get("format") != FORMAT:
        raise StoreError(f"{place} is not a run of StageScope: give the folder of one.")
    if type(version := value.get("version")) is not int or version != VERSION:
        raise StoreError(
            f"{shown(folder)} is a run of version {quoted(version)}, but this program reads "
            f"version {VERSION}: run it again, or use the program that wrote it."
        )
    return parsed(value, place)


def as_json(header: Header) -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION, **to_builtins(header, enc_hook=dict)}


def parsed(value: Mapping[str, Any], where: str) -> Header:
    """The header that as_json() wrote; StoreError, which names the file `where`, for others and
    for settings that this version does not know."""
    try:
        header = convert(value, Header)
        _refuse_unknown(value["plan"], to_builtins(header.plan))
        models = [replace(m, label=one_line(m.label).strip() or m.name) for m in header.models]
        header = replace(header, models=tuple(models))
    except (BadInput, MsgspecError) as error:
        why = reason(error) if isinstance(error, MsgspecError) else cut(str(error).rstrip("."))
        raise StoreError(
            f"{where} cannot be used ({why}): restore it from a copy, or start a new run."
        ) from error
    return header


def _refuse_unknown(found: object, known: object) -> None:
    if isinstance(found, dict) and isinstance(known, dict):
        for name, value in found.items():
            if name not in known:
                raise BadInput(f"{quoted(name)} is not a known setting of a run")
            _refuse_unknown(value, known[name])


def new_id() -> str:
    """A unique name that sorts by date."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def now() -> str:
    """The wall clock as text; it may jump."""
    return datetime.now(UTC).isoformat(timespec="seconds")
