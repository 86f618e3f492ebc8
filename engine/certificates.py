"""Certificates: what a verification proved, on which checkpoint, code, device and dtype.

Format: one JSON object per verification, kept as HASH.json below the runs folder; "hash" is the
SHA-256 of the rest, written with sorted keys and no spaces.  "models" says who was verified:
digest of the checkpoint, dtype, device and hardware, whether it was, what that covers ("coverage")
and what it does not prove ("unproved"); "engine" is the digest of this package's code and of the
libraries that compute for it; "verdicts" hold all checks.

Boundary: writes, reads and finds certificates; verifies nothing and imports no torch.  A
certificate proves nothing about a changed checkpoint or changed code: `standing_of` says so.
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine import coverage, settings
from engine.coverage import NOT_RECORDED, SHOWN, UNVERIFIED, Coverage, Standing
from engine.errors import BadInput
from engine.types import Ran, RunResult
from engine.verify.limits import unproved
from engine.verify.verdict import Verdict, VerifyRequest, proves, verified

__all__ = ["SHOWN"]
FORMAT = 3  # 1 did not name the backend, 2 does not record what it covers
WITHOUT_COVERAGE = 2  # still read, so that it can be shown as stale
_LIBRARIES = ("torch", "transformers", "numpy", "pillow", "av", "safetensors", "tokenizers")


def folder() -> Path:
    return settings.load().runs_dir / "certificates"


@lru_cache(maxsize=1)
def engine_digest() -> str:
    """Hex text that changes with every source file of the engine and with its libraries.

    Taken once per process: what was imported is what runs, whatever lies on disk by now.
    """
    total = hashlib.blake2b(digest_size=16)
    root = Path(__file__).parent
    for file in sorted(root.rglob("*.py")):
        total.update(f"{file.relative_to(root).as_posix()}\n".encode() + file.read_bytes())
    total.update(json.dumps(libraries()).encode())
    return total.hexdigest()


def libraries() -> dict[str, str]:
    """The versions of the packages whose results are passed on; "" for what is not installed."""
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
    """The certificate of a verification that has ended; `models` as `model_entry` gives them."""
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
            "batch": request.batch,
        },
        "models": list(models),
        "verdicts": [as_row(verdict) for verdict in verdicts],
    }
    plain: dict[str, Any] = _plain(content)
    return plain | {"hash": content_hash(plain)}


def _plain(value: Any) -> Any:
    """As it will be read again: tuples are lists, and what is no number is null."""
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
) -> dict[str, Any]:
    """One model of a certificate; dtype is its precision, digest "" if it did not load.

    `backend` is what decoded in the decoupled way: another one is not what was verified.
    """
    rows = [as_row(verdict) for verdict in verdicts if verdict.model == name]
    return {
        "name": name,
        "digest": digest,
        "dtype": dtype,
        "environment": dict(environment),
        "backend": backend,
        "verified": bool(digest) and verified(verdicts, name),
        "coverage": _plain(asdict(coverage.of(rows))),
        "unproved": unproved(rows),
    }


def as_row(verdict: Verdict) -> dict[str, Any]:
    """A verdict as a JSON object."""
    found = vars(verdict.finding) | {"evidence": dict(verdict.finding.evidence)}
    who = {"check": verdict.check, "title": verdict.title}
    return {**who, "model": verdict.model, "sample": verdict.sample, **found}


def content_hash(content: Mapping[str, Any]) -> str:
    """SHA-256 over everything but the hash itself, as hex text."""
    rest = {key: value for key, value in content.items() if key != "hash"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def keep(certificate: Mapping[str, Any]) -> Path:
    """Writes the certificate under its hash; BadInput where that is impossible."""
    path = folder() / f"{certificate['hash']}.json"
    part = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(certificate, indent=1, allow_nan=False), encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise BadInput(
            f"The certificate cannot be kept in {path.parent} ({error.strerror}): make room or "
            "set STAGESCOPE_RUNS_DIR to another folder."
        ) from error
    return path


def read(path: Path) -> dict[str, Any] | None:
    """A certificate, or None if the file is not one or its content is not what was hashed."""
    try:
        state = path.stat()
    except OSError:
        return None
    return _read(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=256)
def _read(path: Path, changed: int, size: int) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        whole = found["hash"] == content_hash(found) and _has_the_form(found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return found if whole else None


def _has_the_form(found: Mapping[str, Any]) -> bool:
    """Whether all that is looked at here is there; KeyError and the like where it is not.

    A model that is called verified must be so by its own verdicts: the hash finds accidents, it is
    no signature.
    """
    datetime.fromisoformat(found["made"])
    names = [model["name"] for model in found["models"]]
    if len(set(names)) < len(names):
        return False
    texts = [found["made"], found["engine"], found["request"]["prompt"]]
    for model in found["models"]:
        texts += [model["name"], model["digest"], model["dtype"], model["backend"]]
        texts += model["environment"].values()
        if found["format"] != WITHOUT_COVERAGE and not _bears_out(found, model):
            return False
    texts += [row["check"] for row in found["verdicts"]]
    known = found["format"] in (FORMAT, WITHOUT_COVERAGE)
    return known and all(isinstance(text, str) for text in texts)


def _bears_out(found: Mapping[str, Any], model: Mapping[str, Any]) -> bool:
    """Whether the verdicts say what the model's entry claims: that it is verified, and how far."""
    rows = [row for row in found["verdicts"] if row["model"] == model["name"]]
    good = bool(model["digest"]) and proves((row["check"], row["outcome"]) for row in rows)
    same = model["coverage"] == _plain(asdict(coverage.of(rows)))
    unproved_ = model["unproved"]
    listed = isinstance(unproved_, list) and all(isinstance(one, str) for one in unproved_)
    return model["verified"] is good and same and listed


