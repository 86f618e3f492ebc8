"""Certificates: what a verification proved, for which checkpoint, code, device and dtype.

Format: one JSON object per verification, stored as HASH.json below the runs folder.  "hash" is the
SHA-256 of the rest, written with sorted keys and no spaces; it detects accidents and is no
signature.  "engine" is the digest of the code that answers and verifies, and of its libraries.
"verdicts" holds all checks, and what is stated of a model must follow from its verdicts.

Whether one is still valid is found without hashing weights, and with torch only if it is already
imported: a checkpoint counts as changed if its current files have not been hashed.
"""

import hashlib
import json
import platform
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from engine import plain_files, settings
from engine.errors import BadInput, ModelUnavailable, SettingsError
from engine.machine import device
from engine.media_options import COUNT_SPLIT
from engine.models import checkpoint, checkpoint_files, variants
from engine.models.checkpoint import ModelEntry
from engine.models.families import FAMILIES
from engine.plain_files import JSON_FAULTS, Count, Name, advice, read_limited, reason, write_whole
from engine.quoting import count, quoted, shown
from engine.served import capabilities
from engine.storage import provenance
from engine.storage.result_rows import SHOWN, UNVERIFIED, ResultRow, Standing, plain_value
from engine.types import RunOptions, RunResult
from engine.verify.verdict import (
    TIMING,
    Coverage,
    ModelVerdicts,
    Verdict,
    VerifyRequest,
    coverage_of,
    not_covered,
    unproved,
    verified,
)

__all__ = ["SHOWN"]
FORMAT = 5
MAX_BYTES = 2**25  # of one file
WHOLE = "whole recordings"
SERVED_AGE = timedelta(days=1)  # of a server's certificate: it may run something else since
CODE = (*provenance.ANSWERS, "verify", "served", "storage/result_rows.py")
Candidate = tuple[Mapping[str, Any], Mapping[str, Any]]  # a certificate and one of its models
_LIBRARIES = ("torch", "transformers", "numpy", "pillow", "av", "safetensors", "tokenizers")


class VerifiedModel(Struct):
    name: Name
    digest: str  # "" if it did not load
    dtype: str
    environment: dict[str, str]
    backend: str
    verified: bool
    coverage: Coverage
    unproved: list[str]
    shows: str  # what it was shown


class VerifiedRequest(Struct):
    dataset: str
    samples: list[str]
    prompt: str
    max_new_tokens: Count
    runs: Count
    backend: str
    extent: str
    batch: Count


class Certificate(Struct):
    format: int
    made: str
    engine: str
    libraries: dict[str, str]
    request: VerifiedRequest
    models: list[VerifiedModel]
    verdicts: list[Verdict]
    hash: Name


def folder() -> Path:
    return settings.load().runs_dir / "certificates"


@lru_cache(maxsize=1)
def engine_digest() -> str:
    """Computed once per process, because the imported code is what runs."""
    return provenance.source_digest(CODE, json.dumps(libraries()))


def libraries() -> dict[str, str]:
    return {name: device.installed(name) for name in _LIBRARIES}


def make(request: VerifyRequest, models: Sequence[ModelVerdicts], dataset: str) -> dict[str, Any]:
    samples, entries = [sample.id for sample in request.samples], []
    for model in models:
        info, rows, where = model.info, model.verdicts, dict(model.environment)
        digest = info.digest if info else ""
        if "server" in where:
            digest = served_digest(where["server"], info.checkpoint if info else "")
        entry = VerifiedModel(
            name=model.name,
            digest=digest,
            dtype=info.precision if info else "",
            environment=where,
            backend=model.backend,
            verified=bool(digest) and verified(rows, model.name),
            coverage=coverage_of(rows),
            unproved=unproved(rows, samples),
            shows=(info.shows or "") if info else "",
        )
        entries.append(entry)
    asked = (getattr(request, name) for name in VerifiedRequest.__struct_fields__[2:])
    content = Certificate(
        FORMAT,
        datetime.now(UTC).isoformat(timespec="seconds"),
        engine_digest(),
        libraries(),
        VerifiedRequest(dataset, samples, *asked),
        entries,
        [verdict for model in models for verdict in model.verdicts],
        "",
    )
    plain: dict[str, Any] = _plain(content)
    return plain | {"hash": content_hash(plain)}


