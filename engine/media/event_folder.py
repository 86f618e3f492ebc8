"""A folder of event files as a dataset: one sample per file, or one per line of windows.csv.

windows.csv lies in the root and has the columns file, start, length (times with units, as in 1.25s
or 50ms) or file, start_us, length_us; and, where wanted, id, question, reference, choices (joined
by |), choice_form, answer and task.  A bad line is a problem of that line only.

Boundary: names and the CSV; the files are recognised by their endings and not opened.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import BadInput, DatasetError, MediaError
from engine.media.choices import AskedQuestion, asked_or_refused
from engine.media.dataset_files import MAX_RECORDS, event_sample, text_of, unused
from engine.media.dataset_record import clean
from engine.media.kinds import EVENT_SUFFIXES
from engine.media.media_files import by_number, place
from engine.media.roots import Root
from engine.media_options import Window, microseconds
from engine.plain_files import reason
from engine.prompts import LETTERS
from engine.quoting import listed, quoted
from engine.types import Sample

WINDOWS = "windows.csv"
MAX_DEPTH = 8
MAX_FILES = 100_000  # of events
MAX_ENTRIES = 1_000_000  # of all files and folders
_COLUMNS = (
    *("file", "start", "length", "start_us", "length_us"),
    *("id", "question", "reference", "choices", "choice_form", "answer", "task"),
)
_JOIN = "|"
_TEXTS = (".csv", ".txt")  # recordings only where no other event files are
_ENDING = re.compile(r"(?<=[^/])\.[^./]+\Z")
_NO_RECORDING = re.compile(r"rectify_map\.(h5|hdf5)|(readme|licen[sc]e|requirements).*\.txt", re.I)


@dataclass(frozen=True)
class ListedSamples:
    """The samples of a layout; clips[i] is the short name of the file of samples[i]."""

    file: Path
    samples: tuple[Sample, ...]
    clips: tuple[str, ...]
    problems: tuple[str, ...] = ()


def has_windows(root: Root) -> bool:
    return root.has(root.path / WINDOWS)


def read(root: Root) -> ListedSamples | None:
    """The samples of windows.csv, or of all event files; None if there is no event file."""
    if has_windows(root):
        return _read_windows(root)
    files = event_files(root)
    if not files:
        return None
    names = _names(root, files)
    samples = tuple(
        event_sample(root, name, sequence(root, path), [path])
        for name, path in zip(names, files, strict=True)
    )
    return ListedSamples(root.path, samples, tuple(names))


def event_files(root: Root, endings: tuple[str, ...] = EVENT_SUFFIXES) -> list[Path]:
    """The event files below the root, sorted by folder and number; DatasetError above the limits.

    Files whose names begin with a dot are left out, and linked folders are not followed.
    """
    found = [path for path in _walk(root, endings) if not _NO_RECORDING.fullmatch(path.name)]
    binary = [path for path in found if path.suffix.lower() not in _TEXTS]
    return sorted(binary or found, key=lambda path: (path.parent, by_number(path)))


def _walk(root: Root, endings: tuple[str, ...]) -> Iterator[Path]:
    """Every file below the root with one of these endings, in no order."""
    waiting, entries, files = [(root.path, 0)], 0, 0
    while waiting:
        folder, depth = waiting.pop()
        for entry in _entries(folder):
            entries += 1
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                if depth < MAX_DEPTH:
                    waiting.append((folder / entry.name, depth + 1))
            elif entry.name.lower().endswith(endings):
                files += 1
                yield folder / entry.name
            if entries > MAX_ENTRIES or files > MAX_FILES:
                raise DatasetError(
                    f"{place(root.path)} holds more than {MAX_FILES:,} event files or "
                    f"{MAX_ENTRIES:,} files: give a folder below it."
                )


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError as error:
        raise DatasetError(
            f"{place(folder)} cannot be listed ({reason(error)}): check its rights."
        ) from error


def _names(root: Root, files: list[Path]) -> list[str]:
    """The path below the root without its ending; with it where two files differ only in it."""
    short = [short_name(root, path) for path in files]
    counts = Counter(short)
    return [
        f"{name}{path.suffix}" if counts[name] > 1 else name
        for name, path in zip(short, files, strict=True)
    ]


def short_name(root: Root, path: Path) -> str:
    """The path below the root without its ending."""
    return clean(_ENDING.sub("", path.relative_to(root.path).as_posix()))


def sequence(root: Root, path: Path) -> str:
    """The folder of a file below the root; the root's own name for the root itself."""
    name = path.relative_to(root.path).as_posix()
    return clean(name.rpartition("/")[0] or root.path.name)


def _read_windows(root: Root) -> ListedSamples:
    file = root.path / WINDOWS
    _refuse_link(root, file)
    samples: dict[str, Sample] = {}
    clips, made = [], Counter[str]()
    for line, row in _rows(file):
        read = _Line(root, line, row)
        sample = read.sample(samples, made)
        samples[sample.id] = sample
        clips.append(read.clip)
    if not samples:
        raise DatasetError(f"{place(file)} has no line below its header: add one per sample.")
    return ListedSamples(file, tuple(samples.values()), tuple(clips))


