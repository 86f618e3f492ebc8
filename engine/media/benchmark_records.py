"""The records of a benchmark's lists, and its samples while they are read.

Boundary: lists of untrusted JSON in, samples and sentences out; opens no recording.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import DatasetError, MediaError
from engine.media.choices import AskedQuestion, asked_or_refused
from engine.media.dataset_files import event_sample, json_of, kind_of, unused
from engine.media.dataset_record import DatasetRecord, clean
from engine.media.event_folder import ListedSamples, short_name
from engine.media.media_files import place
from engine.media.roots import Root
from engine.plain_files import reason
from engine.quoting import listed
from engine.types import Sample

MAX_LISTS = 1_000  # JSON files of one benchmark
Where = tuple[list[Path], str]  # where a file may be, best first, or why it is nowhere
Keys = Mapping[str, tuple[str, ...]]  # what a record may call each thing; the first one counts
_RESULTS = re.compile(r"results?(_|\.)|\Abenchmark_", re.I)  # files that runs leave behind


@dataclass
class Record:
    """One record of a list, its number in the benchmark, its name ("Record 4 of a.json"), and its
    problems.  `wrong`: it is no object."""

    root: Root
    number: int
    name: str
    value: Mapping[str, Any]
    keys: Keys
    wrong: str = ""
    problems: list[str] = field(default_factory=list)

    def get(self, what: str) -> Any:
        """The value under the first key that the record has; None if it has none."""
        found = (self.value.get(key) for key in self.keys[what])
        return next((value for value in found if value is not None), None)

    def text(self, what: str) -> str:
        """A text or a number as text; "" if it is absent or of another kind."""
        value = self.get(what)
        plain = isinstance(value, str | int) and not isinstance(value, bool)
        if isinstance(value, int) and value.bit_length() > 64:
            plain = False
        return clean(str(value)).strip() if plain else ""

    def asked(self, form: str, as_text: bool) -> tuple[AskedQuestion, str]:
        """The question with its options, and the reference of a question without options."""
        question, reference = self.text("question"), ""
        if not question and "conversations" in self.value:
            value = {"conversations": with_speakers(self.value["conversations"])}
            record = DatasetRecord(value, self.number, self.root)
            question, reference = record.turns()
            self.problems += record.problems
        if (options := self.get("options")) is not None:
            where, answer = f"{self.name}: ", self.get("answer")
            return asked_or_refused(where, question, options, answer, form, as_text=as_text), ""
        refused = "" if question else f"{self.name}: it has no question: add it."
        return AskedQuestion(question, refused=refused), reference or self.text("answer")


class Samples:
    """The samples of a benchmark in order, while its lists are read."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._found: dict[str, Sample] = {}
        self._clips: list[str] = []

    @property
    def next(self) -> int:
        """The number of the next record."""
        return len(self._found) + 1

    def add(self, record: Record, name: str, sequence: str, places: Where, **fields: Any) -> None:
        # A value that is no object has this one problem only.
        problems = [] if record.wrong else record.problems
        own = unused(name or None, record.number, self._found.keys(), record.problems, record.name)
        paths, wrong = ([], record.wrong) if record.wrong else places
        fields |= {"refused": ""} if record.wrong else {}
        self._found[own] = event_sample(self._root, own, sequence, paths, problems, wrong, **fields)
        self._clips.append(_short(self._root, paths) or own)

    def listed(self, file: Path, problems: list[DatasetError]) -> ListedSamples:
        """All of them, with the problems of lists that cannot be read."""
        told = tuple(map(str, problems))
        return ListedSamples(file, tuple(self._found.values()), tuple(self._clips), told)


def json_in(root: Root, file: Path) -> Any:
    """The value of a list, unless it is a link out of the folder."""
    try:
        return json_of(root.file(file))
    except MediaError as error:
        raise DatasetError(str(error)) from error


def with_speakers(turns: Any) -> Any:
    """EventBench's turns have only "value": they alternate between human and gpt."""
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
        return turns
    if any("from" in turn for turn in turns):
        return turns
    return [{**turn, "from": ("human", "gpt")[at % 2]} for at, turn in enumerate(turns)]


def made(root: Root, number: int, name: str, value: Any, keys: Keys) -> Record:
    if isinstance(value, dict):
        return Record(root, number, name, value, keys)
    wrong = f"{name} is {kind_of(value)} instead of an object: remove it."
    return Record(root, number, name, {}, keys, wrong)


def json_files(folder: Path) -> list[Path]:
    """The JSON files of a folder in order, without results; none if there is no such folder."""
    return [
        path
        for path in _inside(folder)
        if path.suffix.lower() == ".json" and not _RESULTS.search(path.name) and path.is_file()
    ][:MAX_LISTS]


def folders(folder: Path) -> list[Path]:
    return [path for path in _inside(folder) if path.is_dir() and not path.is_symlink()][:MAX_LISTS]


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise DatasetError(
            f"{place(folder)} cannot be listed ({reason(error)}): check its rights."
        ) from error


def kind_or_keys(value: Any) -> str:
    """The keys of an object, or of the first record of a list, in words."""
    first = value[0] if isinstance(value, list) and value else value
    if isinstance(first, dict):
        return f"the keys {listed(map(str, first))}"
    return kind_of(first)


def _short(root: Root, paths: list[Path]) -> str:
    path = next((path for path in paths if root.has(path)), None)
    return short_name(root, path) if path else ""