def kept() -> list[dict[str, Any]]:
    """All certificates, the newest first."""
    try:
        found = [read(path) for path in folder().glob("*.json")]
    except OSError:
        return []
    return sorted(filter(None, found), key=lambda one: str(one["made"]), reverse=True)


def stale(certificate: Mapping[str, Any]) -> bool:
    """Whether other code runs now than was verified, or what it covers was not recorded."""
    old = certificate["format"] == WITHOUT_COVERAGE
    return old or bool(certificate["engine"] != engine_digest())


def standing_of(result: RunResult) -> Standing:
    """Whether a certificate covers a result as it ran, and what it lacks otherwise.

    Certificates of other code say nothing.  The newest one of the same dtype, device, backend and
    pixels decides: if it is a failure, earlier ones count no more.  Among those that verified the
    checkpoint the closest one is named.
    """
    closest = UNVERIFIED
    for certificate in kept():
        model = _model(certificate, result.model.digest)
        if model is None or stale(certificate):
            continue
        elsewhere = tuple(_other_setting(certificate, model, result))
        if not model["verified"]:
            if not elsewhere:
                break
            continue
        lacking = (*elsewhere, *_beyond(model, result))
        if not lacking:
            return Standing("verified", str(certificate["hash"]))
        if closest is UNVERIFIED or len(lacking) < len(closest.missing):
            closest = Standing("not covered", str(certificate["hash"]), lacking)
    return closest


def _beyond(model: Mapping[str, Any], result: RunResult) -> tuple[str, ...]:
    """What the result has beyond what this model's verification compared."""
    found = coverage_in(model)
    return (NOT_RECORDED,) if found is None else coverage.missing(found, result)


def coverage_in(model: Mapping[str, Any]) -> Coverage | None:
    """The coverage of a certificate's model; None where it was not recorded."""
    fields = model.get("coverage")
    if not isinstance(fields, Mapping):
        return None
    lists = {name: tuple(fields[name]) for name in ("pictures", "frames")}
    return Coverage(**{**fields, **lists})


def of(result: RunResult) -> str | None:
    """The hash of the certificate that covers a result as it ran, or None."""
    found = standing_of(result)
    return found.certificate if found.state == "verified" else None


def command(model: str, ran: str, pixels: str) -> str:
    """What verifies a model as it ran: a certificate covers one backend and one kind of pixels."""
    words = ["python -m engine verify --models", shlex.quote(model)]
    words += [f"--backend {ran}"] if ran != "generate" else []  # generate() is covered by any
    words += ["--pixels fast"] if pixels == "fast" else []
    return " ".join(words)


def _model(certificate: Mapping[str, Any], digest: str) -> Mapping[str, Any] | None:
    """The certificate's entry for a checkpoint; the digest "" belongs to no checkpoint."""
    found: list[Mapping[str, Any]] = certificate["models"]
    return next((one for one in found if digest and one["digest"] == digest), None)


def _other_setting(
    certificate: Mapping[str, Any], model: Mapping[str, Any], result: RunResult
) -> Iterator[str]:
    """Dtype, device, backend and pixels of the result, where they are not the verified ones.

    What the model's own generate() decoded is covered whatever the decoupled way ran.
    """
    there, here = model["environment"], result.environment
    pairs = [
        ("dtype", result.model.precision, model["dtype"]),
        ("device", here.get("device", ""), there.get("device", "")),
        ("hardware", here.get("hardware", ""), there.get("hardware", "")),
        ("pixels", result.request.pixels, certificate["request"].get("pixels", "")),
    ]
    if result.backend != "generate":
        pairs.append(("backend", result.backend, model["backend"]))
    for name, ran, proved in pairs:
        if ran != proved:
            yield f"{name} {ran} ({proved} verified)"
