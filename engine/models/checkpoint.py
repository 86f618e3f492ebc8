"""The entries of models.toml, checked field by field, and the folder of each one's checkpoint, or
the server that answers for it."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from engine import settings
from engine.errors import ModelUnavailable, SettingsError
from engine.models import families
from engine.models.checkpoint_files import check_settings, read_if_there, read_json, weight_files
from engine.models.families import ANY_FAMILY, FAMILIES, SERVED
from engine.quoting import listed, one_line, quoted, shown
from engine.types import VARIANT_MARK, MediaKind

Quantization = Literal["8bit", "4bit"]
DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
MAX_TEXT = 1000  # characters of a value in models.toml
Text = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT, pattern=r"^[^\x00-\x1f\x7f]+$")]
_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ALLOWED: dict[str, set[str]] = {  # the values of these fields
    "family": set(FAMILIES) - {SERVED},
    "dtype": set(DTYPE_BYTES),
    "quantization": set(families.QUANTIZATIONS),
    "shows": {*get_args(MediaKind)},
}


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Server:
    """Where a served model is asked: an OpenAI-compatible API, and the name it has there.

    `api_key_env` names the environment variable with the key.  `timeout_s` is the most that one
    answer may take, `parallel` the requests at once in a dataset run.  `clip`: a video is sent
    as its file, of which the server chooses the frames.  `weights`: the entry of what should be the
    same checkpoint on this machine.
    """

    url: str
    model: str
    api_key_env: str = ""
    timeout_s: float = 120.0
    parallel: int = 1
    clip: bool = False
    weights: str = ""

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    @property
    def loopback(self) -> bool:
        return is_loopback(urlsplit(self.url).hostname or "")

    @property
    def key(self) -> str:
        """The key in the environment; "" if it takes none, or the variable is not set."""
        return os.environ.get(self.api_key_env, "").strip() if self.api_key_env else ""

    def address(self, path: str) -> str:
        """An address below the API ("/v1/models") or the server ("/version")."""
        root = self.url.removesuffix("/v1")
        return f"{self.url}{path[3:]}" if path.startswith("/v1/") else f"{root}{path}"


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
    server: Server | None = None
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
    name: Text
    checkpoint: Text | None = None
    label: Annotated[str, Meta(max_length=MAX_TEXT)] | None = None  # made one line
    family: Text | None = None
    revision: Text | None = None
    dtype: Text = "float32"
    demo: bool = False
    quantization: Text | None = None
    shows: Text | None = None
    download: Text | None = None
    server: Text | None = None
    model: Text | None = None
    api_key_env: Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    timeout_s: Annotated[float, Meta(gt=0, le=3600)] | None = None
    parallel: Annotated[int, Meta(ge=1, le=64)] | None = None
    clip: bool | None = None
    weights: Text | None = None


_OF_SERVERS = ("server", "model", "api_key_env", "timeout_s", "parallel", "clip", "weights")
_OF_CHECKPOINTS = ("checkpoint", "family", "revision", "quantization", "download")


def read_entries(table: dict[str, Any], path: Path) -> tuple[ModelEntry, ...]:
    """The entries in the parsed text of this file, in order; SettingsError says what is wrong."""
    if others := sorted(table.keys() - {"model"}):
        raise SettingsError(
            f"{shown(path)} has {listed(map(quoted, others))}, but only [[model]] is read: write "
            "each entry below such a line."
        )
    rows = table.get("model", [])
    if not isinstance(rows, list):
        raise SettingsError(f"{shown(path)}: model is {quoted(rows)}: write [[model]] entries.")
    entries = tuple(_entry(row, path) for row in rows)
    names = [entry.name for entry in entries]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(f"{shown(path)} holds {quoted(twice)} twice: rename one.")
    here = {entry.name for entry in entries if not entry.server}
    for entry in entries:
        if entry.server and entry.server.weights not in {"", *here}:
            raise SettingsError(
                f"{shown(path)}: {quoted(entry.name)} has the weights "
                f"{quoted(entry.server.weights)}: name the entry of a checkpoint, or leave it out."
            )
    return entries


def _entry(given: Any, path: Path) -> ModelEntry:
    try:
        row = msgspec.convert(given, Row)
    except msgspec.ValidationError as error:
        why = str(error).replace("`", "'")
        if isinstance(given, dict) and "api_key_env" in given:
            given |= {"api_key_env": "..."}  # it may be a key
        raise SettingsError(
            f"{shown(path)}: {quoted(given)} is no entry ({why[:1].lower()}{why[1:]}): correct it; "
            f"its fields are {', '.join(Row.__struct_fields__)}."
        ) from error
    marks = {VARIANT_MARK: "begins the words of a variant", ",": "separates names"}
    for mark, use in marks.items():
        if mark in row.name:
            raise SettingsError(
                f"{shown(path)}: {quoted(row.name)} holds {mark!r}, which {use}: rename it."
            )
    for key, allowed in _ALLOWED.items():
        if (value := getattr(row, key)) is not None and value not in allowed:
            raise SettingsError(
                f"{shown(path)}: {quoted(row.name)} has the unknown {key} {quoted(value)}: known "
                f"are {', '.join(sorted(allowed))}."
            )
    fields = msgspec.structs.asdict(row)
    about = {key: value for key in _OF_SERVERS if (value := fields.pop(key)) is not None}
    fields["label"] = one_line(row.label or "").strip() or row.name
    if row.server is not None:
        return _served(row, fields, about, path)
    if row.checkpoint is None or about:
        without = f"has {next(iter(about))} and no server" if about else "has no checkpoint"
        raise SettingsError(
            f"{shown(path)}: {quoted(row.name)} {without}: name a checkpoint, or server and model."
        )
    place = settings.expand(row.checkpoint, path.parent)
    if not place.exists():
        shipped = settings.PROJECT / row.checkpoint
        if shipped.is_dir():
            place = shipped
        elif settings.INSTALLED and path.parent == settings.PROJECT:  # nothing is put there
            place = settings.expand(row.checkpoint)
    folder = None if is_hub_name(row.checkpoint) and not place.exists() else place
    local = folder or hub_folder(row.checkpoint, row.revision)
    if (family := row.family) is None:
        try:
            family = families.family_of(read_json(local / "config.json", row.name) if local else {})
        except ModelUnavailable:
            family = ANY_FAMILY  # `unavailable` says what is wrong with it
    kind = fields.pop("shows") or FAMILIES[family].kind
    return ModelEntry(**fields | {"family": family}, kind=kind, folder=folder)


def _served(row: Row, fields: dict[str, Any], about: dict[str, Any], path: Path) -> ModelEntry:
    strange = [key for key in _OF_CHECKPOINTS if fields[key] is not None]
    if strange or row.model is None or row.demo:
        why = f"has server and {strange[0]}" if strange else "has a server and no model"
        raise SettingsError(
            f"{shown(path)}: {quoted(row.name)} {why}: a server needs model, which is its name "
            "there, and takes no fields of a checkpoint."
        )
    server = Server(server_url(about.pop("server")), **about)
    kind = fields.pop("shows") or FAMILIES[SERVED].kind
    if server.clip and kind != "video":
        raise SettingsError(
            f"{shown(path)}: {quoted(row.name)} has clip and is shown no video: add "
            'shows = "video", or leave clip out.'
        )
    given = {"family": SERVED, "checkpoint": f"{server.model} at {server.host}", "dtype": ""}
    return ModelEntry(**fields | given, kind=kind, folder=None, server=server)


def server_url(given: str) -> str:
    """The API's address without a slash at its end; SettingsError for none, or one with a key."""
    try:
        parts = urlsplit(given.strip())
        known = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1) > 0
    except ValueError:
        known = False
    if not known or parts.username or parts.password or parts.query or parts.fragment:
        named = "A server with an @" if "@" in given else quoted(given)  # it may hold a password
        raise SettingsError(
            f"{named} is no address of a server: write one such as http://127.0.0.1:8000/v1, "
            "without a name or key."
        )
    return parts.geturl().rstrip("/")