def _refuse_link(root: Root, file: Path) -> None:
    try:
        if file.is_symlink():
            root.file(file)
    except MediaError as error:
        raise DatasetError(str(error)) from error


def _rows(file: Path) -> Iterator[tuple[int, dict[Any, Any]]]:
    """(line number, column -> text) of each line that is not empty."""
    reader = csv.DictReader(io.StringIO(text_of(file), newline=""), strict=True)
    try:
        names = [(name or "").strip().lower() for name in reader.fieldnames or ()]
        _check_columns(file, names)
        reader.fieldnames = names
        for count, row in enumerate(reader, start=1):
            if count > MAX_RECORDS:
                raise DatasetError(
                    f"{place(file)} has more than {MAX_RECORDS:,} lines: split the folder."
                )
            yield reader.line_num, row
    except csv.Error as error:
        raise DatasetError(
            f"{place(file)} is not readable as CSV ({_lines(reader)}: {reason(error)}): "
            "save it again."
        ) from error


def _lines(reader: csv.DictReader[str]) -> str:
    """The lines of the row that cannot be read: an open quote takes all that follow."""
    first, last = reader.line_num + 1, reader.reader.line_num
    return f"lines {first:,} to {last:,}" if first < last else f"line {last:,}"


def _check_columns(file: Path, names: list[str]) -> None:
    unknown = [name for name in names if name not in _COLUMNS]
    twice = len(set(names)) < len(names)
    if "file" in names and not unknown and not twice:
        return
    what = "names a column twice" if twice else "has no column file"
    what = f"has the unknown columns {listed(unknown)}" if unknown else what
    raise DatasetError(f"{place(file)} {what}: use the columns {', '.join(_COLUMNS)}.")


@dataclass
class _Line:
    """One line of windows.csv and its problems."""

    root: Root
    number: int
    row: Mapping[Any, Any]
    clip: str = ""
    problems: list[str] = field(default_factory=list)

    def sample(self, used: Mapping[str, Sample], made: Counter[str]) -> Sample:
        paths, window, wrong = self._shown()
        question = self._asked()
        given = self._text("id") or None
        where = f"Line {self.number:,} of {WINDOWS}"
        name = unused(given, self.number, used.keys(), self.problems, where) if given else ""
        return event_sample(
            self.root,
            name or self._own_name(window, used, made),
            sequence(self.root, paths[0]) if paths else "",
            paths,
            self.problems,
            wrong,
            window=window,
            reference=self._text("reference"),
            task=self._text("task"),
            **vars(question),
        )

    def _shown(self) -> tuple[list[Path], Window | None, str]:
        """The file and the window, or why they cannot be shown."""
        try:
            if None in self.row:
                raise DatasetError("it has more fields than the header: correct it.")
            path = self.root.path_of(".", self._text("file"))
            self.clip = short_name(self.root, path)
            return [path], self._window(), ""
        except (BadInput, DatasetError, MediaError) as error:
            return [], None, f"Line {self.number:,} of {WINDOWS}: {error}"

    def _window(self) -> Window | None:
        """From the columns with units or from those in microseconds; None if all are empty."""
        start, length = self._time("start"), self._time("length")
        if length is None:
            if start is not None:
                raise DatasetError("it has a start and no length: add it.")
            return None
        return Window(start or 0, length)

    def _time(self, name: str) -> int | None:
        units, plain = self._text(name), self._text(f"{name}_us")
        if units and plain:
            raise DatasetError(f"it has both {name} and {name}_us: leave one empty.")
        if plain and not re.fullmatch(r"[0-9]{1,16}", plain):
            raise DatasetError(f"{name}_us is {quoted(plain)}: write whole microseconds.")
        return int(plain) if plain else microseconds(units) if units else None

    def _asked(self) -> AskedQuestion:
        question, choices = self._text("question"), self._text("choices")
        answer, form = self._text("answer"), self._text("choice_form") or LETTERS
        where = f"Line {self.number:,} of {WINDOWS}: "
        if choices:
            return asked_or_refused(where, question, choices.split(_JOIN), answer, form)
        if answer:
            self.problems.append(
                f"{where}it has an answer and no choices: add them, or use the column reference."
            )
        return AskedQuestion(question)

    def _text(self, name: str) -> str:
        return clean((self.row.get(name) or "").strip())

    def _own_name(
        self, window: Window | None, used: Mapping[str, Sample], made: Counter[str]
    ) -> str:
        """The file without its ending and the window; numbered from its second line on."""
        plain = self.clip or f"line-{self.number}"
        plain = f"{plain}@{window}" if window else plain
        name = plain
        while not made[plain] or name in used:
            made[plain] += 1
            name = f"{plain}#{made[plain]}" if made[plain] > 1 else plain
        return name
