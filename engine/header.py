"""run.json: what a run was asked, of what, with what; every figure of the run depends on it.

Boundary: the header's types and its file's form.  A file of another version is refused.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from engine.errors import StoreError
from engine.plan import Plan, from_json

FORMAT, VERSION, HEADER = "stagescope-run", 1, "run.json"


@dataclass(frozen=True)
class DatasetIdentity:
    """Where the samples were, and a digest of the chosen ones."""

    root: str
    digest: str


@dataclass(frozen=True)
class ModelIdentity:
    """An entry of models.toml and the digest of its checkpoint's content."""

    name: str
    label: str
    family: str
    checkpoint: str
    revision: str | None
    dtype: str
    digest: str


@dataclass(frozen=True)
class Header:
    """run.json: what a figure of the run depends on."""

    plan: Plan
    dataset: DatasetIdentity
    models: tuple[ModelIdentity, ...]
    environment: Mapping[str, str]
    code: str
    id: str = field(default_factory=lambda: new_id())
    created: str = field(default_factory=lambda: now())


def read(folder: Path) -> Header:
    """run.json, or StoreError if it is not one of this version."""
    try:
        value = json.loads((folder / HEADER).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise StoreError(f"{folder} holds no {HEADER}: give the folder of a run.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{folder / HEADER} cannot be read ({error}).") from error
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise StoreError(f"{folder / HEADER} is not a run of StageScope: give the folder of one.")
    if value.get("version") != VERSION:
        raise StoreError(
            f"{folder} is a run of version {value.get('version')!r} and this program reads version "
            f"{VERSION}: use the program that wrote it."
        )
    return _parsed(folder, value)


def as_json(header: Header) -> dict[str, Any]:
    """What run.json holds."""
    value = {"format": FORMAT, "version": VERSION, **asdict(header)}
    return value | {"environment": dict(header.environment)}


def _parsed(folder: Path, value: Mapping[str, Any]) -> Header:
    try:
        return Header(
            plan=from_json(value["plan"]),
            dataset=DatasetIdentity(**value["dataset"]),
            models=tuple(ModelIdentity(**model) for model in value["models"]),
            environment={str(key): str(text) for key, text in value["environment"].items()},
            code=str(value["code"]),
            id=str(value["id"]),
            created=str(value["created"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{folder / HEADER} is not whole ({error!r}).") from error


def new_id() -> str:
    """A name that sorts by date and that no other run has."""
    return f"{datetime.now(timezone.utc):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def now() -> str:
    """The wall clock, for people to read; it may jump."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
