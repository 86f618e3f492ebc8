"""Plans and samples as JSON, to be sent to workers.

Boundary: plain dicts, lists and texts, so that data sent to a worker can never run code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import convert, to_builtins

from engine.storage.plan import Plan
from engine.types import Sample


def pack(plan: Plan, root: Path, samples: Sequence[Sample]) -> dict[str, Any]:
    """The data of a run that a worker needs."""
    return {
        "plan": to_builtins(plan),
        "root": str(root),
        "samples": to_builtins(list(samples), enc_hook=str),  # paths as texts
    }


def unpack(value: Mapping[str, Any]) -> tuple[Plan, Path, list[Sample]]:
    """The plan, the dataset's root and its chosen samples."""
    samples = convert(value["samples"], list[Sample], dec_hook=lambda kind, text: kind(text))
    return convert(value["plan"], Plan), Path(value["root"]), samples
