"""Reads .npz archives of events: EventBench's time bins, and plain arrays x, y, t and p.

Format: a ZIP archive with one .npy file per array (numpy.org/doc/stable/reference/generated/
numpy.savez.html), stored or deflated.  EventBench's archive has one object array of time bins,
whose pickle is read without executing it (pickles.py).  npy.py reads the members.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from engine.errors import MediaError
from engine.media import media_files
from engine.media.event_columns import Columns, Numbers, refuse_many
from engine.media.media_files import MAX_BYTES
from engine.media.readers import npy
from engine.media.readers.column_names import known
from engine.media.recording import Recording, Whole
from engine.plain_files import reason
from engine.quoting import listed, whole

MAX_MEMBERS = 64
# What zipfile raises for damaged archives, besides its own error: offsets outside of the file,
# names that are no text, methods and versions that do not exist.
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError),
    *(NotImplementedError, RuntimeError, UnicodeDecodeError, struct.error),
)
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    """The recording of an archive, which is read as a whole: it has no index."""
    try:
        with media_files.opened(media_files.large(path)) as file, zipfile.ZipFile(file) as archive:
            columns = _columns(archive, _members(archive, name), name)
    except _DAMAGED as error:
        raise MediaError(
            f"{name} is a damaged archive ({reason(error)}): copy it again."
        ) from error
    yield Whole(columns, name)


def _members(archive: zipfile.ZipFile, name: str) -> dict[str, zipfile.ZipInfo]:
    """The arrays by name, after a check of their sizes."""
    files = [one.filename for one in archive.infolist()]
    arrays = [one for one in archive.infolist() if one.filename.endswith(".npy")]
    if not arrays or len(files) > MAX_MEMBERS:
        raise MediaError(
            f"{name} is an archive without arrays, or with too many (found: "
            f"{listed(files) or 'nothing'}): give an .npz with the arrays x, y, t and p."
        )
    if twice := {one for one in files if files.count(one) > 1}:
        raise MediaError(f"{name} has several members {listed(twice)}: save one of each name.")
    size = sum(one.file_size for one in arrays)
    if size > MAX_BYTES:
        raise MediaError(
            f"{name} would unpack to {whole(size)} bytes: give one of at most {MAX_BYTES:,}."
        )
    for one in arrays:
        if one.compress_type not in _METHODS or one.flag_bits & 1:
            raise MediaError(
                f"{name} has {listed([one.filename])} encrypted or in an unusual compression: save "
                "it with numpy.savez_compressed."
            )
    return {one.filename.removesuffix(".npy"): one for one in arrays}


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> bytes:
    """The bytes of a member, never more than it declares."""
    with archive.open(member) as stream:
        data = stream.read(member.file_size + 1)
    if len(data) != member.file_size:
        raise MediaError(f"{name} holds a member of another size than it declares: copy it again.")
    return data


def _columns(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], name: str) -> Columns:
    """Of plain arrays under their usual names, or of one member: a dict, records or time bins."""
    names = known(members)
    if len(names) < 4 and len(members) > 1:
        raise MediaError(
            f"{name} has no arrays x, y, t and p (found: {listed(members)}): give one with them."
        )
    if len(names) < 4:
        (member,) = members.values()
        with archive.open(member) as stream:  # a costly pickle is refused before it is all unpacked
            found = npy.of_stream(cast(BinaryIO, stream), member.file_size, name)
        if found is None:
            found = npy.columns(_read(archive, member, name), name)
        return npy.described(found, name)
    table: dict[str, Numbers] = {}
    for column, key in names.items():
        with npy.refused(name):
            values = npy.array(_read(archive, members[key], name))
            if values is None:
                raise ValueError(f"an array {column} that is not one number per event")
            refuse_many(len(values), name)
        table[column] = values
    return Columns(table["x"], table["y"], table["t"], table["p"])
