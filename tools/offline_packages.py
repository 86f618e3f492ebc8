"""Takes Python packages to a machine without a network, as parts of a limited size.

`python -m tools.offline_packages pack --into .wheels msgspec diskcache` downloads the wheels for
Linux on x86-64, without their dependencies, at the versions that the requirements files pin.  It
writes one xz archive, cut into parts, and their SHA-256 digests.  There,
`python3 -m tools.offline_packages install .wheels --target SITE` joins and unpacks the parts and
prints the line that lets Python find them.

Boundary: packing needs pip and a network; installing needs the standard library alone, so no module
that imports msgspec, such as engine/plain_files.py.  Knows nothing about what the packages do.
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, NoReturn

from engine.errors import BadInput
from engine.quoting import count, listed, quoted, shown

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = "python -m tools.offline_packages"
SUMS = "SHA256SUMS"  # `sha256sum -c` reads it too; its first line is a comment
ARCHIVE = "packages.tar.xz"
MB = 1_000_000
GLIBC = ("_2_28", "_2_27", "_2_24", "_2_17", "2014", "1")  # pip takes exactly the named ones
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
# Java's client and the pages of the dashboard: no Python imports them, and runs start without both.
LEFT_OUT = ("ray/jars/*", "ray/dashboard/client/*")
CUDA_LIBRARIES = "bitsandbytes/libbitsandbytes_*.so"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_PART_LINE = re.compile(rf"([0-9a-f]{{64}})  ({re.escape(ARCHIVE)}\.\d+)")
_FIRST_LINE = re.compile(r"# Python (\d+\.\d+)")


class Packed(NamedTuple):
    """What the list of digests says: the Python of the wheels, and part -> digest in order."""

    python: str
    digests: dict[str, str]


def pack(names: Iterable[str], python: str, into: Path, limit: int, cuda: str | None) -> list[Path]:
    """Writes the parts, each of at most `limit` bytes, and their list into `into`."""
    versions = [pinned(name, python) for name in names]
    _empty(into)
    with tempfile.TemporaryDirectory() as folder:
        wheels = download(versions, python, Path(folder))
        archive = Path(folder) / ARCHIVE
        _write_archive(wheels, archive, cuda)
        parts = _cut(archive, into, limit)
    lines = [f"{_digest(part)}  {part.name}\n" for part in parts]
    (into / SUMS).write_text(f"# Python {python}\n" + "".join(lines), encoding="utf-8")
    return parts


def pinned(name: str, python: str) -> str:
    """NAME==VERSION as given, or with the version that a requirements file pins for `python`."""
    only_name, given, version = name.partition("==")
    if not _NAME.fullmatch(only_name) or (given and not _VERSION.fullmatch(version)):
        raise BadInput(f"{quoted(name)} is no package: give NAME, or NAME==VERSION.")
    if given:
        return name
    found = _pins(python).get(_plain(only_name))
    if found is None:
        raise BadInput(f"No requirements file pins {quoted(name)}: give it as NAME==VERSION.")
    return f"{only_name}=={found}"


def _pins(python: str) -> dict[str, str]:
    """Name -> version of every line of the requirements files that holds for `python`."""
    from packaging.requirements import Requirement  # pip and the app bring it

    texts = [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("requirements*.txt"))]
    lines = [line.partition("#")[0].strip() for text in texts for line in text.splitlines()]
    there = {"python_version": python, "sys_platform": "linux", "platform_machine": "x86_64"}
    return {
        _plain(one.name): str(one.specifier).removeprefix("==")
        for one in map(Requirement, filter(None, lines))
        if one.marker is None or one.marker.evaluate(there)
    }


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _empty(into: Path) -> None:
    """Makes the folder, without the parts of an earlier packing; BadInput if it holds others."""
    into.mkdir(parents=True, exist_ok=True)
    others = [path.name for path in into.iterdir() if not _is_ours(path.name)]
    if others:
        raise BadInput(f"{shown(into)} holds other files ({listed(others)}): name a new folder.")
    for path in into.iterdir():
        path.unlink()


def _is_ours(name: str) -> bool:
    return name == SUMS or bool(re.fullmatch(rf"{re.escape(ARCHIVE)}\.\d+", name))


def download(versions: Iterable[str], python: str, folder: Path) -> list[Path]:
    """The wheels for Linux on x86-64, by pip."""
    platforms = [f"--platform=manylinux{glibc}_x86_64" for glibc in GLIBC]
    order = ["download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    order += ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}"]
    command = [sys.executable, "-m", "pip", *order, *platforms, "-d", str(folder), *versions]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        reason = (errors or done.stderr.splitlines() or ["no reason given"])[-1]
        raise BadInput(f"pip cannot download the wheels: {reason.removeprefix('ERROR: ')[:300]}")
    return sorted(folder.glob("*.whl"))


def _write_archive(wheels: list[Path], archive: Path, cuda: str | None) -> None:
    with tarfile.open(archive, "w:xz") as tar:
        for wheel in wheels:
            try:
                with zipfile.ZipFile(wheel) as opened:
                    _add(tar, opened, cuda)
            except zipfile.BadZipFile as error:
                raise BadInput(f"{shown(wheel.name)} is no wheel: {error}.") from error


def _add(tar: tarfile.TarFile, wheel: zipfile.ZipFile, cuda: str | None) -> None:
    """The wheel's files as they lie in site-packages; similar kinds together compress better."""
    names = [info.filename for info in wheel.infolist() if not info.is_dir()]
    kept = set(_kept(names, cuda))
    for name in sorted(kept, key=lambda name: (PurePosixPath(name).suffix, name)):
        if (place := _place(name)) is None:
            continue
        info, member = wheel.getinfo(name), tarfile.TarInfo(_inside(place))
        member.size = info.file_size
        member.mode = 0o755 if info.external_attr >> 16 & 0o111 else 0o644
        with wheel.open(name) as content:
            tar.addfile(member, content)


