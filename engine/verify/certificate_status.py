"""Decides whether a certificate is still valid, for an entry of models.toml or as a whole.

It hashes no weights, and uses torch only if it is already imported: a checkpoint counts as changed
if its current files have not been hashed.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from engine import settings
from engine.errors import ModelUnavailable, SettingsError
from engine.machine import device
from engine.models import checkpoint, variants, weights
from engine.models.checkpoint import ModelEntry
from engine.models.families import FAMILIES
from engine.types import RunRequest
from engine.verify import certificates


def covering(entry: ModelEntry) -> dict[str, Any] | None:
    """The newest certificate that verified this entry with its current files and device, or None.

    Only certificates for the entry's own input and pixels (exact, unless it is a variant) and the
    device's default backend count here.
    """
    digest = digest_now(entry)
    if digest is None:
        return None
    for certificate in certificates.stored_certificates():
        if certificates.stale(certificate) or not _usual_size(certificate["request"]):
            continue
        for model in certificate["models"]:
            ran = (model["digest"], model["dtype"], model.get("shows"))
            same = ran == (digest, entry.precision, entry.kind)
            if certificates.pixels_of(certificate, model) != (entry.pixels or "exact"):
                continue
            if not same or not _usual(model, entry) or not here(model["environment"]):
                continue
            if model["verified"] or certificates.failed(certificate, model):
                return certificate if model["verified"] else None
    return None


def _usual_size(request: Mapping[str, Any]) -> bool:
    """Whether the request verified event pictures of the default size."""
    return bool(request.get("extent") == RunRequest.extent)


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
        return weights.digest_if_known(folder, entry.name, settings.load().hashes_file)
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
    if certificates.stale(certificate):
        return _other_code(certificate)
    by_name = {entry.name: entry for entry in entries}
    for model in certificate["models"]:
        name = str(model["name"])
        if reason := _other_model(model, variants.named(name, by_name)):
            return reason
    return ""


def _other_code(certificate: Mapping[str, Any]) -> str:
    then, now = certificate["libraries"], certificates.libraries()
    for name in now:
        if then.get(name) != now[name]:
            return f"{name} was {then.get(name)} then and is {now[name]} now."
    return "The engine's code has changed since."


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
