"""The settings of this machine: folders, models.toml, device, threads, and the Ray address.

An environment variable overrides `stagescope.toml` (or the path in STAGESCOPE_SETTINGS), which
overrides the default.  `VARIABLES` lists all environment variables.  Both files are looked for in
the current folder, in this user's configuration folder, and beside the code.
"""

import os
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import SettingsError
from engine.plain_files import read_text, reason
from engine.quoting import quoted, shown

MAX_TOML = 2**20  # bytes of a settings file or of models.toml
PROJECT = Path(__file__).resolve().parent.parent
INSTALLED = not (PROJECT / "pyproject.toml").is_file()  # from a wheel: nothing is written there
COMMAND = "stagescope" if INSTALLED else "python -m engine"  # as sentences name it
MODELS = "models.toml"
DEMO = "demo-dataset"  # the folder's name
VARIABLES = {
    "cache_dir": "STAGESCOPE_CACHE_DIR",
    "runs_dir": "STAGESCOPE_RUNS_DIR",
    "datasets": "STAGESCOPE_DATASETS",
    "models_file": "STAGESCOPE_MODELS",
    "device": "STAGESCOPE_DEVICE",
    "threads": "STAGESCOPE_THREADS",
    "cache_limit_mb": "STAGESCOPE_CACHE_LIMIT_MB",
    "ray_address": "STAGESCOPE_RAY_ADDRESS",
}


@dataclass(frozen=True)
class Settings:
    """All settings.  `datasets`: roots offered in the app; device "auto": detect it;
    `ray_address`: the cluster for dataset runs, HOST:PORT or "auto", or "" for none."""

    cache_dir: Path
    runs_dir: Path
    datasets: tuple[Path, ...]
    models_file: Path
    device: str
    threads: int
    cache_limit_mb: int
    ray_address: str = ""

    @property
    def demo_dir(self) -> Path:
        """The folder of the demo dataset, which is created on first use."""
        return self.cache_dir / DEMO


def load() -> Settings:
    """The current settings; SettingsError names the value that cannot be used."""
    table, cores = _file(), os.cpu_count() or 1
    named_cache = _text(table, "cache_dir", "")
    cache_dir = expand(named_cache) if named_cache else _home("XDG_CACHE_HOME", ".cache")
    # By default, runs are not kept in the cache folder; a folder that was named holds everything.
    default_runs = cache_dir / "runs" if named_cache else _home("XDG_DATA_HOME", ".local/share")
    return Settings(
        cache_dir=cache_dir,
        runs_dir=expand(_text(table, "runs_dir", str(default_runs))),
        datasets=_paths(_get(table, "datasets", "")),
        models_file=expand(_text(table, "models_file", str(_nearest(MODELS)))),
        device=_text(table, "device", "auto"),
        threads=_whole("threads", _get(table, "threads", max(1, cores - 1)), cores),
        cache_limit_mb=_whole("cache_limit_mb", _get(table, "cache_limit_mb", 8192), 10**9),
        ray_address=_text(table, "ray_address", "").strip(),
    )


def expand(text: str, base: Path | None = None) -> Path:
    """An absolute path, ~ expanded, below `base` if it is relative; SettingsError if unusable."""
    try:
        path = ((base or Path.cwd()) / Path(text).expanduser()).absolute()
        if b"\0" in os.fsencode(path):  # raises for characters that no file system accepts
            raise ValueError("a null character in it")
        path.exists()  # raises for names that are too long
    except (OSError, ValueError, RuntimeError) as error:
        raise SettingsError(
            f"{quoted(text)} is not a usable path ({reason(error)}): correct it."
        ) from error
    return path


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as a dict, or SettingsError that names the file."""
    return parse_toml(read_text(path, MAX_TOML, "The file", error=SettingsError), path)


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """The text of this TOML file as a dict, or SettingsError that names the file."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is a ValueError
        raise SettingsError(
            f"{shown(path)} is not valid TOML ({reason(error)}): correct it."
        ) from error


def _file() -> dict[str, Any]:
    named = os.environ.get("STAGESCOPE_SETTINGS")
    path = Path(named) if named else _nearest("stagescope.toml")
    if not named and not path.exists():
        return {}
    table = read_toml(path)
    unknown = sorted(set(table) - set(VARIABLES))
    if unknown:
        known = ", ".join(VARIABLES)
        raise SettingsError(
            f"{shown(path)} holds the unknown setting {quoted(unknown[0])}: known are {known}."
        )
    return table


def _get(table: dict[str, Any], name: str, default: Any) -> Any:
    return os.environ.get(VARIABLES[name]) or table.get(name, default)


def _paths(value: Any) -> tuple[Path, ...]:
    parts = value.split(os.pathsep) if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise SettingsError(f"datasets is {quoted(value)}: give a list of folders.")
    return tuple(expand(part) for part in parts if part)


def _whole(name: str, value: Any, most: int) -> int:
    """An integer, or a text of at most 20 digits; 1.5 is refused, not rounded."""
    number = 0
    if isinstance(value, str) and len(value) <= 20:
        with suppress(ValueError):
            number = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    if not 1 <= number <= most:
        raise SettingsError(f"{name} is {quoted(value)}: give a whole number from 1 to {most:,}.")
    return number


def _text(table: dict[str, Any], name: str, default: str) -> str:
    value = _get(table, name, default)
    if not isinstance(value, str):
        raise SettingsError(f"{name} is {quoted(value)}: write it as a text in quotes.")
    return value


def own_models_file() -> Path:
    """Where an entry is added: the file that is read, or the user's instead of a wheel's."""
    path = load().models_file
    shipped = INSTALLED and path == PROJECT / MODELS
    return _home("XDG_CONFIG_HOME", ".config") / MODELS if shipped else path


def _nearest(name: str) -> Path:
    """This file in the current folder, in the user's configuration folder, or beside the code."""
    with suppress(OSError):  # the current folder was removed
        for folder in (Path.cwd(), _home("XDG_CONFIG_HOME", ".config")):
            if (folder / name).is_file():
                return folder / name
    return PROJECT / name


def _home(variable: str, default: str) -> Path:
    """This user's StageScope folder by the XDG base directory specification."""
    base = os.environ.get(variable)
    return (Path(base) if base else Path.home() / default) / "stagescope"