def _plain(value: Any) -> Any:
    """The value as JSON gives it back: tuples become lists, NaN and infinity become null."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=plain_value))


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
    name: str
    reason: str


def read(path: Path) -> dict[str, Any] | UnusableFile:
    try:
        state = path.stat()
    except OSError as error:
        return UnusableFile(path.name, reason(error))
    return _read(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=256)
def _read(path: Path, changed: int, size: int) -> dict[str, Any] | UnusableFile:
    try:
        certificate = plain_files.checked(read_limited(path, MAX_BYTES), Certificate)
        wrong = _contradiction(certificate)
    except (OSError, ValueError, *JSON_FAULTS) as error:
        wrong = reason(error)
    return UnusableFile(path.name, wrong) if wrong else certificate


def _contradiction(certificate: Mapping[str, Any]) -> str:
    """Why a certificate of the right form is not accepted, or ""; ValueError for a bad date."""
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
        if (model["verified"], model["coverage"]) != (good, _plain(coverage_of(rows))):
            return "its own checks do not support what it states about a model"
    return ""


def verdicts_in(certificate: Mapping[str, Any]) -> tuple[Verdict, ...]:
    return msgspec.convert(certificate["verdicts"], tuple[Verdict, ...])


def stored_certificates() -> list[dict[str, Any]]:
    """All certificates, the newest first."""
    usable = [file for file in _all() if isinstance(file, dict)]
    return sorted(usable, key=lambda certificate: str(certificate["made"]), reverse=True)


def unusable_files() -> list[UnusableFile]:
    return sorted(file for file in _all() if isinstance(file, UnusableFile))


def _all() -> list[dict[str, Any] | UnusableFile]:
    try:
        return [read(path) for path in folder().glob("*.json")]
    except OSError:
        return []


def stale(certificate: Mapping[str, Any]) -> bool:
    return bool(certificate["engine"] != engine_digest())


def row_of(result: RunResult) -> ResultRow:
    """The row of a result with its certificate's status: what every path of a result stores."""
    return ResultRow.from_result(result, certificate_status(result))


def served_digest(url: str, model: str) -> str:
    """What stands for the checkpoint of a served model: its address and its name there."""
    return hashlib.sha256(f"{url}\n{model}".encode()).hexdigest()


