"""Benchmarks of event recordings, in the layouts in which they are published.

A layout is one function here and one line in LAYOUTS.

EvQA (hylz/EvQA on Hugging Face, arXiv 2512.11510), confirmed from README.md, review_system/ and
event_vl/EvQA_reader.py of github.com/HYLZ-2019/EvQA:
    questions/{dataset}.json: {"dataset_name", "questions": [...]}; a question has question_id, qid,
    dataset_name, file_path, question, choices, answer (the text of a choice) and question_type
    h5_files/{dataset_name}/{file_path}: HDF5 with events/{xs,ys,ts,ps}
    The question is asked in the form "evqa" of engine/prompts.py.
EventBench (XduSyL/EventBench, arXiv 2511.18448), confirmed from inference_eventgpt_plus.py and the
data_processor of github.com/XduSyL/EventBench: recordings are .npz files, another ending is
replaced by .npz, and a conversation is a list of turns with "value".  The lists themselves are
given on request only, so that all keys of _EVENTBENCH are assumed.

Boundary: reads the lists and checks that the files exist; opens no recording.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import DatasetError, MediaError
from engine.media.choices import AskedQuestion, asked
from engine.media.dataset_files import MAX_RECORDS, event_sample, json_of, records_of, unused
from engine.media.dataset_record import DatasetRecord, clean
from engine.media.event_folder import ListedSamples, event_files, sequence, short_name
from engine.media.media_files import place
from engine.media.roots import Root
from engine.plain_files import reason
from engine.prompts import LETTERS
from engine.quoting import listed, quoted
from engine.types import Sample

MAX_LISTS = 1_000  # JSON files of one benchmark
_Where = tuple[list[Path], str]  # where a file may be, best first, or why it is nowhere
Keys = Mapping[str, tuple[str, ...]]  # what a record may call each thing; the first one counts
_EVQA: Keys = {
    "id": ("qid",),
    "question": ("question",),
    "options": ("choices",),
    "answer": ("answer",),
    "file": ("file_path",),
    "task": ("question_type",),
}
_EVENTBENCH: Keys = {
    "id": ("id", "qid", "question_id", "sample_id"),
    "question": ("question", "query", "instruction", "prompt"),
    "options": ("choices", "options", "candidates"),
    "answer": ("answer", "correct_answer", "ground_truth", "gt", "label"),
    "file": ("event_data", "event", "event_path", "event_file", "npz", "file_path", "file", "path"),
    "task": ("task", "task_type", "category", "question_type", "type"),
}
_LISTS = ("questions", "data", "samples", "annotations")  # where an object has its records
_BINS = ".npz"
_RESULTS = re.compile(r"results?(_|\.)|\Abenchmark_", re.I)  # files that runs leave behind


def read(root: Root) -> ListedSamples | None:
    """The samples of the first layout that the folder has; None if it has none."""
    return next((found for layout in LAYOUTS.values() if (found := layout(root))), None)


@dataclass
class _Record:
    """One record of a list, its number in the benchmark, and its problems."""

    root: Root
    number: int
    value: Mapping[str, Any]
    keys: Keys
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
            record = DatasetRecord(self.value, self.number, self.root)
            question, reference = record.turns()
            self.problems += record.problems
        if (options := self.get("options")) is None:
            return AskedQuestion(question), reference or self.text("answer")
        try:
            return asked(question, options, self.get("answer"), form, as_text=as_text), ""
        except DatasetError as error:
            self.problems.append(f"Record {self.number:,}: {error}")
            return AskedQuestion(question), ""


class _Samples:
    """The samples of a benchmark in order, while its lists are read."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._found: dict[str, Sample] = {}
        self._clips: list[str] = []

    @property
    def next(self) -> int:
        """The number of the next record."""
        return len(self._found) + 1

    def add(self, record: _Record, name: str, sequence: str, places: _Where, **fields: Any) -> None:
        own = unused(name or None, record.number, self._found.keys(), record.problems)
        paths, wrong = places
        self._found[own] = event_sample(
            self._root, own, sequence, paths, record.problems, wrong, **fields
        )
        self._clips.append(_short(self._root, paths) or own)

    def listed(self, file: Path) -> ListedSamples:
        return ListedSamples(file, tuple(self._found.values()), tuple(self._clips))


def _evqa(root: Root) -> ListedSamples | None:
    """The questions of all source datasets; the sequence of a sample is its source dataset."""
    files = _json_files(root.path / "questions")
    if not files or not (root.path / "h5_files").is_dir():
        return None
    samples = _Samples(root)
    for file in files:
        group = json_of(file)
        if not isinstance(group, dict) or "questions" not in group:
            raise DatasetError(
                f"{place(file)} has {_found(group)} and no list of questions, which EvQA's lists "
                "have: download it again."
            )
        for value in records_of(file, group["questions"]):
            _add_evqa(samples, _record(root, samples.next, value, _EVQA), group)
    return samples.listed(files[0])


