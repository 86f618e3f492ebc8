"""Who may import whom, and what importing costs."""

import ast
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from engine.demo import demo_dataset

ROOT = Path(__file__).resolve().parents[1]
LOADS = pytest.mark.loads  # a process each
HEAVY = {"torch", "transformers", "diskcache"}
# The rooms of the engine.  A room imports from rooms before it, never from one after it.
ROOMS = (
    *("errors", "quoting", "plain_files", "settings", "machine", "prompts", "media_options"),
    *("types", "timing", "palette", "media", "viewing", "decoding", "models", "storage"),
    *("pipeline", "served", "analysis", "verify", "attribution", "report", "published"),
    *("benchmark", "jobs", "demo", "public", "cli", "__main__"),
)
PUBLISHED = ("read", "audit", "claims")
MAX_LOOSE = 12  # modules directly in engine/
# Pages build on pages' parts: each folder of ui/ may import those before it.
UI_ROOMS = ("widgets", "compare", "benchmark", "results", "published", "models", "verify")


@cache
def imports(path: Path) -> frozenset[str]:
    """Dotted names of all modules and members that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def parts_of(path: Path) -> set[str]:
    return {part for name in imports(path) for part in name.split(".")}


def files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def importing(paths: Iterable[Path], *packages: str) -> dict[str, set[str]]:
    """The files that import one of the packages, or of its members, and what of them."""
    inside = tuple(f"{package}." for package in packages)
    found = {
        path.relative_to(ROOT).as_posix(): {
            name for name in imports(path) if f"{name}.".startswith(inside)
        }
        for path in paths
    }
    return {path: names for path, names in found.items() if names}


def test_no_file_imports_what_its_folder_may_not() -> None:
    """The engine knows no page, replaces nothing for the whole process, and its published files
    need no models and no runs; pages know no torch, and their parts no page."""
    published = ("pipeline", "jobs", "models", "media", "cli", "demo")
    assert not importing(files("engine"), "streamlit", "ui", "pages", "app", "unittest")
    assert not importing([ROOT / "app.py", *files("pages", "ui")], *HEAVY)
    assert not importing(files("ui"), "pages", "app")
    assert not importing(files("engine/published"), *(f"engine.{room}" for room in published))


def upward(path: Path, top: str, rooms: tuple[str, ...]) -> set[str]:
    """What a file imports from a room that comes after its own; `top` is the rooms' package."""
    parts = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    own = parts.removeprefix(f"{top}.").split(".")[0]
    inside = {name for name in imports(path) if name.startswith(f"{top}.")}
    return {
        name
        for name in inside
        if (other := name.removeprefix(f"{top}.").split(".")[0]) in rooms
        and rooms.index(other) > rooms.index(own)
    }


def all_upward() -> dict[str, set[str]]:
    """The files that import from a later room, and what."""
    found = defaultdict[str, set[str]](set)
    for top, rooms in (("engine", ROOMS), ("engine.published", PUBLISHED), ("ui", UI_ROOMS)):
        folder = top.replace(".", "/")
        for path in files(folder):
            if path.parent != ROOT / folder or (top == "engine" and path.stem in ROOMS):
                found[path.relative_to(ROOT).as_posix()] |= upward(path, top, rooms)
    return {path: names for path, names in found.items() if names}


def test_a_room_imports_only_from_rooms_before_it() -> None:
    assert not all_upward()


def test_each_room_is_listed_and_few_modules_are_loose() -> None:
    inside = (ROOT / "engine").iterdir()
    found = {
        path.stem for path in inside if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert found - {"__init__"} == set(ROOMS)
    assert len(list((ROOT / "engine").glob("*.py"))) <= MAX_LOOSE
    assert {path.parent.name for path in files("ui")} - {"ui"} == set(UI_ROOMS)


def test_control_an_import_of_a_later_room_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    planted = {
        "engine/media/planted.py": "engine.pipeline",
        "engine/quoting.py": "engine.media",
        "engine/published/read/planted.py": "engine.published.claims",
        "ui/widgets/planted.py": "ui.compare",
    }
    for name, package in planted.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"from {package} import thing\n", encoding="utf-8")
    wanted = {name: {f"{package}.thing"} for name, package in planted.items()}
    assert all_upward() == wanted


def imported_modules() -> dict[str, set[str]]:
    """Each module of the product and the modules that it imports, also inside functions."""
    paths = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in files("engine", "ui", "pages")
    }
    return {
        name: {
            module
            for one in imports(path)
            if (module := one if one in paths else one.rpartition(".")[0]) in paths
        }
        - {name}
        for name, path in paths.items()
    }


