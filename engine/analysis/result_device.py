"""Which type of device a result comes from, and what decoded it: what its times depend on beside
the model.

Boundary: rows in, names out.  Results of different types never meet in one mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.storage.result_rows import ResultRow


def device_type(environment: Mapping[str, Any]) -> str:
    """A GPU's name, or a processor with its threads; "" if unknown."""
    if not environment:
        return ""
    if str(environment.get("device", "cpu")) != "cpu":
        return str(environment.get("hardware", ""))
    name = str(environment.get("processor") or environment.get("hardware", ""))
    threads = str(environment.get("threads", ""))
    return f"{name}, {threads} {'thread' if threads == '1' else 'threads'}" if threads else name


def device_of(row: ResultRow) -> str:
    """The type of device of a row's result; a shared one is another type: its times are those of
    two."""
    where = row.where
    found = device_type(row.environment or {}) or (where and where.type) or ""
    return ", ".join(part for part in (found, shared_of(row)) if part)


def shared_of(row: ResultRow) -> str:
    """What other workers of the run used at the same time: "shared device and cores"; "" if
    nothing."""
    where = row.where
    return f"shared {' and '.join(where.shares)}" if where and where.shares else ""


def backend_of(row: ResultRow) -> str:
    """What decoded a row's answer; the eager step in rows from before there was another; "" where
    nothing did."""
    return (row.backend and row.backend.ran) or ("" if row.error else "eager")


def asked_of(row: ResultRow) -> str:
    """The backend that a row's run asked for, "" in rows that do not say."""
    return (row.backend and row.backend.asked) or ""