def _add_evqa(samples: _Samples, record: _Record, group: Mapping[str, Any]) -> None:
    source = record.value.get("dataset_name") or group.get("dataset_name")
    source = clean(source) if isinstance(source, str) else ""
    own = record.value.get("question_id")
    name = record.text("id") or (clean(f"{source}_{own}") if isinstance(own, str | int) else "")
    try:
        path = record.root.path_of("h5_files", f"{source}/{record.text('file')}")
        places: _Where = [path], ""
    except MediaError as error:
        places = [], str(error)
    question, _ = record.asked("evqa", as_text=True)
    samples.add(record, name, source, places, task=record.text("task"), **vars(question))


def _eventbench(root: Root) -> ListedSamples | None:
    """The records of all lists in the root and in its folders; None without .npz files."""
    bins = event_files(root, (_BINS,))
    lists = list(_lists(root)) if bins else []
    known = [one for one in lists if _fits(one[2])]
    if lists and not known:
        raise DatasetError(
            f"{place(lists[0][0])} has records with {_found(lists[0][2])}, which is no known form "
            f"of EventBench: a record needs a question ({', '.join(_EVENTBENCH['question'])}) and "
            f"a file ({', '.join(_EVENTBENCH['file'])})."
        )
    places, samples = _Places(root, bins), _Samples(root)
    for file, task, records in known:
        for value in records:
            record = _record(root, samples.next, value, _EVENTBENCH)
            found = places.of(record.get("file"), file)
            question, reference = record.asked(LETTERS, as_text=False)
            fields = {"reference": reference, "task": record.text("task") or task}
            name = record.text("id") or f"record-{record.number}"
            samples.add(record, name, _folder(root, found[0]), found, **fields, **vars(question))
    return samples.listed(known[0][0]) if known else None


class _Places:
    """Finds the recordings that records name: the layout of the folders is not known."""

    def __init__(self, root: Root, bins: list[Path]) -> None:
        self._root = root
        self._by_name: dict[str, Path | None] = {}
        for path in bins:  # None: two files have this name
            self._by_name[path.name] = None if path.name in self._by_name else path

    def of(self, value: object, file: Path) -> _Where:
        """Below the root, beside the list, or the only .npz of that name."""
        if not isinstance(value, str) or not value:
            return [], f"{quoted(value)} is not a file name: correct the record."
        bins = re.sub(r"\.[A-Za-z0-9]{1,5}\Z", "", value) + _BINS
        own = file.parent.relative_to(self._root.path).as_posix()
        paths, why = list[Path](), ""
        for folder, name in ((f, n) for n in (value, bins) for f in (".", own)):
            try:
                path = self._root.path_of(folder, name)
            except MediaError as error:
                why = why or str(error)
                continue
            if path.suffix:
                paths.append(path)
        only = self._by_name.get(bins.replace("\\", "/").split("/")[-1])
        paths += [only] if only else []
        return paths, "" if paths else why


def _record(root: Root, number: int, value: Any, keys: Keys) -> _Record:
    if isinstance(value, dict):
        return _Record(root, number, value, keys)
    problem = f"Record {number:,} is {quoted(value)} instead of an object: remove it."
    return _Record(root, number, {}, keys, [problem])


def _lists(root: Root) -> Iterator[tuple[Path, str, list[Any]]]:
    """(file, task, records) of each list of objects in JSON files of the root and its folders."""
    folders = [root.path, *_folders(root.path)]
    count = 0
    for file in (file for folder in folders for file in _json_files(folder)):
        value = json_of(file)
        named = {"": value} if isinstance(value, list) else value
        for key, records in named.items() if isinstance(named, dict) else ():
            if isinstance(records, list) and records and isinstance(records[0], dict):
                count += len(records)
                if count > MAX_RECORDS:
                    raise DatasetError(
                        f"{place(root.path)} has over {MAX_RECORDS:,} records: split it."
                    )
                yield file, "" if key in _LISTS else clean(key), records


def _fits(records: list[Any]) -> bool:
    first = records[0]
    has = {what: any(key in first for key in _EVENTBENCH[what]) for what in ("question", "file")}
    return has["file"] and (has["question"] or "conversations" in first)


def _json_files(folder: Path) -> list[Path]:
    """The JSON files of a folder in order, without results; none if there is no such folder."""
    return [
        path
        for path in _inside(folder)
        if path.suffix.lower() == ".json" and not _RESULTS.search(path.name) and path.is_file()
    ][:MAX_LISTS]


def _folders(folder: Path) -> list[Path]:
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


def _found(value: Any) -> str:
    """The keys of an object, or of the first record of a list, in words."""
    first = value[0] if isinstance(value, list) and value else value
    if isinstance(first, dict):
        return f"the keys {listed(map(str, first))}"
    return f"a {type(first).__name__}"


def _folder(root: Root, paths: list[Path]) -> str:
    path = next((path for path in paths if root.has(path)), paths[0] if paths else None)
    return sequence(root, path) if path else ""


def _short(root: Root, paths: list[Path]) -> str:
    path = next((path for path in paths if root.has(path)), None)
    return short_name(root, path) if path else ""


LAYOUTS: Mapping[str, Callable[[Root], ListedSamples | None]] = {
    "EvQA": _evqa,
    "EventBench": _eventbench,
}
