"""The documents: what they name exists, their commands parse, and their drawing is current."""

import contextlib
import inspect
import io
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import stagescope
from engine import settings
from engine.__main__ import COMMANDS, _parser, command
from tests.test_layering import ROOMS, ROOT
from tools import pins

TABLES = ROOT / "benchmarks" / "results" / "speed-tables.md"
PAGES = sorted((ROOT / "docs").glob("*.md"))
DOCUMENTS = (ROOT / "README.md", ROOT / "CHANGELOG.md", TABLES, *PAGES)
README_CHARACTERS = 7_000
TOPS = ("engine", "ui", "pages", "tools", "tests", "benchmarks", "docs")
PATH = re.compile(rf"(?<![\w./-])(?:{'|'.join(TOPS)})/[\w./-]*\w")
MODULE = re.compile(r"python -m ((?:engine|tools|benchmarks)[\w.]*\w)")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")
# Modules that a recipe of contributing.md tells the reader to write.
TO_WRITE = {"engine/models/vip_llava.py", "engine/media/text_events.py"}


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def missing(page: str, folder: Path = ROOT) -> list[str]:
    """Paths, modules and links of a page, which lies in `folder`, that do not exist."""
    paths = {name for name in PATH.findall(page) if not (ROOT / name).exists()}
    modules = {name for name in MODULE.findall(page) if not is_module(name)}
    links = {name for name in LINK.findall(page) if not (folder / name).exists()}
    return sorted((paths | modules | links) - TO_WRITE)


def is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_document_names_exists(path: Path) -> None:
    assert not missing(text(path), path.parent)


def test_control_what_does_not_exist_is_found() -> None:
    page = (
        "`engine/media/gone.py`, `engine/media/`, `ui/gone/`, https://a.b/engine/away.py, "
        "`python -m engine.gone`, `python -m tools.same_results`, [a](docs/gone.md), "
        "[b](docs/speed.md)"
    )
    assert missing(page) == ["docs/gone.md", "engine.gone", "engine/media/gone.py", "ui/gone"]


def test_the_readme_is_short_and_links_each_page() -> None:
    readme = text(ROOT / "README.md")
    assert len(readme) <= README_CHARACTERS
    linked = set(LINK.findall(readme))
    assert {f"docs/{path.name}" for path in (ROOT / "docs").iterdir()} <= linked


def commands(page: str) -> list[str]:
    """The stagescope commands of a page's code blocks, without comments."""
    blocks = re.findall(r"^```\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if re.match(r"(\.venv/bin/)?stagescope ", line)]


def parse(line: str) -> None:
    """SystemExit for a command that the command line does not take."""
    given = shlex.split(line, comments=True)[1:]
    _parser(given).parse_args(given)


ALL_COMMANDS = [line for path in DOCUMENTS for line in commands(text(path))]


@pytest.mark.parametrize("line", ALL_COMMANDS)
def test_each_command_is_one_that_the_command_line_takes(line: str) -> None:
    parse(line)


def test_each_command_stands_in_the_readme() -> None:
    shown = {shlex.split(line)[1] for line in commands(text(ROOT / "README.md"))}
    assert shown | {"download"} == set(COMMANDS)


def test_control_an_unknown_option_is_found() -> None:
    with pytest.raises(SystemExit):
        parse("stagescope bench --models llava-demo --gone 3")


def options(page: str) -> set[str]:
    """The options in the first cells of a page's tables."""
    cells = re.findall(r"^\| (`--.*?) \|", page, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"--[a-z-]+", cell)}


def known_options() -> set[str]:
    """The options of every command, as their help lists them."""
    found: set[str] = set()
    for name in COMMANDS:
        helped = io.StringIO()
        with pytest.raises(SystemExit), contextlib.redirect_stdout(helped):
            _parser([name]).parse_args([name, "--help"])
        found |= set(re.findall(r"--[a-z-]+", helped.getvalue()))
    return found


def test_each_option_of_a_table_is_one_that_a_command_has() -> None:
    shown = set().union(*(options(text(path)) for path in DOCUMENTS))
    assert {"--frames", "--batch", "--per-worker"} <= shown <= known_options()
    assert not options("| `--gone N` | is no option |") <= known_options()  # the control


def test_settings_are_all_documented() -> None:
    page = text(ROOT / "docs" / "settings.md")
    for name, variable in settings.VARIABLES.items():
        assert f"| `{name}` | `{variable}` |" in page


def listed_rooms(page: str) -> list[str]:
    """The rooms in the tables of contributing.md that say what each holds."""
    part = page.partition("## Rooms of the code")[2].partition("\n## ")[0]
    return re.findall(r"^\| `?(\w+)`? \| [A-Z]", part, re.MULTILINE)


def test_the_rooms_stand_in_their_order() -> None:
    assert listed_rooms(text(ROOT / "docs" / "contributing.md")) == [*ROOMS]


def test_each_dependency_is_pinned_in_its_range() -> None:
    lines = text(pins.FILE).splitlines()
    pinned = {one.name: one.specifier for one in map(Requirement, lines[1:])}
    ranges = pins.dependencies()
    assert list(pinned) == [one.name for one in ranges]
    for one in ranges:
        (pin,) = pinned[one.name]
        assert {bound.operator for bound in one.specifier} == {">=", "<"}
        assert pin.operator == "==" and pin.version in one.specifier, one


def test_the_installed_command_is_the_command_line() -> None:
    scripts = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]["scripts"]
    assert scripts == {"stagescope": "stagescope:command"}
    assert inspect.getsource(stagescope.command).count(f"import {command.__name__}\n") == 1