def _served_status(digest: str, software: str, result: RunResult | None = None) -> Standing:
    """That of the newest certificate of a server: it ages, because a server can change."""
    for certificate, model in _fresh(digest):
        if model["environment"]["software"] != software:
            continue
        age = datetime.now(UTC) - datetime.fromisoformat(certificate["made"])
        if not model["verified"]:
            said = tuple(row["sentence"] for row in _failed(certificate, model))
            return Standing("disproved", certificate["hash"], said[:1]) if said else UNVERIFIED
        hours = int(age.total_seconds() // 3600)
        ago = f"{count(hours, 'hour')} ago" if hours else "within the hour"
        lacking = [f"proved {ago}"] if age > SERVED_AGE else []
        lacking += not_covered(covers(model), result) if result else []
        state: Any = "not covered" if lacking else "proved"
        return Standing(state, certificate["hash"], tuple(lacking) or (ago,))
    return UNVERIFIED


def certificate_status(result: RunResult) -> Standing:
    """Whether a certificate covers a result as it ran, and which of its timing checks stayed open;
    if it does not, what is not covered.

    Certificates of other code are ignored.  The newest one for the same settings decides; if one of
    its checks failed, earlier ones do not count.  Otherwise the closest certificate of the
    checkpoint is named.
    """
    request, where = result.request, result.environment
    if result.served:
        digest = served_digest(where.get("server", ""), result.model.checkpoint)
        return _served_status(digest, where.get("software", ""), result)
    # How it ran, where a verification may have run otherwise: none cuts a window, splits otherwise
    # or perturbs.  Results of the model's own generate() are covered with any backend.
    ran = {"shown": result.model.shows or "", "dtype": result.model.precision}
    ran |= {name: where.get(name, "") for name in ("device", "hardware")}
    if result.extent is not None:  # pictures drawn from raw events
        ran |= {"extent": result.extent, "split": str(request.how.split)}
        ran["window"] = str(request.how.window or WHOLE)
    ran |= {"perturbed by": str(request.how.perturbed)} if request.how.perturbed else {}
    ran |= {"backend": result.backend} if result.backend != "generate" else {}
    return _closest(_fresh(result.model.digest), ran, result)


def _closest(
    candidates: Iterable[Candidate], ran: Mapping[str, str], result: RunResult | None = None
) -> Standing:
    """That of the first certificate which covers what `ran`, or else of the closest one."""
    closest = UNVERIFIED
    for certificate, model in candidates:
        where = model["environment"]
        proved = {
            "shown": model["shows"],
            "dtype": model["dtype"],
            "device": where.get("device"),
            "hardware": where.get("hardware"),
            "extent": certificate["request"]["extent"],
            "window": WHOLE,
            "split": str(COUNT_SPLIT),
            "backend": model["backend"],
        }
        lacking = [
            f"{name} {value}"
            + (f" ({proved[name] or 'unknown'} verified)" if name in proved else "")
            for name, value in ran.items()
            if value != proved.get(name)
        ]
        if not model["verified"]:
            if not lacking and _failed(certificate, model):
                break
            continue
        lacking += not_covered(covers(model), result) if result else []
        if not lacking:
            left = {row["check"] for row in _failed(certificate, model, "unresolved")}
            timing = tuple(words for check, words in TIMING.items() if check in left)
            return Standing("verified", str(certificate["hash"]), timing)
        if closest is UNVERIFIED or len(lacking) < len(closest.missing):
            closest = Standing("not covered", str(certificate["hash"]), tuple(lacking))
    return closest


def covering(entry: ModelEntry) -> Standing | None:
    """That of the newest certificate that verified this entry with its current files and device,
    its own input and the device's default backend; or None."""
    if entry.server:
        known = capabilities.kept(entry.server)
        standing = _served_status(digest_now(entry) or "", known.software if known else "")
        return None if standing == UNVERIFIED else standing
    ran = {"shown": entry.kind, "dtype": entry.precision, "extent": RunOptions.extent}
    same = []
    for certificate, model in _fresh(digest_now(entry) or ""):
        on_cuda = str(model["environment"].get("device", "")).startswith("cuda")
        usual = "compiled" if on_cuda and FAMILIES[entry.family].lean else "eager"
        if model["backend"] in (usual, "generate") and here(model["environment"]):
            same.append((certificate, model))
    found = _closest(same, ran)
    return found if found.state == "verified" else None


def covers(model: Mapping[str, Any]) -> Coverage:
    return msgspec.convert(model["coverage"], Coverage)


def command(model: str, ran: str) -> str:
    words = [f"{settings.COMMAND} verify --models", shlex.quote(model)]
    words += [f"--backend {ran}"] if ran != "generate" else []  # generate() is covered by any
    return " ".join(words)


def _fresh(digest: str) -> Iterator[Candidate]:
    """Certificates of the current code with each entry for a checkpoint, the newest first.
    Variants of a model have one checkpoint.  The digest "" matches none."""
    for certificate in stored_certificates():
        for model in certificate["models"]:
            if digest and model["digest"] == digest and not stale(certificate):
                yield certificate, model


def _failed(
    certificate: Mapping[str, Any], model: Mapping[str, Any], *more: str
) -> list[Mapping[str, Any]]:
    """The rows of this model that failed, or have one of `more` outcomes."""
    own = [row for row in certificate["verdicts"] if row["model"] == model["name"]]
    return [row for row in own if row["outcome"] in ("failed", *more)]


def digest_now(entry: ModelEntry) -> str | None:
    """The digest of the entry's files, or None if they are missing or not hashed since a change."""
    if entry.server:
        return served_digest(entry.server.url, entry.checkpoint)
    try:
        return checkpoint_files.digest(checkpoint.locate(entry), entry.name, read=False) or None
    except (ModelUnavailable, OSError):
        return None


def here(environment: Mapping[str, str]) -> bool:
    """Whether a certificate's device may be the current one.  "auto" is only known after torch is
    imported; until then it may mean any accelerator."""
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
    known = {entry.name: entry for entry in entries}
    for model in certificate["models"]:
        name = model["name"]
        entry = variants.named(name, known)
        if not model["digest"]:
            continue  # it did not load, so the certificate does not cover it
        if entry is None:
            return f"{name} is no longer in models.toml."
        same = digest_now(entry) == model["digest"]
        if entry.server and not same:
            return f"{name} names another server, or another model of it, now."
        if entry.server:
            continue
        if entry.precision != model["dtype"]:
            return f"{name} ran in {model['dtype']} then and runs in {entry.precision} now."
        if not same:
            return f"The checkpoint of {name} has changed since, or its files have not been hashed."
        if not here(model["environment"]):
            return f"{name} runs on another device now."
    return ""
