"""Runs as one folder that opens anywhere: from file://, without a server or a network.

    index.html       the report of the runs, and their samples; its policy lets only own files run
    bundle.js        lists, searches and shows the samples
    data/N.js        CHUNK samples with their answers, loaded when one of them is opened
    media/HASH.webp  what the models were shown, once for each content; clips as they are
    runs/NUMBER/     the files of each run, as .xz, without folders and hosts of this machine
    manifest.json    the SHA-256 of every other file

Names, questions and answers are text everywhere.  `opened()` reads such a folder as runs again;
`page()` is a bundle of one file, without clips and runs.
"""

import hashlib
import json
import lzma
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import combinations
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from engine import media, settings
from engine.analysis import agreement
from engine.analysis.results_table import labels
from engine.errors import DatasetError, MediaError, StoreError
from engine.media import thumbnails
from engine.models.families import FAMILIES
from engine.plain_files import not_written, read_json, read_limited, reason
from engine.quoting import count, quoted, shown
from engine.report import answer_part, drawers
from engine.report.document import document, title
from engine.report.explanation_part import explained
from engine.report.report_figures import Findings, samples_of
from engine.storage import new_file, run_store
from engine.storage.plan import IDS
from engine.storage.result_rows import ResultRow
from engine.storage.run_header import HEADER
from engine.storage.run_store import Run
from engine.types import Sample

MANIFEST, INDEX = "manifest.json", "index.html"
OPENED = "bundle-"  # what the folders of its runs begin with
CHUNK = 50  # samples of one file below data/
LARGEST = 1200  # pixels; the width of a sheet
INSIDE = 6  # samples of one file that have pictures; each adds some hundred kilobytes
MOST_BYTES = 2**31  # of one file that is read again
MOST_FILES = 20_000
MOST_MEMORY = 2**27  # for unpacking; what we pack needs a tenth
BLOCK = 2**20
MOST_BLOCKS = MOST_BYTES // BLOCK
PARTS = (HEADER, run_store.RESULTS, run_store.JOURNAL, run_store.SUMMARY)
_SAID = ("sample", "text", "prompt", "reference", "token_ids", "token_ms")  # of a row: as they are
# The folders of an absolute path, before its last part.
_FOLDERS = re.compile(r"(?<![\w.:/\\])(?:/|[A-Za-z]:\\)(?:[^\s/\\'\":,;]+[/\\])+")


def write(runs: Sequence[Run], folder: Path, largest: int = LARGEST) -> Path:
    """Writes a new folder; `largest`: the longer side of pictures in pixels, 0 for no media.  The
    folder is complete or empty: StoreError if it holds something or cannot be written."""
    new_file.make_folder(folder)
    try:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".bundle-") as place:
            made = _Bundle(runs, Path(place), largest)
            made.write()
            folder.rmdir()
            made.folder.rename(folder)
    except OSError as error:
        raise not_written(folder, error, "name another folder") from error
    return folder


def zipped(runs: Sequence[Run]) -> bytes:
    """The same as a ZIP of one folder."""
    with tempfile.TemporaryDirectory(prefix="stagescope-bundle-") as place:
        write(runs, Path(place, "out", "stagescope"))
        made = shutil.make_archive(f"{place}/bundle", "zip", f"{place}/out")
        return Path(made).read_bytes()


