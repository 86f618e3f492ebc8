"""Reads a dataset root into samples; a bad record becomes a sample that states the problem.

Layouts: EventGPT_Instruction_Subset.json (or _Subset_<sequence>.json) beside the folders event_npy,
event_image, video and mp4; otherwise one of benchmark_layouts.py; otherwise a folder of event files
(event_folder.py).  Files are checked to exist, and decoded when a sample is loaded.
"""

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

from engine.errors import DatasetError
from engine.media import benchmark_layouts, event_folder
from engine.media.dataset_files import Dataset as Dataset
from engine.media.dataset_files import Root, Samples, entries, json_of, records_of
from engine.media.dataset_record import DatasetRecord
from engine.media.media_files import place
from engine.plain_files import reason
from engine.quoting import quoted, shown
from engine.types import MediaKind, Sample

STEM = "EventGPT_Instruction_Subset"
MIN_PREFIX = 4


def read(root: Path) -> Dataset:
    """All records below a root; DatasetError if there are none."""
    folder = _folder(root)
    inside, names = Root(folder), sorted(entry.name for entry in entries(folder))
    lists = [name for name in names if re.fullmatch(rf"{STEM}(_.+)?\.json", name, re.I)]
    # Result files may lie in the same folder.
    files = [folder / name for name in lists if not re.search(r"_results?(_|\.)", name, re.I)]
    if not files:
        found = (
            event_folder.windows(inside)
            or benchmark_layouts.read(inside)
            or event_folder.recordings(inside)
        )
        if found:
            return found
        raise DatasetError(
            f"{place(folder)} holds no {STEM}.json or {STEM}_<sequence>.json, no EvQA or "
            "EventBench, and no event files: give the folder that does."
        )
    samples, problems = Samples(inside), list[str]()
    for file in files:
        earlier, repeated = set(samples.found), list[str]()
        for number, value in enumerate(records_of(file, json_of(file)), start=1):
            record = DatasetRecord(value, number, inside)
            if record.id in earlier:
                repeated.append(str(record.id))
                continue
            name = samples.unused(record.id, number, record.problems, f"Record {number:,}")
            samples.add(record.sample(name), record.clip)
        if repeated:
            problems.append(
                f"{shown(file.name)} repeats {len(repeated):,} ids of an earlier file, first "
                f"{quoted(repeated[0])}: the earlier records are kept."
            )
    return samples.dataset(files[0], problems)


def find(dataset: Dataset, wanted: str) -> Sample:
    """The sample with this id or clip name "seq/000000", or the only one that starts with it."""
    by_id = {sample.id: sample for sample in dataset.samples}
    if wanted in by_id:
        return by_id[wanted]
    pairs = list(zip(dataset.clips, dataset.samples, strict=False))
    found = [sample for clip, sample in pairs if clip == wanted]
    if not found and len(wanted) >= MIN_PREFIX:
        found = [sample for sample in dataset.samples if sample.id.startswith(wanted)]
        found = found or [sample for clip, sample in pairs if clip.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        some = ", ".join(shown(sample.id) for sample in found[:3])
        raise DatasetError(
            f"Sample {quoted(wanted)} means {len(found):,} samples: name one by its id, as {some}."
        )
    names = [*by_id, *dataset.clips]
    near = difflib.get_close_matches(wanted, names, n=1)
    hint = f"did you mean {quoted(near[0])}?" if near else "the command `samples` lists them."
    if 0 < len(wanted) < MIN_PREFIX and any(name.startswith(wanted) for name in names):
        hint = f"give at least {MIN_PREFIX} characters of the beginning of an id."
    raise DatasetError(f"Sample {quoted(wanted)} is not in {place(dataset.root)}: {hint}")


def find_all(dataset: Dataset, lines: Iterable[str]) -> list[str]:
    """The id of the sample that each line names; DatasetError counts the lines not found."""
    known = {sample.id for sample in dataset.samples}
    ids, absent = list[str](), list[DatasetError]()
    for name in filter(None, map(str.strip, lines)):
        try:
            ids.append(name if name in known else find(dataset, name).id)
        except DatasetError as error:
            absent.append(error)
    if absent:
        more = len(absent) - 1
        others = f"{more:,} more {'line is' if more == 1 else 'lines are'} not found either"
        raise DatasetError(f"{absent[0]}{f' ({others})' if more else ''}")
    return ids


def search(
    samples: Iterable[Sample], words: str = "", sequence: str = "", kinds: Iterable[MediaKind] = ()
) -> list[Sample]:
    """The samples with every word in their name, question or known content, of a sequence ("" for
    all) and with files for all media kinds."""
    wanted, needed, found = words.lower().split(), set(kinds), list[Sample]()
    for sample in samples:
        if (sequence and sample.sequence != sequence) or not needed.isdisjoint(sample.missing):
            continue
        known = (f"{name} {value}" for name, value in sample.truth.items())
        texts = (sample.sequence, sample.id, sample.question, sample.task, *known)
        if not wanted or all(word in "\n".join(texts).lower() for word in wanted):
            found.append(sample)
    return found


def _folder(root: Path) -> Path:
    why = "is no folder"
    try:
        path = root.expanduser()
        if path.is_dir():
            return path.resolve()
        why = why if path.exists() else "does not exist"
    except (OSError, ValueError, RuntimeError) as error:
        why = f"cannot be read ({reason(error)})"
    raise DatasetError(
        f"The dataset root {quoted(str(root))} {why}: give the folder that holds {STEM}.json, a "
        "benchmark or event files."
    )
