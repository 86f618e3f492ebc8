"""A folder of event files as a dataset: one sample per file, or one per line of windows.csv.

windows.csv lies in the root and has the columns file, start, length (times with units, as in 1.25s
or 50ms) or file, start_us, length_us; and, where wanted, id, question, reference, choices (joined
by |), choice_form, answer and task.  A bad line is a problem of that line only.  Event files are
recognised by their endings and not opened.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.errors import BadInput, DatasetError, MediaError
from engine.media.dataset_files import Dataset, Root, Samples, clean, text_of
from engine.media.dataset_record import AskedQuestion, asked
from engine.media.media_files import EVENT_SUFFIXES, by_number, place
from engine.media_options import Window, microseconds
from engine.plain_files import reason
from engine.prompts import LETTERS
from engine.quoting import listed, quoted

WINDOWS = "windows.csv"
_COLUMNS = (
    *("file", "start", "length", "start_us", "length_us"),
    *("id", "question", "reference", "choices", "choice_form", "answer", "task"),
)
_JOIN = "|"
_TEXTS = (".csv", ".txt")  # recordings only where no other event files are
_NO_RECORDING = re.compile(r"rectify_map\.(h5|hdf5)|(readme|licen[sc]e|requirements).*\.txt", re.I)


def recordings(root: Root) -> Dataset | None:
    files, samples = event_files(root), Samples(root)
    counts = Counter(map(root.short_name, files))
    for path in files:
        # With the ending where two files differ only in it.
        short = root.short_name(path)
        name = f"{short}{path.suffix}" if counts[short] > 1 else short
        samples.add_events(name, root.sequence(path), [path], name)
    return samples.dataset(root.path) if files else None


def event_files(root: Root) -> list[Path]:
    found = [path for path in root.walk(EVENT_SUFFIXES) if not _NO_RECORDING.fullmatch(path.name)]
    binary = [path for path in found if path.suffix.lower() not in _TEXTS]
    return sorted(binary or found, key=lambda path: (path.parent, by_number(path)))


def windows(root: Root) -> Dataset | None:
    """The samples of windows.csv; None if there is no such file."""
    file = root.child(WINDOWS)
    if file is None:
        return None
    try:
        if file.is_symlink():
            root.file(file)
    except MediaError as error:
        raise DatasetError(str(error)) from error
    samples, made = Samples(root), Counter[str]()
    for number, row in _rows(file):
        where, problems = f"Line {number:,} of {WINDOWS}", list[str]()
        text = {name: clean((row.get(name) or "").strip()) for name in _COLUMNS}
        paths, window, wrong, clip = list[Path](), None, "", ""
        try:
            if None in row:
                raise DatasetError("it has more fields than the header: correct it.")
            path = root.path_of(".", text["file"])
            clip = root.short_name(path)
            window = _window(text)
            paths = [path]
        except BadInput as error:  # the others are too
            wrong = f"{where}: {error}"
        question = AskedQuestion(text["question"])
        if text["choices"]:
            options, form = text["choices"].split(_JOIN), text["choice_form"] or LETTERS
            question = asked(question.question, options, text["answer"], form, where=f"{where}: ")
        elif text["answer"]:
            problems.append(
                f"{where}: it has an answer and no choices: add them, or use the column reference."
            )
        name = text["id"] and samples.unused(text["id"], number, problems, where)
        if not name:  # the file and the window; numbered from its second line on
            plain = clip or f"line-{number}"
            name = plain = f"{plain}@{window}" if window else plain
            while not made[plain] or name in samples.found:
                made[plain] += 1
                name = f"{plain}#{made[plain]}" if made[plain] > 1 else plain
        samples.add_events(
            name,
            root.sequence(paths[0]) if paths else "",
            paths,
            clip,
            problems,
            wrong,
            window=window,
            reference=text["reference"],
            task=text["task"],
            **vars(question),
        )
    if not samples.found:
        raise DatasetError(f"{place(file)} has no line below its header: add one per sample.")
    return samples.dataset(file)


def _rows(file: Path) -> Iterator[tuple[int, dict[Any, Any]]]:
    """(line number, column -> text) of each line that is not empty."""
    reader = csv.DictReader(io.StringIO(text_of(file), newline=""), strict=True)
    try:
        names = [(name or "").strip().lower() for name in reader.fieldnames or ()]
        unknown = [name for name in names if name not in _COLUMNS]
        if unknown or "file" not in names or len(set(names)) < len(names):
            wrong = f"has the unknown columns {listed(unknown)}"
            wrong = wrong if unknown else "has no column file, or names one twice"
            raise DatasetError(f"{place(file)} {wrong}: use the columns {', '.join(_COLUMNS)}.")
        reader.fieldnames = names
        yield from ((reader.line_num, row) for row in reader)
    except csv.Error as error:  # an open quote takes all lines that follow
        lines = f"lines {reader.line_num + 1:,} to {reader.reader.line_num:,}"
        raise DatasetError(
            f"{place(file)} is not readable as CSV ({lines}: {reason(error)}): save it again."
        ) from error


def _window(text: Mapping[str, str]) -> Window | None:
    """From the columns with units or from those in microseconds; None if all are empty."""
    times = list[int | None]()
    for name in ("start", "length"):
        units, plain = text[name], text[f"{name}_us"]
        if (units and plain) or not re.fullmatch(r"[0-9]{0,16}", plain):
            raise DatasetError(
                f"{name}_us is {quoted(plain)}: write whole microseconds, and leave {name} empty."
            )
        times.append(int(plain) if plain else microseconds(units) if units else None)
    start, length = times
    if start is not None and length is None:
        raise DatasetError("it has a start and no length: add it.")
    return None if length is None else Window(start or 0, length)
