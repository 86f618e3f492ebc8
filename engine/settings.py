"""Where things are on this machine: data roots, models.toml, cache folder, device, threads.

Boundary: reads the environment and one file, touches nothing else.  An environment variable wins
over `stagescope.toml` (in the project folder, or the path in STAGESCOPE_SETTINGS), which wins over
the default.  `VARIABLES` is the whole list.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import SettingsError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = Path(__file__).resolve().parent.parent
VARIABLES = {
    "cache_dir": "STAGESCOPE_CACHE_DIR",
    "datasets": "STAGESCOPE_DATASETS",
    "models_file": "STAGESCOPE_MODELS",
    "device": "STAGESCOPE_DEVICE",
    "threads": "STAGESCOPE_THREADS",
    "cache_limit_mb": "STAGESCOPE_CACHE_LIMIT_MB",
}


@dataclass(frozen=True)
class Settings:
    """All settings.  `datasets` are roots offered in the app; device "auto" means detect."""

    cache_dir: Path
    datasets: tuple[Path, ...]
    models_file: Path
    device: str
    threads: int
    cache_limit_mb: int

    @property
    def demo_dir(self) -> Path:
        """Where the demo dataset is made on first use."""
        return self.cache_dir / "demo-dataset"

    @property
    def features_dir(self) -> Path:
        return self.cache_dir / "features"


def load() -> Settings:
    """The settings now in force, or SettingsError with the value that cannot be used."""
    table = _file()
    cache_dir = Path(str(_get(table, "cache_dir", _default_cache()))).expanduser().absolute()
    return Settings(
        cache_dir=cache_dir,
        datasets=_paths(_get(table, "datasets", "")),
        models_file=Path(str(_get(table, "models_file", PROJECT / "models.toml"))).expanduser(),
        device=str(_get(table, "device", "auto")),
        threads=_positive("threads", _get(table, "threads", max(1, (os.cpu_count() or 2) - 1))),
        cache_limit_mb=_positive("cache_limit_mb", _get(table, "cache_limit_mb", 8192)),
    )


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as a dict, or SettingsError that names the file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read ({error.strerror}): check the path.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid TOML ({error}): correct it.") from error


def _file() -> dict[str, Any]:
    named = os.environ.get("STAGESCOPE_SETTINGS")
    path = Path(named) if named else PROJECT / "stagescope.toml"
    if not named and not path.exists():
        return {}
    table = read_toml(path)
    unknown = sorted(set(table) - set(VARIABLES))
    if unknown:
        known = ", ".join(VARIABLES)
        raise SettingsError(f"{path} holds the unknown setting {unknown[0]!r}: known are {known}.")
    return table


def _get(table: dict[str, Any], name: str, default: Any) -> Any:
    return os.environ.get(VARIABLES[name]) or table.get(name, default)


def _paths(value: Any) -> tuple[Path, ...]:
    parts = value.split(os.pathsep) if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise SettingsError(f"datasets is {value!r}: give a list of folders.")
    return tuple(Path(part).expanduser().absolute() for part in parts if part)


def _positive(name: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = 0
    if number < 1:
        raise SettingsError(f"{name} is {value!r}: give a whole number of at least 1.")
    return number


def _default_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "stagescope"
