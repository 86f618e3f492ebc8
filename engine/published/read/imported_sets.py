"""Imported sets on disk: unchanged copies of files, so that newer versions can read them again.

`runs_dir/imported/NAME/set.json` lists {"file", "kept"}; the files are beside it as 000.json, ...
"""

from __future__ import annotations

import json
import re
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from msgspec import convert

from engine import settings
from engine.plain_files import JSON_FAULTS, read_limited, reason
from engine.published.read import read_files
from engine.published.read.read_files import Progress, RecordsError
from engine.published.read.record_types import ResultFile
from engine.quoting import listed
from engine.storage.schemas import KeptSet, checked

FORMAT = 1
LIST = "set.json"
MAX_LIST = 2**22  # bytes; 5,000 files have long names
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}")


@dataclass(frozen=True)
class Kept:
    """A set as described by its list; no file is read.  problem: why it cannot be opened, or ""."""

    name: str
    imported: str
    files: int
    problem: str = ""


def root() -> Path:
    """The folder of imported sets."""
    return settings.load().runs_dir / "imported"


def check_name(name: str) -> str:
    """The name, if it can be a folder below the root; RecordsError says what is allowed."""
    if not _NAME.fullmatch(name) or ".." in name or name.endswith((".", " ")):
        raise RecordsError(
            f"{name[:80]!r} cannot name a set: use up to 64 letters (a to z), digits, spaces, . _ "
            "and -, a letter or digit first."
        )
    return name


def save(name: str, files: Sequence[tuple[str, bytes]]) -> Path:
    """Saves (shown name, bytes) of each file under this name; RecordsError if the name is taken."""
    folder = root() / check_name(name)
    if folder.exists():
        raise RecordsError(f"A set named {name!r} is kept already: choose another name.")
    made = folder.with_name(f".{uuid.uuid4().hex}")
    try:
        made.mkdir(parents=True)
        kept = []
        for index, (file, data) in enumerate(files):
            kept.append({"file": read_files.shown(file), "kept": f"{index:03d}.json"})
            (made / f"{index:03d}.json").write_bytes(data)
        when = datetime.now(timezone.utc).isoformat(timespec="seconds")
        content = {"format": FORMAT, "imported": when, "files": kept}
        (made / LIST).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        made.rename(folder)  # complete or absent
    except OSError as error:
        shutil.rmtree(made, ignore_errors=True)
        raise RecordsError(f"{folder} cannot be written ({error.strerror}): check it.") from error
    return folder


def names() -> tuple[str, ...]:
    """The kept sets, by name."""
    try:
        found = sorted(path.parent.name for path in root().glob(f"*/{LIST}"))
    except OSError:
        return ()
    return tuple(name for name in found if _NAME.fullmatch(name))


def listing() -> tuple[Kept, ...]:
    """The kept sets by name; a damaged one has a `problem`."""
    every = []
    for name in names():
        try:
            found = _listed(root() / name, check_name(name))
            every.append(Kept(name, found.imported[:40], len(found.files)))
        except RecordsError as error:
            every.append(Kept(name, "", 0, str(error)))
    return tuple(every)


def load(name: str, progress: Progress | None = None) -> tuple[ResultFile, ...]:
    """The files of a kept set; RecordsError if the name is unknown or the list is broken.

    progress(done, all, name) is called before each file.
    """
    folder = root() / check_name(name)
    entries = _listed(folder, name).files
    found = []
    for number, entry in enumerate(entries):
        shown = read_files.shown(entry.file)
        if progress:
            progress(number, len(entries), shown)
        try:
            data = read_limited(folder / entry.kept, read_files.LIMIT_BYTES, links=False)
        except OSError as error:
            text = f"{shown} cannot be read ({reason(error)}): import it again."
            found.append(read_files.unreadable(shown, text))
        else:
            found.append(read_files.read_bytes(entry.file, data))
    return tuple(found)


def stamp(name: str) -> tuple[tuple[str, int, int], ...]:
    """(file, size, time of last change) of each file of a set; empty if there is none."""
    found = []
    for path in sorted((root() / check_name(name)).glob("*.json")):
        try:
            stat = path.stat()
        except OSError:
            continue
        found.append((f"{name}/{path.name}", stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def _listed(folder: Path, name: str) -> KeptSet:
    try:
        return convert(checked(read_limited(folder / LIST, MAX_LIST, links=False)), KeptSet)
    except FileNotFoundError as error:
        known = listed(names()) or "none"
        raise RecordsError(f"No imported set is named {name!r}: there are {known}.") from error
    except (OSError, *JSON_FAULTS) as error:
        raise RecordsError(
            f"The list of the set {name!r} is damaged ({reason(error)}): import its files again."
        ) from error


def delete(name: str) -> None:
    """Removes a kept set; RecordsError if there is none."""
    folder = root() / check_name(name)
    if not (folder / LIST).is_file() or folder.is_symlink():
        raise RecordsError(f"No imported set is named {name!r}.")
    shutil.rmtree(folder, ignore_errors=True)