def test_no_module_imports_itself_through_others() -> None:
    TopologicalSorter(imported_modules()).prepare()


def test_control_a_circle_of_imports_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "a.py").write_text("from engine import b\n", encoding="utf-8")
    late = "def late():\n    from engine.a import thing\n"
    (tmp_path / "engine" / "b.py").write_text(late, encoding="utf-8")
    with pytest.raises(CycleError):
        TopologicalSorter(imported_modules()).prepare()


def test_only_the_registry_names_a_concrete_model() -> None:
    concrete = {"llava", "eventgpt", "transformers_adapter"}
    for path in files("engine"):
        inside = path.parent.name == "models" or "demo" in path.parts
        assert inside or not parts_of(path) & concrete, path


def test_only_one_place_knows_a_library_or_reads_lines_as_dicts() -> None:
    """Others get a ResultRow of a line, which mypy lets nobody read by a string key."""
    every = files("engine", "ui", "pages")
    assert {*importing(every, "diskcache")} == {"engine/pipeline/feature_cache.py"}
    assert {*importing(every, "ray")} == {"engine/benchmark/cluster/ray_process.py"}
    reading = [path for path in every if "json_lines" in parts_of(path)]
    assert {path.parent.name for path in reading} == {"storage"}


@pytest.mark.parametrize(
    "module",
    [
        "engine",
        "engine.benchmark.cluster.run_session",
        pytest.param("engine.published.claims.published_report", marks=LOADS),
        pytest.param("engine.media.dataset", marks=LOADS),
        "engine.jobs.run_job",
        pytest.param("engine.jobs.benchmark_job", marks=LOADS),
        pytest.param("engine.jobs.model_work", marks=LOADS),
        "engine.report",
        pytest.param("engine.models.registry", marks=LOADS),
        "engine.__main__",
    ],
)
def test_importing_loads_neither_torch_nor_streamlit(module: str) -> None:
    assert loaded_by(module) == "[]"


@LOADS
def test_the_first_page_is_drawn_without_charts_and_models() -> None:
    parts = "ui.compare.compare_tabs, ui.compare.history, ui.widgets.dataset_picker"
    assert loaded_by(parts) == "['streamlit']"


def loaded_by(modules: str) -> str:
    """Which slow libraries importing these modules loads, in a process of its own."""
    heavy = ("torch", "streamlit", "pandas", "altair", "ray")
    code = f"import sys, {modules}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


NOT_FOR_A_LIST = (
    *("torch", "transformers", "streamlit", "pandas", "altair", "av", "PIL", "diskcache"),
    *("huggingface_hub.file_download", "httpx2", "email", "engine.jobs.queue"),
    *("engine.benchmark.execute", "engine.published.audit", "engine.report"),
    *("engine.demo.scenes", "engine.demo.writing"),
)


def imported_by(*arguments: str, cache: Path) -> set[str]:
    """Those of NOT_FOR_A_LIST that a command imports, in a process of its own."""
    code = (
        "import sys\nfrom engine.__main__ import main\n"
        "try:\n    code = main(sys.argv[1:])\nexcept SystemExit as end:\n    code = end.code\n"
        f"print(code, *[m for m in {NOT_FOR_A_LIST} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env=os.environ | {"STAGESCOPE_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    code_and_names = done.stderr.splitlines()[-1].split()
    assert code_and_names[0] == "0", done.stderr
    return set(code_and_names[1:])


@pytest.mark.loads
@pytest.mark.parametrize("command", ["samples", "models"])
def test_a_list_waits_for_no_heavy_import(command: str, tmp_path: Path) -> None:
    """What starts in under half a second stays so: its demo dataset is there already."""
    made = tmp_path / "demo-dataset"
    made.mkdir()
    (made / demo_dataset.MARKER).write_text(demo_dataset.VERSION)
    (made / demo_dataset.INDEX).write_text('[{"id": "one"}]')
    assert imported_by(command, cache=tmp_path) == set()


@pytest.mark.loads
def test_control_another_command_imports_more(tmp_path: Path) -> None:
    assert "engine.benchmark.execute" in imported_by("bench", "--help", cache=tmp_path)


def test_the_rules_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    import torch.nn\n    from streamlit import text\n")
    assert importing([bad], *HEAVY, "streamlit") == {"bad.py": {"torch.nn", "streamlit.text"}}
    assert not importing([bad], "stream", "torch.n")