def _kept(names: list[str], cuda: str | None) -> Iterator[str]:
    """The names without what no run needs, and without the libraries of other CUDA versions."""
    libraries = [name for name in names if cuda and fnmatch(name, CUDA_LIBRARIES)]
    wanted = {CUDA_LIBRARIES.replace("*", kind) for kind in (f"cuda{cuda}", "cpu")}
    if libraries and not wanted <= set(libraries):
        every = listed(PurePosixPath(name).name for name in libraries)
        raise BadInput(f"bitsandbytes has no library for --cuda {cuda}: it has {every}.")
    dropped = set(libraries) - wanted
    for name in names:
        if name not in dropped and not any(fnmatch(name, pattern) for pattern in LEFT_OUT):
            yield name


def _place(name: str) -> str | None:
    """Where a wheel's file lies in site-packages; None for scripts, headers and other data."""
    top, _, rest = name.partition("/")
    if not top.endswith(".data"):
        return name
    kind, _, inner = rest.partition("/")
    return inner if kind in ("purelib", "platlib") else None


def _inside(name: str) -> str:
    """The name; BadInput if it could lead out of the folder that it is unpacked to."""
    parts = name.split("/")
    if name.startswith("/") or "\\" in name or not all(parts) or {".", ".."} & set(parts):
        raise BadInput(f"A file named {quoted(name)} would leave the target: pack again.")
    return name


def _cut(archive: Path, into: Path, limit: int) -> list[Path]:
    """The archive in pieces: `cat packages.tar.xz.* > packages.tar.xz` joins them too."""
    parts: list[Path] = []
    with archive.open("rb") as source:
        while piece := source.read(limit):
            parts.append(into / f"{ARCHIVE}.{len(parts) + 1:02d}")
            parts[-1].write_bytes(piece)
    return parts


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def install(folder: Path, target: Path) -> int:
    """Unpacks all parts to `target`, over what lies there; the number of files."""
    packed = read_list(folder)
    if packed.python != RUNNING:
        fits = f"python{packed.python}"
        raise BadInput(
            f"The packages are for Python {packed.python}, this is {RUNNING}: use {fits}."
        )
    _check(folder, packed.digests)
    with tempfile.TemporaryFile() as whole:
        for name in packed.digests:
            with (folder / name).open("rb") as part:
                shutil.copyfileobj(part, whole)
        whole.seek(0)
        return _unpack(whole, target)


