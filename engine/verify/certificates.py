"""Certificates: what a verification proved, for which checkpoint, code, device and dtype.

Format: one JSON object per verification, stored as HASH.json below the runs folder.  "hash" is the
SHA-256 of the rest, written with sorted keys and no spaces.  "models" lists for each model: digest
of the checkpoint, dtype, device, hardware, whether it is verified, what that covers ("coverage")
and what it does not prove ("unproved").  "engine" is the digest of the code that answers and
verifies, and of its libraries.  "verdicts" holds all checks.

Whether one is still valid is found without hashing weights, and with torch only if it is already
imported: a checkpoint counts as changed if its current files have not been hashed.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from engine import settings
from engine.errors import BadInput, ModelUnavailable, SettingsError
from engine.machine import device
from engine.media_options import COUNT_SPLIT
from engine.models import checkpoint, checkpoint_files, variants
from engine.models.checkpoint import ModelEntry
from engine.models.families import FAMILIES
from engine.plain_files import JSON_FAULTS, Count, Name, advice, read_limited, reason, write_whole
from engine.quoting import quoted, shown
from engine.storage import provenance
from engine.storage.result_rows import ResultRow, plain_value
from engine.storage.schemas import SHOWN, UNVERIFIED, Standing, Texts, checked
from engine.types import RunRequest, RunResult
from engine.verify import coverage
from engine.verify.coverage import Coverage
from engine.verify.verdict import ModelVerdicts, Verdict, VerifyRequest, verified

__all__ = ["SHOWN"]
FORMAT = 3
MAX_BYTES = 2**25  # of one file
CODE = (*provenance.ANSWERS, "verify", "storage/result_rows.py")
_LIBRARIES = ("torch", "transformers", "numpy", "pillow", "av", "safetensors", "tokenizers")


class VerifiedModel(Struct):
    """A model of a certificate: what it was, where it ran, and whether it was verified."""

    name: Name
    digest: str
    dtype: str
    environment: Texts
    backend: str
    verified: bool
    coverage: dict[str, Any]
    unproved: list[str]
    shows: str  # what it was shown, and its pixels
    pixels: str


class VerifiedRequest(Struct):
    """The settings of a verification."""

    dataset: str
    samples: list[str]
    prompt: str
    max_new_tokens: Count
    runs: Count
    backend: str
    pixels: str
    extent: str
    batch: Count


class Certificate(Struct):
    """A file of the certificates folder."""

    format: int
    made: str
    engine: str
    libraries: Texts
    request: VerifiedRequest
    models: list[VerifiedModel]
    verdicts: list[Verdict]
    hash: Name


def folder() -> Path:
    return settings.load().runs_dir / "certificates"


@lru_cache(maxsize=1)
def engine_digest() -> str:
    """A digest of the code that answers and verifies, and of its libraries; not of the code that
    stores or shows results.

    Computed once per process, because the imported code is what runs.
    """
    return provenance.source_digest(CODE, json.dumps(libraries()))


def libraries() -> dict[str, str]:
    return {name: provenance.installed(name) for name in _LIBRARIES}


def make(request: VerifyRequest, models: Sequence[ModelVerdicts], dataset: str) -> dict[str, Any]:
    names = VerifiedRequest.__struct_fields__[2:]
    content = {
        "format": FORMAT,
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "engine": engine_digest(),
        "libraries": libraries(),
        "request": {
            "dataset": dataset,
            "samples": [sample.id for sample in request.samples],
            **{name: getattr(request, name) for name in names},
        },
        "models": [_entry(model) for model in models],
        "verdicts": [verdict for model in models for verdict in model.verdicts],
    }
    plain: dict[str, Any] = _plain(content)
    return plain | {"hash": content_hash(plain)}


def _plain(value: Any) -> Any:
    """The value as JSON gives it back: tuples become lists, NaN and infinity become null."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=plain_value))


def _entry(model: ModelVerdicts) -> dict[str, Any]:
    """One model of a certificate; its digest is "" if it did not load."""
    info = model.info
    return {
        "name": model.name,
        "digest": info.digest if info else "",
        "dtype": info.precision if info else "",
        "environment": model.environment,
        "backend": model.backend,
        "verified": bool(info and info.digest) and verified(model.verdicts, model.name),
        "coverage": coverage.of(model.verdicts),
        "unproved": coverage.unproved(model.verdicts),
        "shows": (info.shows or "") if info else "",
        "pixels": model.pixels,
    }