def is_hub_name(checkpoint: str) -> bool:
    """Whether this is a hub name "owner/name"; a folder with one slash is written ./owner/name."""
    return _HUB_NAME.fullmatch(checkpoint) is not None


def locate(entry: ModelEntry) -> Path:
    """The folder that holds the checkpoint's files, or ModelUnavailable with what to do."""
    name, download = entry.name, f"{settings.COMMAND} download {entry.name}"
    if entry.server:
        raise ModelUnavailable(
            f"{name} is a server ({entry.server.host}): this needs a checkpoint on this machine."
        )
    folder = entry.folder or hub_folder(entry.checkpoint, entry.revision)
    if folder is None:
        size = f" (about {entry.download})" if entry.download else ""
        raise ModelUnavailable(
            f"{name} has not been downloaded: run `{download}` once{size}, or set its checkpoint "
            "in models.toml to a folder."
        )
    try:
        if not folder.is_dir():
            families.refuse_listed(name, shown(folder), {folder.name})
            why = f"{folder} is a file, not a checkpoint folder" if folder.exists() else ""
            raise ModelUnavailable(
                f"{name}: {why}: correct its checkpoint in models.toml."
                if why
                else f"{name} is not on this machine: put its checkpoint folder at {folder}, or "
                "change its checkpoint in models.toml."
            )
        if not (files := weight_files(folder, name)):
            base = read_if_there(folder / families.LORA, name).get("base_model_name_or_path")
            others = {path.name for path in folder.iterdir()}
            families.refuse_listed(name, shown(folder), others, base)
        config = read_json(folder / "config.json", name)
        if not files:
            fix = "copy its *.safetensors (or *.bin) there, of shards with their index."
            if entry.folder is None:
                fix = f"run `{download}` to finish its download."
            raise ModelUnavailable(f"{name} has no weights in {folder}: {fix}")
        families.refuse_packed(name, folder / "config.json", config)
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
