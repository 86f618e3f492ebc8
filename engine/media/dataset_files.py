"""The files and lists below a dataset's root, and the samples that are made of them.  A record is
untrusted text.  It must not make this program open a file outside its root, by "..", an absolute
path, a Windows path or a symbolic link.  Lists are read within limits."""

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import DatasetError, MediaError
from engine.media.media_files import by_number, place
from engine.plain_files import read_bytes, reason
from engine.quoting import listed, quoted, shown
from engine.types import Sample

MAX_LIST_BYTES = 64 << 20
MAX_RECORDS = 100_000  # of a root: each takes about 0.1 ms and 10 kB in a list of samples
MAX_DEPTH = 8
MAX_FILES = 100_000  # of events
MAX_ENTRIES = 1_000_000  # of all files and folders
MIN_MP4_BYTES = 1_000
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg")
_ENDING = re.compile(r"(?<=[^/])\.[^./]+\Z")
_EVENTS_ONLY = "It is a recording of events only: pick another sample for {} models."


@dataclass(frozen=True)
class Dataset:
    """The samples of one root in file order; clips[i] is the clip name "seq/000000" of
    samples[i].  `file` is the first list of samples, or the root of a folder without one."""

    root: Path
    samples: tuple[Sample, ...]
    file: Path
    problems: tuple[str, ...] = ()
    clips: tuple[str, ...] = ()


class Root:
    """One dataset root.  Every path it returns lies inside it, after links are resolved."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._folders: dict[str, bool] = {}

    def path_of(self, folder: str, value: object) -> Path:
        """root/folder/value; MediaError if the value is not a path below root/folder."""
        text = value if isinstance(value, str) and value.isprintable() else ""
        parts = set(text.split("/"))
        refused = text.startswith("/") or "\\" in text or re.match(r"[A-Za-z]:", text)
        # A name has at most 255 bytes, and a character at most 4.
        long = len(text) > 63 and (len(text) > 1_000 or any(len(p.encode()) > 255 for p in parts))
        if refused or long or ".." in parts or not parts - {"", "."}:
            raise MediaError(
                f"{quoted(value)} is refused: name a file below {folder}/, without '..'."
            )
        return self.path.joinpath(folder, text)

    def file(self, path: Path) -> Path:
        """The path of a file that exists, is not empty and lies inside, or MediaError."""
        try:
            info = path.lstat()
            self._check_inside(path, stat.S_ISLNK(info.st_mode))
            info = path.stat() if stat.S_ISLNK(info.st_mode) else info
        except OSError as error:
            raise self._unreachable(path, error) from error
        if not stat.S_ISREG(info.st_mode):
            raise MediaError(f"{self._shown(path)} is not a file: replace it by one.")
        if info.st_size < (MIN_MP4_BYTES if path.suffix.lower() == ".mp4" else 1):
            size = f"broken ({info.st_size:,} bytes)" if info.st_size else "empty (0 bytes)"
            raise MediaError(f"{self._shown(path)} is {size}: copy it again.")
        return path

    def pictures(self, path: Path) -> tuple[Path, ...]:
        """The PNG and JPEG files of a folder, sorted by number; MediaError if there are none."""
        try:
            self._check_inside(path, path.is_symlink())
            with os.scandir(path) as inside:
                found = [  # macOS writes "._000027.png" beside the real files on others' disks
                    entry
                    for entry in inside
                    if entry.name.lower().endswith(IMAGE_SUFFIXES) and entry.name[0] != "."
                ]
            for entry in found:
                if entry.is_symlink():
                    self._check_inside(path / entry.name, True)
        except OSError as error:
            raise self._unreachable(path, error, "/") from error
        if not found:
            raise MediaError(f"{self._shown(path)}/ holds no PNG or JPEG: restore its frames.")
        return tuple(sorted((path / entry.name for entry in found), key=by_number))

    def _unreachable(self, path: Path, error: OSError, end: str = "") -> MediaError:
        absent = isinstance(error, FileNotFoundError | NotADirectoryError)
        why = "does not exist: restore it."
        why = why if absent else f"cannot be reached ({error.strerror}): check it."
        return MediaError(f"{self._shown(path)}{end} {why}")

    def walk(self, endings: tuple[str, ...], below: Path | None = None) -> Iterator[Path]:
        """Every file with one of these endings, in no order; DatasetError above the limits.  Names
        that begin with a dot are left out, and linked folders are not followed."""
        waiting, seen, files = [(below or self.path, 0)], 0, 0
        while waiting:
            folder, depth = waiting.pop()
            for entry in entries(folder):
                seen += 1
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if depth < MAX_DEPTH:
                        waiting.append((folder / entry.name, depth + 1))
                elif entry.name.lower().endswith(endings):
                    files += 1
                    yield folder / entry.name
                if seen > MAX_ENTRIES or files > MAX_FILES:
                    raise DatasetError(
                        f"{place(self.path)} holds more than {MAX_FILES:,} event files or lists, "
                        f"or {MAX_ENTRIES:,} files: give a folder below it."
                    )

    def child(self, name: str) -> Path | None:
        """What has this name in small or capital letters; DatasetError if two have it."""
        names = sorted(entry.name for entry in entries(self.path) if entry.name.lower() == name)
        if len(names) > 1:
            raise DatasetError(
                f"{place(self.path)} holds {listed(names)}, different in capitals only: keep one."
            )
        return self.path / names[0] if names else None

    def short_name(self, path: Path) -> str:
        """The path below the root without its ending."""
        return clean(_ENDING.sub("", path.relative_to(self.path).as_posix()))

    def sequence(self, path: Path) -> str:
        """The folder of a file below the root; the root's own name for the root itself."""
        return clean(path.relative_to(self.path).as_posix().rpartition("/")[0] or self.path.name)

    def _shown(self, path: Path) -> str:
        return shown(path.as_posix().removeprefix(f"{self.path.as_posix()}/"))

    def _check_inside(self, path: Path, link: bool) -> None:
        """MediaError if a link leads out of the root; the result for a folder is remembered."""
        folder = str(path.parent)
        inside = self._folders.get(folder)
        if inside is None:
            inside = self._folders[folder] = self._holds(path.parent)
        if not inside or (link and not self._holds(path)):
            raise MediaError(
                f"{self._shown(path)} is a link out of the dataset and is refused: copy the file."
            )

    def _holds(self, path: Path) -> bool:
        with suppress(RuntimeError):  # Python 3.11 and 3.12 raise it for circular links
            return path.resolve().is_relative_to(self.path)
        return False


def entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError as error:
        raise DatasetError(
            f"{place(folder)} cannot be listed ({reason(error)}): check its rights."
        ) from error


def text_of(file: Path) -> str:
    """The text of a list; DatasetError if it is too large or not UTF-8."""
    try:
        data = read_bytes(file, MAX_LIST_BYTES, "The dataset file", error=DatasetError)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{place(file)} is not UTF-8 (byte {error.start:,}): save it as UTF-8."
        ) from error


def json_of(file: Path) -> Any:
    """The value in a JSON file, or DatasetError."""
    try:
        return json.loads(text_of(file))
    except (ValueError, RecursionError) as error:
        raise DatasetError(
            f"{place(file)} is not readable JSON ({reason(error)}): build it again."
        ) from error


def records_of(file: Path, value: Any) -> list[Any]:
    """The records of a JSON file's list; DatasetError if it is no list, or empty, or too long."""
    name = place(file)
    if not isinstance(value, list):
        raise DatasetError(
            f"{name} holds {kind_of(value)} instead of a list of records: build it again."
        )
    if not value:
        raise DatasetError(f"{name} holds an empty list: build it again or pick another root.")
    if len(value) > MAX_RECORDS:
        held = f"{len(value):,} records, and at most {MAX_RECORDS:,} are read"
        raise DatasetError(f"{name} holds {held}: make a folder for each part of it.")
    return value


def kind_of(value: object) -> str:
    words = {dict: "an object", list: "a list", str: "a text", int: "a number", float: "a number"}
    return "nothing" if value is None else words.get(type(value), "true or false")


def clean(text: str) -> str:
    """The text without lone surrogates, which JSON can hold and no output can encode."""
    return text.encode("utf-8", "replace").decode("utf-8")


def plain_text(value: object) -> str:
    """A text or a number on one line; "" for anything else."""
    long = isinstance(value, int) and value.bit_length() > 64
    plain = isinstance(value, str | int | float) and not isinstance(value, bool) and not long
    return " ".join(clean(str(value)).split()) if plain else ""


class Samples:
    def __init__(self, root: Root) -> None:
        self.root = root
        self.found: dict[str, Sample] = {}
        self._clips: list[str] = []

    def unused(self, wanted: str | None, number: int, problems: list[str], called: str) -> str:
        """The record's own id if it has one that is free, else one made from its number."""
        if wanted is not None and wanted not in self.found:
            return wanted
        made = f"record-{number}"
        while made in self.found:
            made += "+"
        has = "no usable id" if wanted is None else f"the id {quoted(wanted)} of an earlier record"
        problems.append(f"{called} has {has} and is called {made}: give it a unique id.")
        return made

    def add(self, sample: Sample, clip: str) -> None:
        """DatasetError above MAX_RECORDS samples, of all lists of the root."""
        if len(self.found) >= MAX_RECORDS:
            raise DatasetError(
                f"{place(self.root.path)} holds more than {MAX_RECORDS:,} samples: make a folder "
                "for each part of them."
            )
        self.found[sample.id] = sample
        self._clips.append(clip)

    def add_events(
        self,
        name: str,
        sequence: str,
        paths: Sequence[Path],
        clip: str | None = None,
        problems: Iterable[str] = (),
        wrong: str = "",
        refused: str = "",
        **fields: Any,
    ) -> None:
        """Adds the sample of an event file: the first of `paths` that exists and lies inside.
        `wrong`: why the sample cannot be shown.  `refused`: why its question cannot be asked."""
        every = [*problems, *filter(None, [refused])]
        missing = {kind: refused or _EVENTS_ONLY.format(kind) for kind in ("video", "image")}
        there, events = next((path for path in paths if os.path.lexists(path)), None), None
        if not wrong and not paths:
            wrong = "The record names no event file: add it."
        elif not wrong:
            try:
                events = self.root.file(there or paths[0])
            except MediaError as error:
                wrong = str(error)
        if wrong:
            every.append(wrong)
        if wrong or refused:
            missing["events"] = refused or wrong
        if clip is None:
            clip = self.root.short_name(there) if there else name
        fields |= {"events": events, "missing": missing, "problems": tuple(every)}
        self.add(Sample(name, sequence, **fields), clip)

    def dataset(self, file: Path, problems: Iterable[str] = ()) -> Dataset:
        samples, clips = tuple(self.found.values()), tuple(self._clips)
        return Dataset(self.root.path, samples, file, tuple(problems), clips)
