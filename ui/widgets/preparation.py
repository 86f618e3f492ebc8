"""Background work of a fresh server: demo scenes, then demo models, then chart libraries.

Boundary: threads that call the engine once per server; pages only check whether they are done.
They run one after another, because each keeps the CPU busy.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import streamlit as st

from engine import settings
from engine.errors import StageScopeError
from engine.jobs import queue

HEAD_START_S = 0.8  # the browser draws the first page before imports use the CPU


@st.cache_resource(show_spinner=False)
def demo_scenes(root: Path) -> Future[Path]:
    """The demo dataset; the first call starts making it."""
    making: Future[Path] = Future()

    def make() -> None:
        from engine.demo.demo_dataset import (
            ensure_dataset,  # the page does not wait for this import
        )

        try:
            making.set_result(ensure_dataset(root))
        except Exception as error:  # noqa: BLE001 - the page shows any error
            making.set_exception(error)

    threading.Thread(target=make, name="demo-scenes", daemon=True).start()
    return making


@st.cache_resource(show_spinner=False)
def cache_code() -> Future[None]:
    """The import of the feature cache, and with it of torch; the first call starts it."""
    importing: Future[None] = Future()

    def load() -> None:
        try:
            importlib.import_module("engine.pipeline.feature_cache")
            importing.set_result(None)
        except ImportError as error:
            importing.set_exception(error)

    threading.Thread(target=load, name="feature-cache", daemon=True).start()
    return importing


@st.cache_resource(show_spinner=False)
def warm_up() -> None:
    """Load the demo models and import the replay and chart libraries once the scenes exist."""

    def prepare() -> None:
        time.sleep(HEAD_START_S)
        with contextlib.suppress(StageScopeError):  # the page shows the same message
            demo_scenes(settings.load().demo_dir).exception()
            queue.manager().warm_up()
        for name in ("engine.report.replay", "engine.report.charts"):
            importlib.import_module(name)

    threading.Thread(target=prepare, name="warm-up", daemon=True).start()
