"""Who may import whom, and what importing costs."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from engine.demo import dataset as demo_dataset

ROOT = Path(__file__).resolve().parents[1]
SLOW = pytest.mark.slow  # a process each
HEAVY = {"torch", "transformers", "diskcache"}
# module -> engine modules it may not know (design: jobs -> pipeline -> models, media, cache ...)
FORBIDDEN = {
    "engine/types.py": {"pipeline", "jobs", "models", "media", "cache", "dataset", "settings"},
    "engine/errors.py": {"types", "pipeline", "jobs", "models", "media", "cache"},
    "engine/decode.py": {"pipeline", "jobs", "models", "media", "cache", "dataset"},
    "engine/llama.py": {"decode", "compiled", "pipeline", "jobs", "models", "media", "cache"},
    "engine/compiled.py": {"pipeline", "jobs", "models", "media", "cache", "dataset"},
    "engine/timing.py": {"pipeline", "jobs", "models", "media", "cache", "dataset"},
    "engine/cache.py": {"pipeline", "jobs", "models", "media", "dataset"},
    "engine/pipeline.py": {"jobs", "dataset", "demo", "cli"},
    "engine/prefixes.py": {"pipeline", "jobs", "media", "dataset", "reuse"},
    "engine/reuse.py": {"pipeline", "jobs", "media", "dataset", "cache"},
    "engine/drafting.py": {"pipeline", "jobs", "models", "media", "cache", "dataset"},
    "engine/drafts.py": {"pipeline", "jobs", "models", "media", "drafting", "draft_trial"},
    "engine/draft_trial.py": {"pipeline", "jobs", "draft_job", "dataset", "cli"},
    "engine/batching.py": {"pipeline", "jobs", "models", "media", "cache", "dataset"},
    "engine/batch_run.py": {"jobs", "dataset", "demo", "cli", "benchmark", "asking", "plan"},
    "engine/asking.py": {"benchmark", "frame", "report", "cli", "store"},
    "engine/figures/throughput.py": {
        "pipeline",
        "jobs",
        "models",
        "media",
        "benchmark",
        "report",
        "pairs",
    },
    "engine/imported/acceptance.py": {"records", "audit", "pipeline", "jobs", "models", "types"},
    "engine/imported/headlines.py": {"audit", "pipeline", "jobs", "models", "report"},
    "engine/imported/report.py": {"pipeline", "jobs", "models", "cli"},
    "engine/memory.py": {"pipeline", "jobs", "models", "media", "cache", "dataset"},
    "engine/device.py": {"pipeline", "jobs", "models", "media", "cache", "dataset", "memory"},
    "engine/download.py": {"pipeline", "jobs", "cli", "media", "cache"},
    "engine/jobs.py": {"pipeline", "run_job", "dataset", "media", "cli"},
    "engine/store.py": {"pipeline", "jobs", "models", "media", "benchmark", "frame", "report"},
    "engine/figures/frame.py": {
        "pipeline",
        "jobs",
        "models",
        "media",
        "benchmark",
        "rows",
        "report",
    },
    "engine/figures/stats.py": {"pipeline", "jobs", "models", "media", "store", "frame", "report"},
    "engine/benchmark.py": {"report", "cli", "benchmark_job", "run_job", "cluster"},
    "engine/cluster/dispatch.py": {"benchmark", "pipeline", "jobs", "models", "store", "cli"},
    "engine/cluster/worker.py": {"benchmark", "store", "cli", "report"},
    "engine/report/findings.py": {"pipeline", "jobs", "models", "media", "benchmark", "cli"},
}


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


def files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def roots(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(path)}


@pytest.mark.parametrize("path", files("engine"), ids=str)
def test_the_engine_knows_no_streamlit_and_no_pages(path: Path) -> None:
    assert not roots(path) & {"streamlit", "ui", "pages", "app"}


@pytest.mark.parametrize("path", [ROOT / "app.py", *files("pages", "ui")], ids=str)
def test_pages_and_ui_know_no_torch(path: Path) -> None:
    assert not roots(path) & HEAVY


@pytest.mark.parametrize("path", files("ui"), ids=str)
def test_ui_knows_no_page(path: Path) -> None:
    assert not roots(path) & {"pages", "app"}


@pytest.mark.parametrize(("name", "others"), FORBIDDEN.items())
def test_inside_the_engine_imports_point_downwards(name: str, others: set[str]) -> None:
    inside = [part.split(".") for part in imports(ROOT / name) if part.startswith("engine.")]
    assert not {one for parts in inside for one in parts[1:3]} & others


@pytest.mark.parametrize("path", files("engine/records", "engine/audit"), ids=str)
def test_readers_and_rules_know_no_models_and_no_runs(path: Path) -> None:
    known = {part.split(".")[1] for part in imports(path) if part.startswith("engine.")}
    assert not known & {"pipeline", "jobs", "models", "media", "cache", "cli"}
    assert "audit" not in known or path.parent.name == "audit"


def test_only_the_registry_names_a_concrete_model() -> None:
    concrete = {"llava", "video_llava", "eventgpt", "hf_llava"}
    for path in files("engine"):
        inside = path.parent.name == "models" or "demo" in path.parts
        names = {part for name in imports(path) for part in name.split(".")}
        assert inside or not names & concrete, path


def test_only_the_cache_knows_diskcache() -> None:
    knowing = {path.name for path in files("engine") if "diskcache" in roots(path)}
    assert knowing == {"cache.py"}


def test_only_the_hub_and_its_door_know_ray() -> None:
    knowing = {path.name for path in files("engine", "ui", "pages") if "ray" in roots(path)}
    assert knowing == {"hub.py", "joining.py"}


@pytest.mark.parametrize(
    "module",
    [
        "engine",
        "engine.cluster.executor",
        pytest.param("engine.imported.report", marks=SLOW),
        pytest.param("engine.dataset", marks=SLOW),
        "engine.run_job",
        pytest.param("engine.benchmark_job", marks=SLOW),
        pytest.param("engine.draft_job", marks=SLOW),
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
    *("huggingface_hub.file_download", "httpx2", "email", "engine.jobs", "engine.benchmark"),
    *("engine.audit", "engine.report", "engine.demo.scenes", "engine.demo.writing"),
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
    assert "engine.benchmark" in imported_by("bench", "--help", cache=tmp_path)


def test_the_rules_can_fail(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    import torch.nn\n    from streamlit import text\n")
    assert roots(bad) & HEAVY and "streamlit" in roots(bad)
