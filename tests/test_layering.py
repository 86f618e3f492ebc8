"""Who may import whom, and what importing costs."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from engine.demo import demo_dataset

ROOT = Path(__file__).resolve().parents[1]
SLOW = pytest.mark.slow  # a process each
HEAVY = {"torch", "transformers", "diskcache"}
# The rooms of the engine.  A room imports from rooms before it, never from one after it.
ROOMS = (
    *("errors", "quoting", "plain_files", "settings", "machine", "prompts", "media_options"),
    *("types", "timing", "palette", "media", "viewing", "decoding", "models", "storage"),
    *("pipeline", "analysis", "verify", "attribution", "report", "published", "benchmark", "jobs"),
    *("demo", "cli", "__main__"),
)
PUBLISHED = ("read", "audit", "claims")
MAX_LOOSE = 11  # modules directly in engine/
# Pages build on pages' parts: each folder of ui/ may import those before it.
UI_ROOMS = ("widgets", "charts", "compare", "benchmark", "results", "published", "models", "verify")


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


def roots(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(path)}


@pytest.mark.parametrize("path", files("engine"), ids=str)
def test_the_engine_knows_no_streamlit_and_no_pages(path: Path) -> None:
    assert not roots(path) & {"streamlit", "ui", "pages", "app"}


@pytest.mark.parametrize("path", files("engine"), ids=str)
def test_the_engine_replaces_nothing_for_the_whole_process(path: Path) -> None:
    assert "unittest" not in roots(path)


@pytest.mark.parametrize("path", [ROOT / "app.py", *files("pages", "ui")], ids=str)
def test_pages_and_ui_know_no_torch(path: Path) -> None:
    assert not roots(path) & HEAVY


@pytest.mark.parametrize("path", files("ui"), ids=str)
def test_ui_knows_no_page(path: Path) -> None:
    assert not roots(path) & {"pages", "app"}


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


@pytest.mark.parametrize(
    "path", [path for path in files("engine") if path != ROOT / "engine" / "__init__.py"], ids=str
)
def test_a_room_imports_only_from_rooms_before_it(path: Path) -> None:
    assert not upward(path, "engine", ROOMS)
    published = ROOT / "engine" / "published"
    if published in path.parents and path.parent != published:
        assert not upward(path, "engine.published", PUBLISHED)


@pytest.mark.parametrize(
    "path", [path for path in files("ui") if path.parent.name != "ui"], ids=str
)
def test_a_page_is_built_from_parts_before_it(path: Path) -> None:
    assert not upward(path, "ui", UI_ROOMS)


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
    path = tmp_path / "engine" / "media" / "planted.py"
    path.parent.mkdir(parents=True)
    path.write_text("from engine.pipeline import single_run\n", encoding="utf-8")
    assert upward(path, "engine", ROOMS) == {"engine.pipeline.single_run"}


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


@pytest.mark.parametrize("path", files("engine/published"), ids=str)
def test_published_files_need_no_models_and_no_runs(path: Path) -> None:
    known = {part.split(".")[1] for part in imports(path) if part.startswith("engine.")}
    assert not known & {"pipeline", "jobs", "models", "media", "cli", "demo"}


def test_only_the_registry_names_a_concrete_model() -> None:
    concrete = {"llava", "eventgpt", "transformers_adapter"}
    for path in files("engine"):
        inside = path.parent.name == "models" or "demo" in path.parts
        assert inside or not parts_of(path) & concrete, path


def test_only_the_cache_knows_diskcache() -> None:
    knowing = {path.name for path in files("engine") if "diskcache" in roots(path)}
    assert knowing == {"feature_cache.py"}


def test_only_storage_reads_lines_as_dicts() -> None:
    """Everybody else gets a ResultRow, which mypy lets nobody read by a string key."""
    reading = [path for path in files("engine", "ui", "pages") if "json_lines" in parts_of(path)]
    assert {path.parent.name for path in reading} == {"storage"}


def test_only_the_hub_knows_ray() -> None:
    knowing = {path.name for path in files("engine", "ui", "pages") if "ray" in roots(path)}
    assert knowing == {"ray_process.py"}


@pytest.mark.parametrize(
    "module",
    [
        "engine",
        "engine.benchmark.cluster.run_session",
        pytest.param("engine.published.claims.published_report", marks=SLOW),
        pytest.param("engine.media.dataset", marks=SLOW),
        "engine.jobs.run_job",
        pytest.param("engine.jobs.benchmark_job", marks=SLOW),
        pytest.param("engine.jobs.draft_job", marks=SLOW),
        "engine.report",
        pytest.param("engine.models.registry", marks=SLOW),
        "engine.__main__",
    ],
)
def test_importing_loads_neither_torch_nor_streamlit(module: str) -> None:
    heavy = ("torch", "streamlit", "pandas", "altair", "ray")
    code = f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


NOT_FOR_A_LIST = (
    *("torch", "transformers", "streamlit", "pandas", "altair", "av", "PIL", "diskcache"),
    *(
        "huggingface_hub.file_download",
        "httpx2",
        "email",
        "engine.jobs.queue",
        "engine.benchmark.execute",
    ),
    *("engine.published.audit", "engine.report", "engine.demo.scenes", "engine.demo.writing"),
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


@pytest.mark.parametrize("command", ["samples", "models"])
def test_a_list_waits_for_no_heavy_import(command: str, tmp_path: Path) -> None:
    """What starts in under half a second stays so: its demo dataset is there already."""
    made = tmp_path / "demo-dataset"
    made.mkdir()
    (made / demo_dataset.MARKER).write_text(demo_dataset.VERSION)
    (made / demo_dataset.INDEX).write_text('[{"id": "one"}]')
    assert imported_by(command, cache=tmp_path) == set()


def test_control_another_command_imports_more(tmp_path: Path) -> None:
    assert "engine.benchmark.execute" in imported_by("bench", "--help", cache=tmp_path)


def test_the_rules_can_fail(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    import torch.nn\n    from streamlit import text\n")
    assert roots(bad) & HEAVY and "streamlit" in roots(bad)