def content_hash(content: Mapping[str, Any]) -> str:
    """SHA-256 over everything except the hash itself, as hex text."""
    rest = {key: value for key, value in content.items() if key != "hash"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def store(certificate: Mapping[str, Any]) -> Path:
    """Writes the certificate under its hash; BadInput if that fails."""
    path = folder() / f"{certificate['hash']}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(certificate, indent=1, allow_nan=False).encode())
    except OSError as error:
        raise BadInput(
            f"The certificate cannot be saved in {shown(path.parent)} ({reason(error)}): "
            f"{advice(error, 'make it writable')} or set STAGESCOPE_RUNS_DIR to another folder."
        ) from error
    return path


class UnusableFile(NamedTuple):
    """A file in the certificates folder that cannot be used, and why."""

    name: str
    reason: str


def read(path: Path) -> dict[str, Any] | UnusableFile:
    """A certificate, or why the file is not one; its hash must match."""
    try:
        state = path.stat()
    except OSError as error:
        return UnusableFile(path.name, reason(error))
    return _read(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=256)
def _read(path: Path, changed: int, size: int) -> dict[str, Any] | UnusableFile:
    try:
        certificate = checked(read_limited(path, MAX_BYTES), Certificate)
        wrong = _contradiction(certificate)
    except (OSError, ValueError, *JSON_FAULTS) as error:
        wrong = reason(error)
    return UnusableFile(path.name, wrong) if wrong else certificate


def _contradiction(certificate: Mapping[str, Any]) -> str:
    """Why a certificate of the right form is not accepted, or ""; ValueError for a bad date.

    What it states about a model must follow from its own verdicts.  The hash only detects
    accidents; it is not a signature.
    """
    if certificate["hash"] != content_hash(certificate):
        return "its content does not match its hash"
    if certificate["format"] != FORMAT:
        return f"it has format {quoted(certificate['format'])}, but this program reads {FORMAT}"
    datetime.fromisoformat(certificate["made"])
    models = certificate["models"]
    if len({model["name"] for model in models}) < len(models):
        return "it names a model twice"
    for model in models:
        rows = [row for row in verdicts_in(certificate) if row.model == model["name"]]
        good = bool(model["digest"]) and verified(rows, model["name"])
        if (model["verified"], model["coverage"]) != (good, _plain(coverage.of(rows))):
            return "its own checks do not support what it states about a model"
    return ""


def verdicts_in(certificate: Mapping[str, Any]) -> tuple[Verdict, ...]:
    return msgspec.convert(certificate["verdicts"], tuple[Verdict, ...])


def stored_certificates() -> list[dict[str, Any]]:
    """All certificates, the newest first."""
    usable = [one for one in _all() if isinstance(one, dict)]
    return sorted(usable, key=lambda one: str(one["made"]), reverse=True)


def unusable_files() -> list[UnusableFile]:
    """The files in the folder that are not usable certificates, by name."""
    return sorted(one for one in _all() if isinstance(one, UnusableFile))


def _all() -> list[dict[str, Any] | UnusableFile]:
    try:
        return [read(path) for path in folder().glob("*.json")]
    except OSError:
        return []


def stale(certificate: Mapping[str, Any]) -> bool:
    """Whether the code has changed since."""
    return bool(certificate["engine"] != engine_digest())


def row_of(result: RunResult) -> ResultRow:
    """The row of a result with its certificate's status: what every path of a result stores."""
    return ResultRow.from_result(result, certificate_status(result))


def certificate_status(result: RunResult) -> Standing:
    """Whether a certificate covers a result as it ran; if not, what is not covered.

    Certificates of other code are ignored.  The newest one for the same dtype, device, backend and
    pixels decides; if one of its checks failed, earlier ones do not count.  Otherwise the closest
    certificate of the checkpoint is named.
    """
    closest = UNVERIFIED
    for certificate, model in fresh(result.model.digest):
        elsewhere = tuple(_other_setting(certificate, model, result))
        if not model["verified"]:
            if not elsewhere and failed(certificate, model):
                break
            continue
        lacking = (*elsewhere, *coverage.missing(_coverage(model), result))
        if not lacking:
            return Standing("verified", str(certificate["hash"]))
        if closest is UNVERIFIED or len(lacking) < len(closest.missing):
            closest = Standing("not covered", str(certificate["hash"]), lacking)
    return closest


def _coverage(model: Mapping[str, Any]) -> Coverage:
    return msgspec.convert(model["coverage"], Coverage)


def covers(model: Mapping[str, Any]) -> str:
    """The coverage of a certificate's model in a sentence."""
    return _coverage(model).sentence()


def command(model: str, ran: str, pixels: str) -> str:
    """The command that verifies a model as it ran (backend and pixels)."""
    words = ["python -m engine verify --models", shlex.quote(model)]
    words += [f"--backend {ran}"] if ran != "generate" else []  # generate() is covered by any
    words += ["--pixels fast"] if pixels == "fast" else []
    return " ".join(words)


def fresh(digest: str) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Certificates of the current code with each entry for a checkpoint, the newest first.

    Variants of a model have one checkpoint.  The digest "" matches none.
    """
    for certificate in stored_certificates():
        for model in certificate["models"]:
            if digest and model["digest"] == digest and not stale(certificate):
                yield certificate, model


def pixels_of(certificate: Mapping[str, Any], model: Mapping[str, Any]) -> str:
    """The pixel setting with which a model was verified."""
    return str(model["pixels"] or certificate["request"]["pixels"])


def failed(certificate: Mapping[str, Any], model: Mapping[str, Any]) -> bool:
    """Whether a check of this model failed; open checks do not count."""
    rows = [row for row in certificate["verdicts"] if row["model"] == model["name"]]
    return any(row["outcome"] == "failed" for row in rows)


def _other_setting(
    certificate: Mapping[str, Any], model: Mapping[str, Any], result: RunResult
) -> Iterator[str]:
    """Input, dtype, device, backend and pixels of the result that differ from the verified ones,
    and changes that no verification makes: a window, another split, a perturbation.

    Results of the model's own generate() are covered with any backend.
    """
    request, there, here = result.request, model["environment"], result.environment
    wanted, whole = certificate["request"], "whole recordings"
    pairs = [
        ("shown", result.model.shows or "", model["shows"]),
        ("dtype", result.model.precision, model["dtype"]),
        *((name, here.get(name, ""), there.get(name, "")) for name in ("device", "hardware")),
        ("pixels", request.pixels, pixels_of(certificate, model)),
    ]
    if result.extent is not None:  # pictures drawn from raw events
        pairs += [
            ("extent", result.extent, wanted["extent"]),
            ("window", str(request.window or whole), whole),
            ("split", str(request.split), str(COUNT_SPLIT)),
        ]
    if request.perturbed:
        yield f"perturbed by {request.perturbed}"
    if result.backend != "generate":
        pairs.append(("backend", result.backend, model["backend"]))
    for name, ran, proved in pairs:
        if ran != proved:
            yield f"{name} {ran} ({proved or 'unknown'} verified)"


def covering(entry: ModelEntry) -> Mapping[str, Any] | None:
    """The newest certificate that verified this entry with its current files and device, or None.

    Only certificates for the entry's own input and pixels (exact, unless it is a variant) and the
    device's default backend count here.
    """
    for certificate, model in fresh(digest_now(entry) or ""):
        pixels = pixels_of(certificate, model)
        same = (model["dtype"], model["shows"]) == (entry.precision, entry.kind)
        usual = certificate["request"]["extent"] == RunRequest.extent and _usual(model, entry)
        if not (same and usual and pixels == (entry.pixels or "exact")):
            continue
        if here(model["environment"]) and model["verified"]:
            return certificate
        if here(model["environment"]) and failed(certificate, model):
            return None
    return None


def _usual(model: Mapping[str, Any], entry: ModelEntry) -> bool:
    """Whether the verified backend is the one that "auto" selects on the model's device."""
    if not FAMILIES[entry.family].lean:  # a model without a seam only has its own generate()
        return model["backend"] in ("eager", "generate")
    on_cuda = str(model["environment"].get("device", "")).startswith("cuda")
    return bool(model["backend"] == ("compiled" if on_cuda else "eager"))


def digest_now(entry: ModelEntry) -> str | None:
    """The digest of the entry's files, or None if they are missing or not hashed since a change."""
    try:
        folder = checkpoint.locate(entry)
        return checkpoint_files.digest_if_known(folder, entry.name, settings.load().hashes_file)
    except (ModelUnavailable, OSError):
        return None


def here(environment: Mapping[str, str]) -> bool:
    """Whether a certificate's device may be the current one.

    "auto" is only known after torch is imported; until then it may mean any accelerator.
    """
    name = environment.get("device", "")
    if name == "cpu" and environment.get("hardware") != platform.machine():
        return False
    try:
        wanted = settings.load().device
        if wanted == "auto" and "torch" in sys.modules:
            wanted = str(device.choose())
    except SettingsError:
        return False
    return wanted in ("auto", name)


def why_stale(certificate: Mapping[str, Any], entries: Sequence[ModelEntry]) -> str:
    """Why a certificate does not apply to the current code, models or device; or ""."""
    if stale(certificate):
        then = certificate["libraries"]
        for name, now in libraries().items():
            if then.get(name) != now:
                return f"{name} was {then.get(name)} then and is {now} now."
        return "The engine's code has changed since."
    by_name = {entry.name: entry for entry in entries}
    reasons = (
        _other_model(model, variants.named(model["name"], by_name))
        for model in certificate["models"]
    )
    return next(filter(None, reasons), "")


def _other_model(model: Mapping[str, Any], entry: ModelEntry | None) -> str:
    name = model["name"]
    if not model["digest"]:
        return ""  # it did not load, so the certificate does not cover it
    if entry is None:
        return f"{name} is no longer in models.toml."
    if entry.precision != model["dtype"]:
        return f"{name} ran in {model['dtype']} then and runs in {entry.precision} now."
    if digest_now(entry) != model["digest"]:
        return f"The checkpoint of {name} has changed since, or its files have not been hashed."
    return "" if here(model["environment"]) else f"{name} runs on another device now."
