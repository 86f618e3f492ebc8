"""The app over tiny checkpoints and a demo dataset of its own, without a browser."""

import os
import shutil
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest

from engine import settings
from engine.jobs.queue import Job
from ui.widgets import choices, preparation

ROOT = Path(__file__).resolve().parents[2]
Open = Callable[..., AppTest]
Ends = Callable[[Job], None]


@pytest.fixture
def _visited(monkeypatch: pytest.MonkeyPatch) -> None:
    """AppTest forgets before each run that app.py has called st.navigation; a server does not."""
    start = PagesManager.__init__

    def remember(self: PagesManager, *arguments: Any, **named: Any) -> None:
        start(self, *arguments, **named)
        PagesManager.uses_pages_directory = False

    monkeypatch.setattr(PagesManager, "__init__", remember)


@pytest.fixture
def app(
    tiny_models: Path, demo_scenes: Path, _visited: None, monkeypatch: pytest.MonkeyPatch
) -> Open:
    """Opens the app as a link with these parameters would.

    The demo scenes are hard links: a test that changes one removes it first.
    """
    monkeypatch.chdir(ROOT)
    done: Future[None] = Future()
    done.set_result(None)
    monkeypatch.setattr(preparation, "warm_up", lambda: done)
    shutil.copytree(demo_scenes, settings.load().demo_dir, copy_function=os.link)
    st.cache_resource.clear()
    st.cache_data.clear()
    preparation.demo_scenes(settings.load().demo_dir).result()

    def opened(page: str | None = None, /, **parameters: str | list[str]) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
        if page:
            at.switch_page(page)
        prefix = Path(page).stem if page else "compare"
        for name, value in parameters.items():
            at.query_params[f"{prefix}_{name}"] = value
        at.run()
        assert not at.exception
        return at

    return opened


def quantize(checkpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The models whose entry has this text cannot be loaded: quantized weights need CUDA."""
    models = settings.load().models_file
    changed = models.with_name("quantized.toml")
    text = models.read_text(encoding="utf-8")
    text = text.replace(checkpoint, f'{checkpoint}\nquantization = "4bit"')
    changed.write_text(text, encoding="utf-8")
    monkeypatch.setenv("STAGESCOPE_MODELS", str(changed))


@pytest.fixture
def ends_meanwhile(monkeypatch: pytest.MonkeyPatch) -> Ends:
    """Makes a job that has ended look live until the page has drawn its buttons."""

    def arrange(job: Job) -> None:
        job.state = "running"

        def drawn(*arguments: Any) -> bool:
            pressed = draw(*arguments)
            job.state = "done"
            return pressed

        draw = choices.run_and_cancel
        monkeypatch.setattr(choices, "run_and_cancel", drawn)

    return arrange
