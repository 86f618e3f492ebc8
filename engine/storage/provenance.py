"""Digests of everything that a run's figures depend on: samples, code, checkpoints."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from engine.machine.device import installed
from engine.models import checkpoint, checkpoint_files
from engine.models.checkpoint import ModelEntry
from engine.storage.run_header import DatasetIdentity, Header, ModelIdentity
from engine.types import Sample

ENGINE = Path(__file__).resolve().parent.parent
# What turns files into tokens and times.  How results are kept, judged and shown may change freely.
ANSWERS = ("machine", "media", "decoding", "models", "pipeline", "prompts.py", "timing.py",
           "media_options.py", "types.py")  # fmt: skip
# A row depends on these too: who asked, here or on a worker of a cluster, and how it was written.
ROWS = (
    *ANSWERS,
    *("served", "benchmark/task_executor.py", "benchmark/cluster", "storage/result_rows.py"),
)
LIBRARIES = ("torch", "transformers", "tokenizers", "av", "pillow", "numpy")


def describe_dataset(root: Path, samples: Sequence[Sample]) -> DatasetIdentity:
    """A digest of each sample's record and its files' names and sizes, independent of the root.
    File contents are not included: reading a thousand recordings would take as long as a run."""
    total = hashlib.blake2b(digest_size=16)
    for sample in samples:
        total.update(_text(root, sample) + b"\n")
    return DatasetIdentity(str(root), total.hexdigest())


def describe_samples(root: Path, samples: Sequence[Sample]) -> list[str | None]:
    """A digest of each sample; None if one of its files is not on this machine."""
    return [
        hashlib.blake2b(_text(root, sample), digest_size=8).hexdigest() if is_here(sample) else None
        for sample in samples
    ]


def is_here(sample: Sample) -> bool:
    return all(path.is_file() for path in files_of(sample))


def files_of(sample: Sample) -> list[Path]:
    found = [*sample.event_images, *sample.frames, *sample.images]
    return found + [path for path in (sample.events, sample.mp4) if path is not None]


def _text(root: Path, sample: Sample) -> bytes:
    files = []
    for path in files_of(sample):
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
        try:
            files.append((name, path.stat().st_size))
        except OSError:
            files.append((name, -1))
    named = ("id", "question", "reference", "truth", "choices", "answer", "task")
    fields = {name: getattr(sample, name) for name in named} | {
        "truth": dict(sample.truth),
        "files": sorted(files),
        "choice_form": sample.choice_form if sample.choices else "",
        "window": str(sample.window or ""),
    }
    return json.dumps(fields, sort_keys=True).encode()


def describe_code() -> str:
    """A digest of the code between files and rows, and of its libraries."""
    libraries = " ".join(f"{name}={installed(name)}" for name in LIBRARIES)
    return source_digest(ROWS, libraries)


def source_digest(parts: Iterable[str], more: str = "") -> str:
    """A digest of the source files of these parts of the engine, and of `more`."""
    total = hashlib.blake2b(digest_size=16)
    for part in parts:
        path = ENGINE / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            total.update(file.relative_to(ENGINE).as_posix().encode() + file.read_bytes())
    total.update(more.encode())
    return total.hexdigest()


def describe_models(entries: Iterable[ModelEntry]) -> tuple[ModelIdentity, ...]:
    """The identity of each entry; ModelUnavailable if a checkpoint is missing."""
    found = []
    for entry in entries:
        named = (entry.name, entry.label, entry.family, entry.checkpoint)
        if entry.server:  # its weights are not known
            found.append(ModelIdentity(*named, None, entry.precision, "", entry.kind))
            continue
        folder = checkpoint.locate(entry)
        revision = checkpoint.revision(entry, folder)
        digest = checkpoint_files.digest(folder, entry.name)
        found.append(ModelIdentity(*named, revision, entry.precision, digest, entry.kind))
    return tuple(found)


def differences(kept: Header, found: Header) -> list[str]:
    """What has changed since a run began, as clauses for a sentence."""
    changed = []
    if kept.dataset.digest != found.dataset.digest:
        changed.append(f"the samples in {found.dataset.root} have changed")
    if kept.code != found.code:
        changed.append("the engine's code or libraries have changed")
    now = {model.name: model for model in found.models}
    for model in kept.models:
        here = now.get(model.name)
        if here is None or (here.digest, here.dtype) != (model.digest, model.dtype):
            changed.append(f"the checkpoint or dtype of {model.name} has changed")
    return changed


def moved(kept: Header, found: Header) -> str:
    """A sentence for the journal about changes of the machine, or ""."""
    parts = [
        f"{name} {text} instead of {kept.environment.get(name, 'nothing')}"
        for name, text in found.environment.items()
        if kept.environment.get(name) != text
    ]
    return f"The machine has changed: {', '.join(parts)}." if parts else ""
