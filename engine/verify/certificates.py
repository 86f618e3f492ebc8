"""Certificates: what a verification proved, for which checkpoint, code, device and dtype.

Format: one JSON object per verification, stored as HASH.json below the runs folder.  "hash" is the
SHA-256 of the rest, written with sorted keys and no spaces.  "models" lists for each model: digest
of the checkpoint, dtype, device, hardware, whether it is verified, what that covers ("coverage")
and what it does not prove ("unproved").  "engine" is the digest of the code that answers and
verifies, and of its libraries.  "verdicts" holds all checks.
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from engine import settings
from engine.errors import BadInput
from engine.media_options import COUNT_SPLIT
from engine.plain_files import JSON_FAULTS, Count, Name, advice, read_limited, reason, write_whole
from engine.quoting import quoted, shown
from engine.storage import provenance
from engine.storage.result_rows import ResultRow
from engine.storage.schemas import SHOWN, UNVERIFIED, Standing, Texts, checked
from engine.types import Ran, RunResult
from engine.verify import coverage
from engine.verify.coverage import Coverage
from engine.verify.verdict import Verdict, VerifyRequest, verified

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
    """The versions of the packages that compute; "" for one that is not installed."""
    return {name: _version(name) for name in _LIBRARIES}


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # a list of samples needs none

    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def make(
    request: VerifyRequest,
    models: Sequence[Mapping[str, Any]],
    verdicts: Sequence[Verdict],
    dataset: str,
) -> dict[str, Any]:
    """The certificate of a finished verification; `models` as returned by `model_entry`."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "engine": engine_digest(),
        "libraries": libraries(),
        "request": {
            "dataset": dataset,
            "samples": [sample.id for sample in request.samples],
            "prompt": request.prompt,
            "max_new_tokens": request.max_new_tokens,
            "runs": request.runs,
            "backend": request.backend,
            "pixels": request.pixels,
            "extent": request.extent,
            "batch": request.batch,
        },
        "models": list(models),
        "verdicts": [structs.asdict(verdict) for verdict in verdicts],
    }
    plain: dict[str, Any] = _plain(content)
    return plain | {"hash": content_hash(plain)}


def _plain(value: Any) -> Any:
    """The value as JSON gives it back: tuples become lists, NaN and infinity become null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def model_entry(
    name: str,
    digest: str,
    dtype: str,
    environment: Mapping[str, str],
    verdicts: Sequence[Verdict],
    backend: Ran = "eager",
    shows: str = "",
    pixels: str = "",
) -> dict[str, Any]:
    """One model of a certificate; `dtype` is its precision, `digest` is "" if it did not load.

    `backend` decoded the decoupled way; other backends, inputs and pixels are not covered.
    """
    rows = [verdict for verdict in verdicts if verdict.model == name]
    return {
        "name": name,
        "digest": digest,
        "dtype": dtype,
        "environment": dict(environment),
        "backend": backend,
        "verified": bool(digest) and verified(verdicts, name),
        "coverage": _plain(asdict(coverage.of(rows))),
        "unproved": coverage.unproved(rows),
        "shows": shows,
        "pixels": pixels,
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


@dataclass(frozen=True)
class UnusableFile:
    """A file in the certificates folder that cannot be used, and why."""

    name: str
    reason: str


def read(path: Path) -> dict[str, Any] | None:
    """A certificate, or None if the file is not one or its hash does not match."""
    found = _looked_at(path)
    return None if isinstance(found, UnusableFile) else found


def _looked_at(path: Path) -> dict[str, Any] | UnusableFile:
    try:
        state = path.stat()
    except OSError as error:
        return UnusableFile(path.name, reason(error))
    return _read(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=256)
def _read(path: Path, changed: int, size: int) -> dict[str, Any] | UnusableFile:
    try:
        found = checked(read_limited(path, MAX_BYTES), Certificate)
        if found["hash"] != content_hash(found):
            return UnusableFile(path.name, "its content does not match its hash")
        wrong = _contradiction(found)
    except (OSError, ValueError, *JSON_FAULTS) as error:
        return UnusableFile(path.name, reason(error))
    return UnusableFile(path.name, wrong) if wrong else found


def _contradiction(found: Mapping[str, Any]) -> str:
    """Why a certificate of the right form is not accepted, or ""; ValueError for a bad date.

    A model that is marked verified must be so by its own verdicts.  The hash only detects
    accidents; it is not a signature.
    """
    if found["format"] != FORMAT:
        return f"it has format {quoted(found['format'])}, but this program reads {FORMAT}"
    datetime.fromisoformat(found["made"])
    names = [model["name"] for model in found["models"]]
    if len(set(names)) < len(names):
        return "it names a model twice"
    for model in found["models"]:
        if not _bears_out(found, model):
            return "its own checks do not support what it states about a model"
    return ""


def _bears_out(found: Mapping[str, Any], model: Mapping[str, Any]) -> bool:
    """Whether the verdicts support the model's entry: verified or not, and its coverage."""
    rows = [row for row in verdicts_in(found) if row.model == model["name"]]
    good = bool(model["digest"]) and verified(rows, model["name"])
    same = model["coverage"] == _plain(asdict(coverage.of(rows)))
    return model["verified"] is good and same


