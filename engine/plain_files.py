"""Reads and writes files that a user named: only regular files, up to a given size.

A named pipe would block, /dev/zero would fill the memory, and a symbolic link may point outside.
So a file is opened without blocking, checked through its descriptor, and read up to its limit.
Time, Count and the others are the ranges of numbers in such files.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeVar

import msgspec
from msgspec import Meta, Struct

from engine.errors import BadInput, StageScopeError, StoreError
from engine.quoting import cut, shown

T = TypeVar("T")
Fault = type[StageScopeError]
MOST = 10**12  # milliseconds, tokens or bytes; a larger value is not a measurement
Time = Annotated[float, Meta(ge=0, le=MOST)]  # milliseconds
Difference = Annotated[float, Meta(ge=-MOST, le=MOST)]  # milliseconds; rounding may go below 0
Lasting = Annotated[float, Meta(ge=-1, le=MOST)]  # milliseconds; a difference may round below 0
Rate = Annotated[float, Meta(ge=0, le=MOST)]
Count = Annotated[int, Meta(ge=0, le=MOST)]
Positive = Annotated[int, Meta(ge=1, le=MOST)]
Repeat = Annotated[int, Meta(ge=0, le=10**9)]
Name = Annotated[str, Meta(min_length=1)]
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_SAFE = (
    getattr(os, "O_NONBLOCK", 0)  # a named pipe without a writer does not block
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
}


def open_descriptor(path: Path, flags: int = _READ, *, links: bool = True) -> int:
    """A descriptor of a regular file, or OSError.  `links` False refuses a symbolic link.  The
    checks use the open file, so a file that is swapped in between is noticed."""
    try:
        descriptor = os.open(path, flags | _SAFE | (0 if links else _NO_LINK), 0o666)
    except OSError as fault:
        if fault.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link", str(path)) from fault
        if fault.errno in (errno.ENXIO, errno.ENODEV):
            raise OSError(fault.errno, "it is not a regular file", str(path)) from fault
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            kind = _KINDS.get(stat.S_IFMT(found.st_mode), "of another kind")
            raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", str(path))
        if not links and not _NO_LINK and path.is_symlink():
            raise OSError(errno.ELOOP, "it is a symbolic link", str(path))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def open_regular(path: Path, *, links: bool = True) -> BinaryIO:
    """The regular file, open for reading; OSError as for `open_descriptor`."""
    return os.fdopen(open_descriptor(path, links=links), "rb")


def read_limited(path: Path, limit: int, *, links: bool = True) -> bytes:
    """All bytes of a regular file; OSError if it has more than `limit`."""
    with open_regular(path, links=links) as stream:
        if os.fstat(stream.fileno()).st_size <= limit:
            data = stream.read(limit + 1)
            if len(data) <= limit:
                return data
    message = f"it has more than the {limit:,} bytes that are allowed"
    raise OSError(errno.EFBIG, message, str(path))


def read_bytes(
    path: Path, limit: int, what: str, *, links: bool = True, error: Fault = BadInput
) -> bytes:
    """All bytes of a regular file, at most `limit`; or `error`, whose message calls it `what`."""
    try:
        return read_limited(path, limit, links=links)
    except (OSError, ValueError) as fault:
        raise error(
            f"{what} {shown(path)} cannot be read ({reason(fault)}): "
            f"name a regular file that this program may read."
        ) from fault


def read_text(path: Path, limit: int, what: str, *, error: Fault = BadInput) -> str:
    """The UTF-8 text of a file; errors as in `read_bytes`."""
    data = read_bytes(path, limit, what, error=error)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise error(f"{what} {shown(path)} is not UTF-8 text: save it as UTF-8.") from fault


def read_json(
    path: Path, limit: int, what: str, form: type[T], *, links: bool = True, error: Fault = BadInput
) -> T:
    """The JSON value of a file, checked against the type `form`; errors as in `read_bytes`."""
    data = read_bytes(path, limit, what, links=links, error=error)
    try:
        return msgspec.json.decode(data, type=form)
    except JSON_FAULTS as fault:
        raise error(
            f"{what} {shown(path)} cannot be used ({reason(fault)}): "
            f"restore it from a copy or make it again."
        ) from fault


# What msgspec.json.decode raises for invalid JSON, invalid UTF-8 and too deep nesting.
JSON_FAULTS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def checked(line: bytes, form: type[Struct] | None = None) -> dict[str, Any]:
    """One JSON object, unchanged, checked against `form`; raises one of JSON_FAULTS otherwise."""
    value = msgspec.json.decode(line)
    if not isinstance(value, dict):
        raise msgspec.ValidationError(f"Expected `object`, got `{type(value).__name__}`")
    if form is not None:
        msgspec.convert(value, form)
    return value


def reason(fault: BaseException) -> str:
    """An exception's message in one line of at most 80 characters."""
    if isinstance(fault, RecursionError):
        return "it is nested too deeply"
    if isinstance(fault, UnicodeDecodeError):
        return f"byte {fault.start:,} is not UTF-8"
    text = str(getattr(fault, "strerror", None) or fault)  # PyAV's errors have one too
    return cut(" ".join(text.split())) or type(fault).__name__


def advice(fault: OSError, otherwise: str) -> str:
    """What to do about a file that cannot be written; only a full disk needs space."""
    return "free disk space" if fault.errno in (errno.ENOSPC, errno.EDQUOT) else otherwise


def not_written(path: Path, fault: OSError, otherwise: str) -> StoreError:
    return StoreError(
        f"{shown(path)} cannot be written ({reason(fault)}): {advice(fault, otherwise)}."
    )


def write_whole(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Writes a file atomically: a reader never sees half of it.  OSError if that fails.  The data
    goes to a new temporary file beside the old one, which then replaces it.  A path that is not a
    regular file (/dev/null, or the link /dev/stdout) is refused."""
    if not path.name:
        raise OSError(errno.EISDIR, "it names a folder, not a file", str(path))
    with suppress(FileNotFoundError):
        kind = stat.S_IFMT(path.lstat().st_mode)
        if kind != stat.S_IFREG:
            message = f"it is {_KINDS.get(kind, 'of another kind')}, not a regular file"
            raise OSError(errno.EINVAL, message, str(path))
    part = path.with_name(f".{path.name[:40]}.{secrets.token_hex(6)}.part")
    descriptor = os.open(part, _MAKE | _SAFE | _NO_LINK, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.writelines([data] if isinstance(data, bytes) else data)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