def page(runs: Sequence[Run]) -> str:
    """The same as one file, with the pictures of the first INSIDE samples and without clips."""
    with tempfile.TemporaryDirectory(prefix="stagescope-bundle-") as place:
        made = _Bundle(runs, Path(place), LARGEST // 2, one_file=True)
        return answer_part.one_file(made.page(answer_part.script()), list(made.scripts()))


def unzipped(data: BinaryIO, runs: Path) -> list[str]:
    """Puts the runs of a zipped bundle into a folder of runs; their names there."""
    with _unzipped(data) as folder, _opened(folder, "the ZIP") as again:
        mark, names = _digest(folder / MANIFEST)[:8], list[str]()
        for run in again:
            names.append(f"{OPENED}{mark}-{run.folder.name}")
            shutil.copytree(run.folder, runs / names[-1], dirs_exist_ok=True)
    return names


@contextmanager
def _unzipped(data: BinaryIO | Path) -> Iterator[Path]:
    """The folder of a zipped bundle, while the context lasts."""
    with tempfile.TemporaryDirectory(prefix="stagescope-bundle-") as place:
        try:
            with zipfile.ZipFile(data) as packed:
                inside = packed.infolist()
                if len(inside) > MOST_FILES or sum(one.file_size for one in inside) > MOST_BYTES:
                    raise StoreError(
                        f"The ZIP has more than a bundle may have: {MOST_FILES:,} files, 2 GB."
                    )
                if any(one.flag_bits & 1 for one in inside):
                    raise StoreError("The ZIP is encrypted: make it without a password.")
                packed.extractall(place)  # no name leads out of the folder
        except (OSError, EOFError, ValueError, NotImplementedError, RuntimeError, zlib.error,
                zipfile.BadZipFile) as error:  # fmt: skip
            raise StoreError(
                f"The ZIP cannot be unpacked ({reason(error)}): give one that `bundle` wrote."
            ) from error
        found = [path.parent for path in Path(place).rglob(MANIFEST)]
        if len(found) != 1:
            raise StoreError(f"The ZIP has {count(len(found), 'file')} named {MANIFEST}, not one.")
        yield found[0]


class _Bundle:
    """`place` gets the folder "bundle", and the runs without what belongs to this machine, from
    which the rest is made.  `one_file`: pictures are inside the data, those of some samples."""

    def __init__(
        self, runs: Sequence[Run], place: Path, largest: int, one_file: bool = False
    ) -> None:
        self.folder, self.largest, self.one_file = place / "bundle", largest, one_file
        self.given, self.manifest = runs, dict[str, str]()
        self.places, self.hosts = _places(runs), _hosts(runs)
        numbered = enumerate(runs, 1)  # an id may be any text, and the same twice
        self.found = Findings([self._run(run, f"{n:03}", place) for n, run in numbered])
        self.runs, self.order = self.found.runs, labels(self.found.table)
        self.names = list(dict.fromkeys(self.found.table["sample"]))

    def write(self) -> None:
        for number, part in self.scripts():
            name = "index" if number < 0 else number
            self._put(f"data/{name}.js", f'stagescope({number},"{answer_part.packed(part)}");\n')
        self._put("bundle.js", answer_part.script())
        self._put(INDEX, self.page())
        files = dict(sorted(self.manifest.items()))
        content = _Manifest("stagescope-bundle", 1, files)
        (self.folder / MANIFEST).write_text(drawers.as_json(content), encoding="utf-8")

    def scripts(self) -> Iterator[tuple[int, Any]]:
        """(number, CHUNK samples), then (-1, the list of all)."""
        samples, index = dict[str, Sample](), []
        with suppress(DatasetError):  # it has gone or has changed
            samples = {one.id: one for one in samples_of(self.given[0].header)}
        for start in range(0, len(self.names), CHUNK):
            some = self.names[start : start + CHUNK]
            part = [self._sample(name, samples.get(name)) for name in some]
            yield start // CHUNK, part
            index += [[one[key] for key in ("id", "sequence", "question", "alike", "failed")]
                      for one in part]  # fmt: skip
        yield -1, {"chunk": CHUNK, "samples": index}

    def page(self, script: str = "") -> str:
        blocks = [*document(self.found)]
        for run in self.given:
            blocks += explained(run, len(self.runs) > 1)
        whole = drawers.html(title(self.found), blocks, len(self.names), script)
        # A picture's data is no sentence.
        parts = re.split(r"(data:[\w/]+;base64,[\w+/=]+)", whole)
        return "".join(part if n % 2 else self._plain(part) for n, part in enumerate(parts))

    def _put(self, name: str, data: str | bytes) -> None:
        data = data.encode(errors="replace") if isinstance(data, str) else data
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self.manifest[name] = hashlib.sha256(data).hexdigest()

    def _plain(self, text: str) -> str:
        for place in self.places:
            text = text.replace(f"{place}{os.sep}", "")
            name = PurePath(place).name.replace("\\", r"\\")
            text = re.sub(rf"{re.escape(place)}(?![\w.-])", name, text)
        return text

    def _line(self, line: str) -> str:
        """A line of a run's file that holds no answer."""
        return self.hosts.sub("host", self._plain(line))

    def _run(self, run: Run, number: str, place: Path) -> Run:
        clean = place / "runs" / number
        clean.mkdir(parents=True)
        for name in PARTS:
            if not (run.folder / name).exists():
                continue
            with (run.folder / name).open(encoding="utf-8", errors="replace", newline="\n") as file:
                text = "".join(map(self._row if name == run_store.RESULTS else self._line, file))
            (clean / name).write_text(text, encoding="utf-8", newline="\n")
            self._put(f"runs/{number}/{name}.xz", lzma.compress(text.encode()))
        self._put(f"runs/{number}/{IDS}", "\n".join(run.header.plan.samples) + "\n")
        return run_store.read(clean)

    def _row(self, line: str) -> str:
        """A row without hosts, and without folders in what is said of it; its answer stays."""
        try:
            value = json.loads(line)
            said = {key: value.pop(key) for key in _SAID if key in value}
        except (ValueError, AttributeError):
            return self._said(self._line(line)) + "\n"  # nobody can read it here either
        value = json.loads(self._line(json.dumps(value, ensure_ascii=False)))
        if isinstance(value.get("where"), dict):
            value["where"] |= {"host": None, "address": None}
        if isinstance(value.get("error"), str):
            value["error"] = self._said(value["error"])
        if isinstance(value.get("notes"), list):
            value["notes"] = [self._said(str(one)) for one in value["notes"]]
        return json.dumps(value | said) + "\n"  # with escapes: half a character is kept as it was

    def _said(self, sentence: str) -> str:
        """A sentence of ours, which may name any folder."""
        return _FOLDERS.sub("", self._plain(sentence))

    def _sample(self, name: str, sample: Sample | None) -> dict[str, Any]:
        """One sample with the last measured answer of each label, as the browser gets it."""
        lines = self.found.table[self.found.table["sample"] == name]
        lines = lines[lines["phase"] == "measured"].drop_duplicates("label", keep="last")
        lines = lines.sort_values("label", key=lambda names: names.map(self.order.index))
        places = zip(lines["label"], lines["number"], lines["offset"], strict=True)
        rows = [(str(label), self.runs[int(n)].row(int(offset))) for label, n, offset in places]
        texts = [row.text or "" for _, row in rows if not row.error]
        shared = [agreement.word_f1(*pair) for pair in combinations(texts, 2)]
        known = [one for one in shared if one is not None]
        return {
            "id": name,
            "sequence": sample.sequence if sample else "",
            "question": next((row.prompt for _, row in rows if row.prompt), ""),
            "reference": sample.reference if sample else "",
            "alike": round(min(known), 3) if known else None,
            "failed": sum(bool(row.error) for _, row in rows),
            "media": self._media(sample, [row for _, row in rows]) if sample else [],
            "answers": answer_part.answers(rows),
        }

    def _media(self, sample: Sample, rows: Sequence[ResultRow]) -> list[list[str]]:
        """[address, words] of what each kind of model was shown, and of the clip."""
        if not self.largest or (self.one_file and sample.id not in self.names[:INSIDE]):
            return []
        how, told = self.runs[0].header.plan.media, list[list[str]]()
        usual = {name: family.kind for name, family in FAMILIES.items()}
        kinds: Iterator[Any] = (row.shows or usual.get(row.family or "") for row in rows)
        for kind in dict.fromkeys(filter(None, kinds)):
            try:
                found = media.load(sample, kind, how)
            except MediaError:
                continue  # the row says why
            sheet = thumbnails.sheet(found.images)
            sheet.thumbnail((self.largest, self.largest))
            words = f"{kind}: {self._said(found.source)}"
            told.append([self._keep(thumbnails.encode(sheet), ".webp"), words])
        if sample.mp4 is not None and not self.one_file:
            try:
                data = read_limited(sample.mp4, MOST_BYTES)
            except OSError:
                return told
            told.append([self._keep(data, ".mp4"), f"clip: {sample.mp4.name}"])
        return told

    def _keep(self, data: bytes, ending: str) -> str:
        if self.one_file:
            return f"data:image/webp;base64,{b64encode(data).decode()}"
        name = f"media/{hashlib.sha256(data).hexdigest()[:24]}{ending}"
        if name not in self.manifest:
            self._put(name, data)
        return name


def _places(runs: Sequence[Run]) -> list[str]:
    """Folders of this machine that a run may name, the longest first."""
    known = [settings.PROJECT, settings.load().runs_dir, Path.home(), Path("~")]
    for run in runs:
        known += [run.folder.absolute(), Path(run.header.dataset.root)]
        known += [Path(model.checkpoint).parent for model in run.header.models]
    known = [one for one in known if one.is_absolute() or str(one).startswith("~")]
    return sorted({str(one) for one in known if one != Path(one.anchor)},
                  key=len, reverse=True)  # fmt: skip


def _hosts(runs: Sequence[Run]) -> re.Pattern[str]:
    """The names and addresses of the machines and servers that answered."""
    names = set[str]()
    for run in runs:
        for _, row in run.results():
            server = urlsplit(str(row.environment.get("server") or "")).hostname
            place = row.where
            names |= {server or "", *((place.host or "", place.address or "") if place else ())}
    known = "|".join(map(re.escape, sorted(names - {""}, key=len, reverse=True)))
    return re.compile(rf"(?<![\w.-])(?:{known or '(?!)'})(?![\w-])")  # (?!) matches nothing


class _Manifest(Struct):
    format: Literal["stagescope-bundle"]
    version: Literal[1]
    files: dict[str, str]


def checked(folder: Path, name: str = "") -> Mapping[str, str]:
    """The manifest's files; StoreError names the files that were changed, removed or added.
    `name`: what messages call the folder."""
    name = name or shown(folder)
    path = folder / MANIFEST
    try:
        what, kind = "The manifest", _Manifest
        files = read_json(path, 2**26, what, kind, links=False, error=StoreError).files
    except StoreError as error:  # of a ZIP its folder is not the user's
        raise StoreError(str(error).replace(str(folder), name)) from error
    there = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    } - {MANIFEST}
    wrong = []
    for file in sorted(there | set(files)):
        if file not in files:
            wrong.append(f"{quoted(file)} was added")
        elif file not in there:
            wrong.append(f"{quoted(file)} is missing")
        elif _digest(folder / file) != files[file]:
            wrong.append(f"{quoted(file)} was changed")
    if wrong:
        many = f" ({count(len(wrong), 'file')} in all)" if len(wrong) > 1 else ""
        raise StoreError(f"{name} is not as it was written: {wrong[0]}{many}.")
    return files


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(read_limited(path, MOST_BYTES, links=False)).hexdigest()
    except OSError as error:
        return reason(error)