def verdicts_in(certificate: Mapping[str, Any]) -> tuple[Verdict, ...]:
    return msgspec.convert(certificate["verdicts"], tuple[Verdict, ...])


def stored_certificates() -> list[dict[str, Any]]:
    """All certificates, the newest first."""
    found = [one for one in _all() if not isinstance(one, UnusableFile)]
    return sorted(found, key=lambda one: str(one["made"]), reverse=True)


def unusable_files() -> list[UnusableFile]:
    """The files in the folder that are not usable certificates, by name."""
    return sorted(
        (one for one in _all() if isinstance(one, UnusableFile)), key=lambda one: one.name
    )


def _all() -> list[dict[str, Any] | UnusableFile]:
    try:
        return [_looked_at(path) for path in folder().glob("*.json")]
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
    for certificate, model in _fresh(result.model.digest):
        elsewhere = tuple(_other_setting(certificate, model, result))
        if not model["verified"]:
            if not elsewhere and failed(certificate, model):
                break
            continue
        lacking = (*elsewhere, *coverage.missing(coverage_in(model), result))
        if not lacking:
            return Standing("verified", str(certificate["hash"]))
        if closest is UNVERIFIED or len(lacking) < len(closest.missing):
            closest = Standing("not covered", str(certificate["hash"]), lacking)
    return closest


def coverage_in(model: Mapping[str, Any]) -> Coverage:
    """The coverage of a certificate's model."""
    return msgspec.convert(model["coverage"], Coverage)


def covers(model: Mapping[str, Any]) -> str:
    """The same in a sentence."""
    return coverage_in(model).sentence()


def command(model: str, ran: str, pixels: str) -> str:
    """The command that verifies a model as it ran (backend and pixels)."""
    words = ["python -m engine verify --models", shlex.quote(model)]
    words += [f"--backend {ran}"] if ran != "generate" else []  # generate() is covered by any
    words += ["--pixels fast"] if pixels == "fast" else []
    return " ".join(words)


def _fresh(digest: str) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Certificates of the current code with each entry for a checkpoint, the newest first.

    Variants of a model have one checkpoint.  The digest "" matches none.
    """
    for certificate in stored_certificates():
        for model in certificate["models"]:
            if digest and model["digest"] == digest and not stale(certificate):
                yield certificate, model


def pixels_of(certificate: Mapping[str, Any], model: Mapping[str, Any]) -> str:
    """The pixel setting with which a model was verified."""
    return str(model.get("pixels") or certificate["request"].get("pixels", ""))


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
    there, here = model["environment"], result.environment
    pairs = [
        ("shown", result.model.shows or "", model.get("shows", "")),
        ("dtype", result.model.precision, model["dtype"]),
        ("device", here.get("device", ""), there.get("device", "")),
        ("hardware", here.get("hardware", ""), there.get("hardware", "")),
        ("pixels", result.request.pixels, pixels_of(certificate, model)),
    ]
    request = result.request
    if result.extent is not None:  # pictures drawn from raw events
        whole = "whole recordings"
        pairs.append(("extent", result.extent, certificate["request"].get("extent", "")))
        pairs.append(("window", str(request.window or whole), whole))
        pairs.append(("split", str(request.split), str(COUNT_SPLIT)))
    if request.perturbed:
        yield f"perturbed by {request.perturbed}"
    if result.backend != "generate":
        pairs.append(("backend", result.backend, model["backend"]))
    for name, ran, proved in pairs:
        if ran != proved:
            yield f"{name} {ran} ({proved or 'unknown'} verified)"
