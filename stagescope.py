"""StageScope for Python programs and notebooks, and its command.

In a wheel this file is the package `stagescope`, and the folders engine/ and ui/ lie inside it.
They import each other by these names, so both are imported from there at once.
"""

import importlib
import sys
from pathlib import Path

_HERE = str(Path(__file__).resolve().parent)
sys.path.insert(0, _HERE)
for _name in ("engine", "ui"):
    _place = importlib.import_module(_name).__file__ or "nowhere"
    if Path(_place).parent.parent != Path(_HERE):
        sys.path.remove(_HERE)
        raise ImportError(
            f"StageScope cannot run beside another package named {_name} ({_place}), which was "
            "imported before: import stagescope first, or in a process of its own."
        )
# Last, because a program may have an app.py of its own; processes that it starts look here too.
sys.path.remove(_HERE)
sys.path.append(_HERE)

from engine.errors import StageScopeError  # noqa: E402
from engine.public import bench, compare, explain, models, open_run, samples, verify  # noqa: E402
from engine.types import Sample  # noqa: E402

__all__ = [
    "Sample",
    "StageScopeError",
    "bench",
    "compare",
    "explain",
    "models",
    "open_run",
    "samples",
    "verify",
]


def command() -> int:
    """The command line of a process."""
    from engine.__main__ import command

    return command()
