"""The type of device and the backend of a result; its times depend on both.

Boundary: rows in, names out.  No mean contains results of different types of devices.
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
    """The type of device of a row's result; a shared device is another type, because its times
    include other work."""
    where = row.where
    found = device_type(row.environment) or (where and where.type) or ""
    return ", ".join(part for part in (found, shared_of(row)) if part)


def shared_of(row: ResultRow) -> str:
    """What other workers of the run used at the same time: "shared device and cores", or ""."""
    where = row.where
    return f"shared {' and '.join(where.shares)}" if where and where.shares else ""


def backend_of(row: ResultRow) -> str:
    """The backend that decoded a row's answer, "" without an answer."""
    return row.backend.ran or ("" if row.error else "eager")
