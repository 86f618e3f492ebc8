"""Packages for a machine without a network: packed, cut, checked, joined and unpacked."""

from __future__ import annotations

import hashlib
import io
import random
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from engine.errors import BadInput
from tests.test_layering import ROOT
from tools import offline_packages as offline

NOISE = random.Random(1).randbytes(4000)  # does not compress, so that several parts come of it
LIBRARIES = {f"bitsandbytes/libbitsandbytes_{kind}.so": b"x" for kind in ("cuda130", "cuda118")}
CPU = {"bitsandbytes/libbitsandbytes_cpu.so": b"x"}


def wheel(folder: Path, name: str, files: dict[str, bytes], runs: tuple[str, ...] = ()) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as opened:
        for inner, content in files.items():
            info = zipfile.ZipInfo(inner)
            info.external_attr = (0o755 if inner in runs else 0o644) << 16
            opened.writestr(info, content)
    return path


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the parts of two small packages, made without a network."""
    wheels = tmp_path / "wheels"
    wheel(wheels, "one", {"one/__init__.py": b"VALUE = 1\n", "one/data.so": NOISE})
    wheel(wheels, "two", {"two/run": b"#!\n", "two/__init__.py": b""}, runs=("two/run",))
    return pack(wheels, tmp_path / "packed", monkeypatch)


def pack(wheels: Path, into: Path, patch: pytest.MonkeyPatch, cuda: str | None = None) -> Path:
    patch.setattr(offline, "download", lambda *_: sorted(wheels.glob("*.whl")))
    offline.pack(["msgspec"], offline.RUNNING, into, 1500, cuda)
    return into


def parts(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{offline.ARCHIVE}.*"))


def listing(folder: Path, python: str = offline.RUNNING) -> None:
    """Writes the list of the parts anew, as if they had been packed as they are."""
    lines = [f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}" for one in parts(folder)]
    (folder / offline.SUMS).write_text("\n".join([f"# Python {python}", *lines]) + "\n")


def test_what_is_packed_is_installed(packed: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    assert len(parts(packed)) > 2 and all(part.stat().st_size <= 1500 for part in parts(packed))
    assert offline.install(packed, site) == 4
    assert (site / "one" / "data.so").read_bytes() == NOISE
    assert (site / "one" / "__init__.py").read_text() == "VALUE = 1\n"
    assert (site / "two" / "run").stat().st_mode & 0o777 == 0o755
    assert (site / "two" / "__init__.py").stat().st_mode & 0o777 == 0o644


@pytest.mark.slow
def test_installing_needs_the_standard_library_alone(packed: Path, tmp_path: Path) -> None:
    site = tmp_path / "a site"
    arguments = ["-S", "-m", offline.__name__, "install", str(packed), "--target", str(site)]
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"export PYTHONPATH='{site}'${{PYTHONPATH:+:$PYTHONPATH}}\n"
    script = f"{done.stdout}{sys.executable} -c 'import one; print(one.VALUE)'"
    told = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout == "1\n"


def test_a_damaged_part_is_refused(packed: Path, tmp_path: Path) -> None:
    content = bytearray(parts(packed)[1].read_bytes())
    content[7] ^= 1
    parts(packed)[1].write_bytes(content)
    with pytest.raises(BadInput, match=r"Not as packed, by their SHA-256: packages\.tar\.xz\.02:"):
        offline.install(packed, tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_missing_part_is_named(packed: Path, tmp_path: Path) -> None:
    for part in parts(packed)[1:]:
        part.unlink()
    with pytest.raises(BadInput, match=r"lacks packages\.tar\.xz\.02, packages\.tar\.xz\.03"):
        offline.install(packed, tmp_path / "site")


@pytest.mark.parametrize("name", ["../out.py", "/tmp/out.py", "a/../../out.py", "a\\..\\out.py"])
def test_a_path_that_leaves_the_target_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(tmp_path / "wheels", "bad", {name: b""})
    with pytest.raises(BadInput, match="would leave the target"):
        pack(tmp_path / "wheels", tmp_path / "packed", monkeypatch)
    member = tarfile.TarInfo(name)
    with pytest.raises(BadInput, match="would leave the target"):
        offline.install(planted(tmp_path / "planted", member), tmp_path / "a" / "site")
    assert not list(tmp_path.rglob("out.py"))


def planted(folder: Path, member: tarfile.TarInfo) -> Path:
    """A folder with a true list of digests for an archive that `pack` would not write."""
    folder.mkdir()
    with tarfile.open(folder / f"{offline.ARCHIVE}.01", "w:xz") as tar:
        tar.addfile(member, io.BytesIO())
    listing(folder)
    return folder


def test_a_link_is_refused(tmp_path: Path) -> None:
    member = tarfile.TarInfo("link")
    member.type, member.linkname = tarfile.SYMTYPE, "/tmp"
    with pytest.raises(BadInput, match="'link' is no plain file"):
        offline.install(planted(tmp_path / "planted", member), tmp_path / "site")
    assert not (tmp_path / "site" / "link").is_symlink()


def test_what_is_no_archive_is_refused(packed: Path, tmp_path: Path) -> None:
    parts(packed)[-1].unlink()
    listing(packed)
    with pytest.raises(BadInput, match="are no archive"):
        offline.install(packed, tmp_path / "site")


def test_another_python_is_refused(packed: Path, tmp_path: Path) -> None:
    listing(packed, "3.99")
    with pytest.raises(BadInput, match=rf"for Python 3\.99, this is {offline.RUNNING}: use python"):
        offline.install(packed, tmp_path / "site")


@pytest.mark.parametrize("text", ["", "# Python 3.12\n", "# Python 3.12\n00  ../a\n", "\x00"])
def test_a_list_that_is_none_is_refused(text: str, packed: Path, tmp_path: Path) -> None:
    (packed / offline.SUMS).write_text(text)
    with pytest.raises(BadInput, match="is no list of parts"):
        offline.install(packed, tmp_path / "site")


def test_packing_again_replaces_the_parts_and_nothing_else(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (packed / f"{offline.ARCHIVE}.99").write_bytes(b"")
    pack(tmp_path / "wheels", packed, monkeypatch)
    assert {path.name for path in packed.iterdir()} == {
        *offline.read_list(packed).digests,
        "SHA256SUMS",
    }
    (packed / "mine.txt").write_bytes(b"")
    with pytest.raises(BadInput, match=r"holds other files \(mine\.txt\)"):
        pack(tmp_path / "wheels", packed, monkeypatch)
    assert parts(packed)


def test_versions_are_those_of_the_requirements() -> None:
    assert offline.pinned("msgspec", "3.12").startswith("msgspec==0.")
    assert offline.pinned("Huggingface-Hub", "3.12").startswith("Huggingface-Hub==")
    assert offline.pinned("nothing==1.5", "3.12") == "nothing==1.5"
    assert offline.pinned("numpy", "3.10") != offline.pinned("numpy", "3.12")
    with pytest.raises(BadInput, match="No requirements file pins 'nothing'"):
        offline.pinned("nothing", "3.12")
    for name in ("--index-url=x", "a b", "a==", "a==1 b", "-r==1"):
        with pytest.raises(BadInput, match="is no package"):
            offline.pinned(name, "3.12")


def installed(wheels: Path, folder: Path, patch: pytest.MonkeyPatch, cuda: str | None) -> list[str]:
    """The files of the wheels after packing and installing."""
    offline.install(pack(wheels, folder / "packed", patch, cuda), folder / "site")
    return [path.name for path in sorted((folder / "site").rglob("*")) if path.is_file()]


def test_one_cuda_version_of_bitsandbytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels, names = tmp_path / "wheels", sorted(Path(name).name for name in LIBRARIES | CPU)
    wheel(wheels, "bitsandbytes", {"bitsandbytes/a.py": b"", **LIBRARIES, **CPU})
    assert installed(wheels, tmp_path / "1", monkeypatch, None) == ["a.py", *names]
    kept = ["a.py", *(name for name in names if "118" not in name)]
    assert installed(wheels, tmp_path / "2", monkeypatch, "130") == kept
    with pytest.raises(
        BadInput, match=r"no library for --cuda 131: it has libbitsandbytes_cuda130"
    ):
        installed(wheels, tmp_path / "3", monkeypatch, "131")


def test_what_no_run_needs_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"ray/jars/a.jar": b"", "ray/a.py": b"", "a-1.0.data/scripts/run": b""}
    wheel(tmp_path / "wheels", "ray", files | {"a-1.0.data/purelib/b.py": b""})
    names = installed(tmp_path / "wheels", tmp_path, monkeypatch, None)
    assert names == ["b.py", "a.py"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["pack", "nothing"],
        ["pack", "--limit-mb", "0", "msgspec"],
        ["pack", "--python", "3", "msgspec"],
        ["pack", "--cuda", "13.0", "bitsandbytes"],
        ["pack"],
        [],
        ["install", "gone", "--target", "site"],
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code = offline.main(arguments)
    except SystemExit as error:
        code = error.code
    printed = capsys.readouterr()
    assert (code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert not list(tmp_path.iterdir())


def test_a_target_that_is_a_file_is_one_sentence(
    packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "site").write_bytes(b"")
    assert offline.main(["install", str(packed), "--target", str(tmp_path / "site")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_pip_gives_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "WARNING: x\nERROR: No matching distribution found for a==1\n"
    failed = subprocess.CompletedProcess([], 1, "", said)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(BadInput, match=r"the wheels: No matching distribution found for a==1"):
        offline.download(["a==1"], "3.12", tmp_path)
