"""run.json: the plan, dataset, models, code and machine of a run, on which all figures depend.

Boundary: the header's types and the file's format.  A file with another version, wrong types or an
impossible plan is refused.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from msgspec import MsgspecError, Struct, convert

from engine.errors import StoreError
from engine.plain_files import read_json, reason
from engine.quoting import quoted, shown
from engine.storage.plan import Plan, from_json
from engine.types import MediaKind

FORMAT, VERSION, HEADER = "stagescope-run", 1, "run.json"
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
    shows: MediaKind | None = None  # not set in older runs: what its family usually gets


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


class _Stored(Struct):
    """The stored form of run.json; unknown keys of later versions are ignored."""

    plan: dict[str, Any]
    dataset: DatasetIdentity
    models: tuple[ModelIdentity, ...]
    environment: dict[str, str]
    code: str
    id: str
    created: str
    together: str = ""


def read(folder: Path) -> Header:
    """Reads run.json; StoreError if it is missing or of another version."""
    what = "The header of the run"
    if not os.path.lexists(folder / HEADER):
        raise StoreError(f"{shown(folder)} holds no {HEADER}: name the folder of a run.")
    value = read_json(folder / HEADER, MAX_BYTES, what, dict, links=False, error=StoreError)
    if value.get("format") != FORMAT:
        raise StoreError(f"{_shown(folder)} is not a run of StageScope: give the folder of one.")
    if type(version := value.get("version")) is not int or version != VERSION:
        raise StoreError(
            f"{shown(folder)} is a run of version {quoted(version)}, but this program reads "
            f"version {VERSION}: use the program that wrote it."
        )
    return parsed(value, shown(folder / HEADER))


def as_json(header: Header) -> dict[str, Any]:
    """The header as JSON."""
    value = {"format": FORMAT, "version": VERSION, **asdict(header)}
    return value | {"environment": dict(header.environment)}


def parsed(value: Mapping[str, Any], where: str) -> Header:
    """The header that as_json() wrote; StoreError, which names the file `where`, for others."""
    try:
        found = convert(value, _Stored)
    except MsgspecError as error:
        raise StoreError(
            f"{where} cannot be used ({reason(error)}): restore it from a copy, or start a new run."
        ) from error
    return Header(
        plan=from_json(found.plan),
        dataset=found.dataset,
        models=found.models,
        environment=found.environment,
        code=found.code,
        id=found.id,
        created=found.created,
        together=found.together,
    )


def _shown(folder: Path) -> str:
    return shown(folder / HEADER)


def new_id() -> str:
    """A unique name that sorts by date."""
    return f"{datetime.now(timezone.utc):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def now() -> str:
    """The wall clock as text; it may jump."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