@contextmanager
def opened(bundle: Path) -> Iterator[list[Run]]:
    """The runs of a folder or ZIP that is as it was written, while the context lasts."""
    with ExitStack() as stack:
        folder = stack.enter_context(_unzipped(bundle)) if bundle.is_file() else bundle
        yield stack.enter_context(_opened(folder, shown(bundle)))


@contextmanager
def _opened(folder: Path, called: str) -> Iterator[list[Run]]:
    files = [name for name in checked(folder, called) if name.startswith("runs/")]
    files = [name for name in files if PurePath(name).name != IDS]
    if not files:
        raise StoreError(f"{called} holds no run: make it again.")
    with tempfile.TemporaryDirectory(prefix="stagescope-bundle-") as place:
        for name in files:
            parts = PurePath(name).parts
            if len(parts) != 3 or ".." in parts or not name.endswith(".xz"):
                raise StoreError(f"{called} names {quoted(name)}, which no bundle has.")
            target = Path(place, *parts).with_suffix("")
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                unpacker = lzma.LZMADecompressor(memlimit=MOST_MEMORY)
                with (folder / name).open("rb") as packed, target.open("wb") as out:
                    for _ in range(MOST_BLOCKS):
                        piece = packed.read(BLOCK) if unpacker.needs_input else b""
                        if unpacker.needs_input and not piece:
                            raise EOFError("it is cut short")
                        out.write(unpacker.decompress(piece, BLOCK))
                        if unpacker.eof:
                            break
                    else:
                        raise StoreError(
                            f"{quoted(name)} unpacks to more than 2 GB: use a smaller run."
                        )
            except (OSError, EOFError, lzma.LZMAError) as error:
                raise StoreError(f"{quoted(name)} cannot be read: {reason(error)}.") from error
        try:
            runs = [run_store.read(path) for path in sorted(Path(place, "runs").iterdir())]
        except StoreError as error:
            raise StoreError(str(error).replace(place, called)) from error
        yield runs
