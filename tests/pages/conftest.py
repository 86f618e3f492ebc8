"""The app over tiny checkpoints and a demo dataset of its own, without a browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine import settings
from engine.demo.dataset import ensure_dataset
from ui import background

ROOT = Path(__file__).resolve().parents[2]
Open = Callable[..., AppTest]


@pytest.fixture(scope="session")
def demo_scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ensure_dataset(tmp_path_factory.mktemp("demo") / "demo-dataset")


@pytest.fixture
def app(tiny_models: Path, demo_scenes: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Opens the app as a link with these parameters would."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(background, "warm_up", lambda: None)
    shutil.copytree(demo_scenes, settings.load().demo_dir)
    st.cache_resource.clear()
    st.cache_data.clear()
    background.demo_scenes(settings.load().demo_dir).result()

    def opened(page: str | None = None, **parameters: str | list[str]) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
        for name, value in parameters.items():
            at.query_params[f"compare_{name}"] = value
        at.run()
        if page:
            at.switch_page(page).run()
        assert not at.exception
        return at

    return opened
