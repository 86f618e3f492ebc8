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
from pathlib import Path
from typing import Any

from engine.errors import DatasetError, MediaError
from engine.media.benchmark_records import (
    Keys,
    Record,
    Samples,
    Where,
    folders,
    json_files,
    json_in,
    kind_or_keys,
    made,
)
from engine.media.dataset_files import MAX_RECORDS, records_of
from engine.media.dataset_record import clean
from engine.media.event_folder import ListedSamples, event_files, sequence
from engine.media.media_files import place
from engine.media.roots import Root
from engine.prompts import LETTERS
from engine.quoting import quoted, shown

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


def read(root: Root) -> ListedSamples | None:
    """The samples of the first layout that the folder has; None if it has none."""
    return next((found for layout in LAYOUTS.values() if (found := layout(root))), None)


def _evqa(root: Root) -> ListedSamples | None:
    """The questions of all source datasets; the sequence of a sample is its source dataset."""
    files = json_files(root.path / "questions")
    if not files or not (root.path / "h5_files").is_dir():
        return None
    samples, problems, good = Samples(root), list[DatasetError](), list[Path]()
    for file in files:
        try:
            group, records = _evqa_list(root, file)
        except DatasetError as error:
            problems.append(error)
            continue
        good.append(file)
        of = f" of {shown(file.name)}" if len(files) > 1 else ""
        for count, value in enumerate(records, start=1):
            name = f"Record {count:,}{of}"
            _add_evqa(samples, made(root, samples.next, name, value, _EVQA), group)
    if not good:
        raise problems[0]
    return samples.listed(good[0], problems)


def _evqa_list(root: Root, file: Path) -> tuple[Mapping[str, Any], list[Any]]:
    group = json_in(root, file)
    if not isinstance(group, dict) or "questions" not in group:
        raise DatasetError(
            f"{place(file)} has {kind_or_keys(group)} and no list of questions, which EvQA's lists "
            "have: download it again."
        )
    return group, records_of(file, group["questions"])


def _add_evqa(samples: Samples, record: Record, group: Mapping[str, Any]) -> None:
    source = record.value.get("dataset_name") or group.get("dataset_name")
    source = clean(source) if isinstance(source, str) else ""
    own = record.value.get("question_id")
    name = record.text("id") or (clean(f"{source}_{own}") if isinstance(own, str | int) else "")
    places = _evqa_places(record, source)
    question, _ = record.asked("evqa", as_text=True)
    samples.add(record, name, source, places, task=record.text("task"), **vars(question))


def _evqa_places(record: Record, source: str) -> Where:
    if not (name := record.text("file")):
        return [], f"{record.name}: file_path is missing: add it."
    try:
        return [record.root.path_of("h5_files", f"{source}/{name}")], ""
    except MediaError as error:
        return [], str(error)


def _eventbench(root: Root) -> ListedSamples | None:
    """The records of all lists in the root and in its folders; None without .npz files."""
    bins = event_files(root, (_BINS,))
    problems = list[DatasetError]()
    lists = list(_lists(root, problems)) if bins else []
    known = [one for one in lists if _fits(one[2])]
    if problems and not lists:
        raise problems[0]
    if lists and not known:
        raise _no_form(lists[0][0], lists[0][2])
    problems += [_no_form(file, records) for file, _, records in lists if not _fits(records)]
    places, samples = _Places(root, bins), Samples(root)
    for file, task, records in known:
        of = _of(root, file, task) if len(known) > 1 else ""
        for count, value in enumerate(records, start=1):
            name = f"Record {count:,}{of}"
            record = made(root, samples.next, name, value, _EVENTBENCH)
            found = places.of(record.get("file"), file)
            question, reference = record.asked(LETTERS, as_text=False)
            fields = {"reference": reference, "task": record.text("task") or task}
            name = record.text("id") or f"record-{record.number}"
            samples.add(record, name, _folder(root, found[0]), found, **fields, **vars(question))
    return samples.listed(known[0][0], problems) if known else None


def _no_form(file: Path, records: list[Any]) -> DatasetError:
    return DatasetError(
        f"{place(file)} has records with {kind_or_keys(records)}, which is no known form of "
        f"EventBench: a record needs a question ({', '.join(_EVENTBENCH['question'])}) and a file "
        f"({', '.join(_EVENTBENCH['file'])})."
    )


def _of(root: Root, file: Path, task: str) -> str:
    inside = shown(file.relative_to(root.path).as_posix())
    return f" of {quoted(task)} in {inside}" if task else f" of {inside}"


class _Places:
    """Finds the recordings that records name: the layout of the folders is not known."""

    def __init__(self, root: Root, bins: list[Path]) -> None:
        self._root = root
        self._by_name: dict[str, Path | None] = {}
        for path in bins:  # None: two files have this name
            self._by_name[path.name] = None if path.name in self._by_name else path

    def of(self, value: object, file: Path) -> Where:
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


def _lists(root: Root, problems: list[DatasetError]) -> Iterator[tuple[Path, str, list[Any]]]:
    """(file, task, records) of each list of objects in JSON files of the root and its folders.

    A file that cannot be read is added to `problems`.
    """
    places = [root.path, *folders(root.path)]
    count = 0
    for file in (file for folder in places for file in json_files(folder)):
        try:
            value = json_in(root, file)
        except DatasetError as error:
            problems.append(error)
            continue
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


def _folder(root: Root, paths: list[Path]) -> str:
    path = next((path for path in paths if root.has(path)), paths[0] if paths else None)
    return sequence(root, path) if path else ""


LAYOUTS: Mapping[str, Callable[[Root], ListedSamples | None]] = {
    "EvQA": _evqa,
    "EventBench": _eventbench,
}
