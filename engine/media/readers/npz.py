"""Reads .npz archives of events: EventBench's time bins, and plain arrays x, y, t and p.

Format: a ZIP archive with one .npy file per array (numpy.org/doc/stable/reference/generated/
numpy.savez.html), stored or deflated.  EventBench's archive has one object array of time bins,
whose pickle is read without executing it (pickles.py).  npy.py reads the members.
"""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.errors import MediaError
from engine.media import media_files
from engine.media.event_columns import Columns, known
from engine.media.media_files import MAX_BYTES
from engine.media.readers import npy
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
    files = [member.filename for member in archive.infolist()]
    arrays = [member for member in archive.infolist() if member.filename.endswith(".npy")]
    size = sum(member.file_size for member in arrays)
    wrong = ""
    if not arrays or len(files) > MAX_MEMBERS:
        wrong = "without arrays, or with too many"
    elif len(set(files)) < len(files):
        wrong = "with several members of one name"
    elif size > MAX_BYTES:
        wrong = f"that would unpack to {whole(size)} bytes (the limit is {MAX_BYTES:,})"
    elif any(one.compress_type not in _METHODS or one.flag_bits & 1 for one in arrays):
        wrong = "with an encrypted array, or one in an unusual compression"
    if wrong:
        raise MediaError(
            f"{name} is an archive {wrong} (found: {listed(files) or 'nothing'}): save the arrays "
            "x, y, t and p with numpy.savez_compressed."
        )
    return {member.filename.removesuffix(".npy"): member for member in arrays}


def _columns(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], name: str) -> Columns:
    """Of plain arrays under their usual names, or of one member: a dict, records or time bins."""

    def read(key: str) -> bytes:
        """The bytes of a member, never more than it declares."""
        with archive.open(members[key]) as stream:
            data = stream.read(members[key].file_size + 1)
        if len(data) != members[key].file_size:
            raise zipfile.BadZipFile("a member of another size than it declares")
        return data

    names = known(members)
    if len(names) < 4 and len(members) > 1:
        raise MediaError(
            f"{name} has no arrays x, y, t and p (found: {listed(members)}): give one with them."
        )
    if len(names) < 4:
        return npy.described(npy.columns(read(*members), name), name)
    with npy.refused(name):
        return Columns(*(npy.array(read(names[key])) for key in "xytp"))
