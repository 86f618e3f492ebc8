"""RunValues: what a gate needs of a run, and the small file that keeps it as a pinned baseline.

The file holds the run's header (plan, samples, models, code, machine), and per model and sample the
median of each metric, the accuracy and the token ids.  So the folder of the run need not be kept.

The file is untrusted: its size, types and ranges are checked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from engine.errors import StoreError
from engine.machine.load import MachineLoad
from engine.plain_files import JSON_FAULTS, Count, Difference, Name, read_json, reason
from engine.quoting import quoted, shown
from engine.storage import new_file, run_header
from engine.storage.run_header import Header

FORMAT, VERSION = "stagescope-baseline", 2
_WHAT = "The pinned baseline"
MAX_BYTES = 2**26  # 500 samples of 3 models have about 1 MB
Share = Annotated[float, Meta(ge=0, le=1)]


class SampleValues(Struct, frozen=True, kw_only=True):
    """One model's answers to one sample, over its repeats.

    values: metric -> median of the measured results.  turns: metric -> repeat -> value, if the run
    took turns with another.  right: the share of right answers or
    attributes, None if it is not known.  token_ids: of the first answer, None without ids.
    new_tokens counts the answers of batches too.
    """

    sequence: str
    results: Count
    values: dict[str, Difference]
    turns: dict[str, dict[int, Difference]] = {}
    right: Share | None = None
    token_ids: tuple[Count, ...] | None = None


class ModelValues(Struct, frozen=True, kw_only=True):
    """One label's answers.  `failed`: samples without any answer.  `cached`: results with a stage
    that was read from the cache.  `device`, `shared`: as in results_table.frame."""

    label: str
    model: Name
    device: str
    shared: str
    cached: Count
    load: MachineLoad | None
    samples: dict[str, SampleValues]
    failed: tuple[str, ...] = ()


class RunValues(Struct, frozen=True):
    """A run for a gate; `pinned`: it was read from a baseline file.  `others`: further runs of the
    same code, which only times are compared of."""

    header: Header
    finished: bool
    models: tuple[ModelValues, ...]
    pinned: bool = False
    others: tuple[RunValues, ...] = ()

    @property
    def runs(self) -> tuple[RunValues, ...]:
        return (self, *self.others)

    @property
    def id(self) -> str:
        return self.header.id

    def model(self, label: str) -> ModelValues | None:
        return next((one for one in self.models if one.label == label), None)


class _Stored(Struct):
    format: Literal["stagescope-baseline"]
    version: int
    run: dict[str, Any]
    finished: bool
    models: tuple[ModelValues, ...]


def write(values: RunValues, path: Path) -> None:
    """Writes a new baseline file; StoreError if that fails."""
    stored = {
        "format": FORMAT,
        "version": VERSION,
        "run": run_header.as_json(values.header),
        "finished": values.finished,
        "models": values.models,
    }
    new_file.write(path, msgspec.json.encode(stored) + b"\n")


def read(path: Path) -> RunValues:
    """Reads a baseline file; StoreError for anything else."""
    return _values(read_json(path, MAX_BYTES, _WHAT, _Stored, error=StoreError), shown(path))


def parse(data: bytes, name: str) -> RunValues:
    """As read(), from the content of a file of this name; the caller limits its size."""
    try:
        return _values(msgspec.json.decode(data, type=_Stored), quoted(name))
    except JSON_FAULTS as fault:
        raise StoreError(
            f"{_WHAT} {quoted(name)} cannot be used ({reason(fault)}): pin the baseline again."
        ) from fault


def _values(stored: _Stored, name: str) -> RunValues:
    if stored.version != VERSION:
        raise StoreError(
            f"{name} is a baseline of version {quoted(stored.version)}, but this program "
            f"reads version {VERSION}: pin the baseline again."
        )
    header = run_header.parsed(stored.run, name)
    return RunValues(header, stored.finished, stored.models, pinned=True)
