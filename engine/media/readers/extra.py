"""The libraries of the extra `events` (HDF5), which the base install works without.

Boundary: imports a library when a file needs it, or says how to install it; reads no files.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from engine.errors import MediaError

INSTALL = "pip install -r requirements-events.txt"


def module(name: str, file_name: str) -> Any:
    """The library `name`; MediaError with the line that installs it, for the file that needs it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MediaError(
            f"{file_name} needs the library {name}, which cannot be imported: run `{INSTALL}`."
        ) from error