def read_list(folder: Path) -> Packed:
    path = folder / SUMS
    if not path.is_file():
        raise BadInput(
            f"{shown(path)} is missing: name a folder that `pack` wrote, and copy it all."
        )
    first, *lines = path.read_text(encoding="utf-8", errors="replace").splitlines() or [""]
    python, parts = _FIRST_LINE.fullmatch(first), [_PART_LINE.fullmatch(line) for line in lines]
    if python is None or not parts or None in parts:
        raise BadInput(f"{shown(path)} is no list of parts: pack again.")
    return Packed(python[1], {part[2]: part[1] for part in parts if part})


def _check(folder: Path, digests: dict[str, str]) -> None:
    missing = [name for name in digests if not (folder / name).is_file()]
    if missing:
        raise BadInput(f"{shown(folder)} lacks {listed(missing)}: copy these as well.")
    damaged = [name for name, digest in digests.items() if _digest(folder / name) != digest]
    if damaged:
        raise BadInput(f"Not as packed, by their SHA-256: {listed(damaged)}: copy these again.")


def _unpack(whole: IO[bytes], target: Path) -> int:
    count = 0
    try:
        with tarfile.open(fileobj=whole, mode="r|xz") as tar:
            for member in tar:
                _write(tar, member, target / _inside(member.name))
                count += 1
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise BadInput(f"The joined parts are no archive ({error}): pack again.") from error
    return count


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    """One file.  Links are refused: a name behind one could lead out of the target."""
    content = tar.extractfile(member) if member.isreg() else None
    if content is None:
        raise BadInput(f"{quoted(member.name)} is no plain file: pack again.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with content, path.open("wb") as file:
        shutil.copyfileobj(content, file)
    path.chmod(member.mode & 0o755)


def path_line(target: Path) -> str:
    """The shell's line that lets Python find the packages, before what is installed."""
    return f"export PYTHONPATH={shlex.quote(str(target.resolve()))}${{PYTHONPATH:+:$PYTHONPATH}}"


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except BadInput as error:
        return _say(str(error))
    except OSError as error:
        return _say(f"{shown(error.filename or 'A file')} cannot be used: {error.strerror}.")
    return 0


class _Parser(argparse.ArgumentParser):
    """Prints an error in one sentence, without the usage, which --help prints."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{message[:1].upper()}{message[1:]}: see {self.prog} --help.\n")


def _say(text: str) -> int:
    print(text, file=sys.stderr)
    return 2


def _pack(options: argparse.Namespace) -> None:
    limit = options.limit_mb * MB
    parts = pack(options.names, options.python, options.into, limit, options.cuda)
    for path in (*parts, options.into / SUMS):
        print(f"{path}  {path.stat().st_size / MB:.2f} MB")


def _install(options: argparse.Namespace) -> None:
    files = install(options.folder, options.target)
    print(f"{count(files, 'file')} in {shown(options.target)}", file=sys.stderr)
    print(path_line(options.target))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=PROGRAM, description=str(__doc__).partition("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="pack|install")
    sub = commands.add_parser("pack", help="where there is a network")
    sub.add_argument("names", nargs="+", metavar="NAME", help="a pinned name, or NAME==VERSION")
    sub.add_argument("--python", type=_python, default="3.12", help="of the machine (3.12)")
    sub.add_argument("--into", type=Path, default=Path(".wheels"), help="folder (.wheels)")
    sub.add_argument("--limit-mb", type=_limit, default=25, help="most of one part (25)")
    sub.add_argument("--cuda", type=_cuda, help="of bitsandbytes only this CUDA, as in 130")
    sub.set_defaults(run=_pack)
    sub = commands.add_parser("install", help="on the machine")
    sub.add_argument("folder", type=Path, help="what pack wrote")
    sub.add_argument("--target", type=Path, required=True, help="where the packages go")
    sub.set_defaults(run=_install)
    return parser


def _python(text: str) -> str:
    if not re.fullmatch(r"3\.\d{1,2}", text):
        raise argparse.ArgumentTypeError(f"{quoted(text)} is no version such as 3.12")
    return text


def _limit(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,3}", text):
        raise argparse.ArgumentTypeError(f"{quoted(text)} is no whole number from 1 to 9999")
    return int(text)


def _cuda(text: str) -> str:
    if not re.fullmatch(r"\d{2,3}", text):
        raise argparse.ArgumentTypeError(f"{quoted(text)} is no version such as 130")
    return text


if __name__ == "__main__":
    sys.exit(main())
