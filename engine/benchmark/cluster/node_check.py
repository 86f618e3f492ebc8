"""Compares a node's code, libraries, checkpoints and samples with the driver's.

Boundary: compares given digests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.benchmark.execute import PreparedRun
from engine.storage import provenance
from engine.storage.run_header import Header
from engine.types import Sample


@dataclass(frozen=True)
class NodeFinding:
    """`refused`: a difference that would change results.  `useless`: why the node cannot do
    anything.  `lacks`: samples it does not have.  `unloadable`: models it does not have, with the
    reason."""

    refused: str = ""
    useless: str = ""
    lacks: frozenset[str] = frozenset()
    unloadable: Mapping[str, str] = field(default_factory=dict)


class NodeInspector:
    """Compares nodes with the header of one run and with the samples on this machine."""

    def __init__(self, ready: PreparedRun, root: Path) -> None:
        self._header, self._root = ready.writer.header, root
        self._samples: Sequence[Sample] = list(ready.samples.values())
        self._digests = provenance.describe_samples(root, self._samples)

    def look(self, node: str, holds: Mapping[str, Any], versions: Mapping[str, str]) -> NodeFinding:
        """`holds`: the report of worker.begin() about a node; `versions`: those of the driver."""
        if holds["code"] != self._header.code:
            there = holds["versions"]
            other = [
                f"{k} {there.get(k)} not {v}" for k, v in versions.items() if there.get(k) != v
            ]
            which = f"its libraries ({', '.join(other)})" if other else "the engine's code"
            return NodeFinding(
                f"{node} has another digest of {which}: install the same on each node"
            )
        unloadable: dict[str, str] = {}
        if reason := self._models(node, self._header, holds["models"], unloadable):
            return NodeFinding(reason)
        if not holds["root"]:
            return NodeFinding(useless=f"the dataset {self._root} is not on {node}")
        pairs = list(zip(self._samples, self._digests, holds["samples"], strict=True))
        other = [sample.id for sample, here, there in pairs if there not in (here, None)]
        if other:
            return NodeFinding(
                f"{node} has other samples in {self._root}, {len(other):,} of {len(pairs):,}, the "
                f"first is {other[0]!r}: put the same dataset on each node"
            )
        lacks = frozenset(s.id for s, here, there in pairs if there is None and here is not None)
        if len(lacks) == len(pairs):
            return NodeFinding(useless=f"none of the samples of {self._root} is on {node}")
        return NodeFinding(lacks=lacks, unloadable=unloadable)

    @staticmethod
    def _models(
        node: str, header: Header, found: Mapping[str, Any], unloadable: dict[str, str]
    ) -> str:
        """Why the node's checkpoints are refused; models it lacks run on other nodes."""
        for model in header.models:
            there = found[model.name]
            if "error" in there:
                unloadable[model.name] = str(there["error"])
            elif (there["digest"], there["dtype"]) != (model.digest, model.dtype):
                return (
                    f"{node} has another checkpoint or dtype of {model.name} (digest "
                    f"{there['digest'][:12]} not {model.digest[:12]}): put the same on each node"
                )
        return ""
