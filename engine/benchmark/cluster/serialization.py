"""Plans and samples as JSON, to be sent to workers.

Boundary: plain dicts, lists and texts, so that data sent to a worker can never run code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from engine.storage.plan import Plan, from_json
from engine.types import Sample


def pack(plan: Plan, root: Path, samples: Sequence[Sample]) -> dict[str, Any]:
    """The data of a run that a worker needs."""
    return {
        "plan": plan.as_json(),
        "root": str(root),
        "samples": [_sample(sample) for sample in samples],
    }


def unpack(value: Mapping[str, Any]) -> tuple[Plan, Path, list[Sample]]:
    """The plan, the dataset's root and its chosen samples."""
    samples = [_sample_from(one) for one in value["samples"]]
    return from_json(value["plan"]), Path(value["root"]), samples


def _sample(sample: Sample) -> dict[str, Any]:
    return {one.name: _plain(getattr(sample, one.name)) for one in fields(sample)}


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return dict(value) if isinstance(value, Mapping) else value


def _sample_from(value: Mapping[str, Any]) -> Sample:
    found = dict(value)
    for name in ("event_images", "frames", "images"):
        found[name] = tuple(map(Path, found[name]))
    for name in ("events", "mp4"):
        found[name] = None if found[name] is None else Path(found[name])
    return Sample(**found | {"problems": tuple(found["problems"])})
