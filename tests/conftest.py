"""What several tests share: a cache of their own, tiny models, real recordings."""

import faulthandler
import gc
import io
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from filelock import FileLock
from PIL import Image

from engine.demo.demo_dataset import ensure_dataset
from engine.machine import device
from engine.models import templates
from engine.types import Sample

Rendered = list[tuple[str, str]]
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
REAL = SHARED / "real"
RECORDED = SHARED / "recorded"


def slow_unless(quick: Iterable[Any], every: Iterable[Any]) -> list[Any]:
    """The cases of a test, of which some are quick and the others only in make test-slow; a tuple
    has a value for each parameter."""
    marks = pytest.mark.slow
    return [
        one
        if one in quick
        else pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=marks)
        for one in every
    ]


def pytest_collection() -> None:
    """What is imported stays: looking through it meanwhile finds nothing."""
    gc.disable()


def pytest_collection_finish() -> None:
    """The libraries are imported by now and stay: each collection would look through them.

    pytest would hang its handlers on each logger that does not propagate, six times a test, and
    Streamlit and torch have a hundred of these.  Where they propagate, the root's are enough.
    """
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            logger.propagate = True
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """Pytest stops its timer when a test fails, for a person at a debugger; but closing a frozen
    browser never ends either, so the timer of faulthandler_timeout starts again."""
    seconds = float(node.config.getini("faulthandler_timeout") or 0)
    if seconds and isinstance(node, pytest.Item):
        file = node.config.stash[fault_handler_stderr_fd_key]
        faulthandler.dump_traceback_later(seconds, file=file, exit=True)


@pytest.fixture(autouse=True)
def _main_stays() -> Iterator[None]:
    """A page under test becomes __main__, which a process that is spawned later would run again."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(scope="session", autouse=True)
def _libraries_stay_frozen() -> Iterator[None]:
    """release() thaws what is frozen, as behind a page the models are.  Here the libraries alone
    are, so it collects without that, in 10 ms and not in 250."""
    collects = SimpleNamespace(collect=gc.collect, get_freeze_count=lambda: 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "gc", collects)
        yield


@pytest.fixture(scope="session", autouse=True)
def _packages_looked_through_once() -> Iterator[None]:
    """Each AppTest looks for components in all installed packages, which takes longer than most
    pages; they are the same every time."""
    with pytest.MonkeyPatch.context() as patch:
        if "streamlit" in sys.modules:  # a file that was collected may draw something
            from streamlit.components.v2 import manifest_scanner

            looked = cache(manifest_scanner.scan_component_manifests)
            patch.setattr(manifest_scanner, "scan_component_manifests", looked)
        yield


@pytest.fixture(scope="session", autouse=True)
def templates_in_this_process() -> Iterator[Callable[[str], Rendered]]:
    """A second for each process that renders a template is spent in tests/models/test_templates.py
    alone, which gets the function that starts one."""
    own = templates._rendered

    @cache
    def here(request: str) -> Rendered:
        asked = json.loads(request)
        given = asked["template"], asked["variables"]
        return [templates.rendered(*given, one) for one in asked["contents"]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(templates, "_rendered", here)
        yield own


@pytest.fixture(scope="session")
def demo_scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole demo dataset, made once for all workers: it takes 6 s and is the same each time."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with FileLock(folder / "demo.lock"):
        return ensure_dataset(folder / "demo" / "demo-dataset")


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny checkpoint per family and their models.toml."""
    from tests import tiny

    folder = tmp_path_factory.mktemp("tiny")
    tiny.models_toml(folder)
    return folder


@pytest.fixture(scope="session")
def family_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a family's small checkpoint, which is written at its first use."""
    from tests.models import family_checkpoints

    root = tmp_path_factory.mktemp("families")
    return cache(lambda family: family_checkpoints.build(family, root / family))


@pytest.fixture
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of the settings, empty and the test's own."""
    from engine.pipeline import feature_cache

    folder = tmp_path / "cache"
    monkeypatch.setenv("STAGESCOPE_CACHE_DIR", str(folder))
    monkeypatch.setenv("STAGESCOPE_DEVICE", "cpu")
    feature_cache.shared.cache_clear()
    return folder


@pytest.fixture
def tiny_models(tiny_folder: Path, cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The registry holds the three tiny models (tiny-eventgpt, tiny-video_llava, tiny-llava)."""
    monkeypatch.setenv("STAGESCOPE_MODELS", str(tiny_folder / "models.toml"))
    return tiny_folder


@pytest.fixture
def declared_llava(tiny_models: Path) -> Iterator[str]:
    """The name of a tiny model whose checkpoint declares one trained question: "Is it dark?"."""
    from engine.models import model_card, registry

    file, entry = tiny_models / "llava" / model_card.TRAINED, registry.entry("tiny-llava")
    registry.unload(entry)
    file.write_text('{"questions": ["Is it dark?"]}', encoding="utf-8")
    yield entry.name
    file.unlink()
    registry.unload(entry)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without their charts, which take seconds: for tests of anything else."""
    from engine.report import charts

    monkeypatch.setattr(charts, "svgs", lambda some: ["<svg></svg>"] * len(some))


def picture(path: Path, seed: int, shape: tuple[int, int] = (24, 32)) -> Path:
    """A small random PNG; `shape`: its height and width."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_png(seed, shape))
    return path


@cache  # thousands are asked for, and a few dozen seeds
def _png(seed: int, shape: tuple[int, int]) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 255, (*shape, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def make_sample(folder: Path, seed: int = 0) -> Sample:
    """A sample that every family can take: 5 event images and 10 frames."""
    events = tuple(picture(folder / f"e{seed}_{i}.png", seed + i) for i in range(5))
    frames = tuple(picture(folder / f"f{seed}_{i:06d}.png", seed + 50 + i) for i in range(10))
    return Sample(id=f"s{seed}", sequence="test", event_images=events, frames=frames)


def shaped_sample(folder: Path, seed: int = 0) -> Sample:
    """Event images that are wide and tall in turn, and wide frames."""
    wide, tall = (20, 60), (60, 20)
    events = tuple(
        picture(folder / f"e{seed}_{i}.png", seed + i, (wide, tall)[i % 2]) for i in range(5)
    )
    frames = tuple(picture(folder / f"f{seed}_{i:06d}.png", seed + 50 + i, wide) for i in range(10))
    return Sample(id=f"s{seed}", sequence="test", event_images=events, frames=frames)


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    return make_sample(tmp_path / "sample")


@pytest.fixture
def real_root() -> Path:
    if not REAL.is_dir():
        pytest.skip("the real recordings (../shared/data/real) are not on this machine")
    return REAL
