"""What is prepared behind the first page: the demo scenes, then the models, then the charts.

Boundary: threads that call the engine once per server; pages only look whether a thing is there.
One after another, because each of them keeps the processor busy.
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

HEAD_START_S = 0.8  # the browser draws the first page before imports take the processor


@st.cache_resource(show_spinner=False)
def demo_scenes(root: Path) -> Future[Path]:
    """The demo dataset, being made from the first call on."""
    making: Future[Path] = Future()

    def make() -> None:
        from engine.demo.demo_dataset import (
            ensure_dataset,  # the page does not wait for this import
        )

        try:
            making.set_result(ensure_dataset(root))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is said on the page
            making.set_exception(error)

    threading.Thread(target=make, name="demo-scenes", daemon=True).start()
    return making


@st.cache_resource(show_spinner=False)
def cache_code() -> Future[None]:
    """The feature cache's code, and with it the models' libraries: imported from here on."""
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
    """Load the demo models, and what charts import, once the demo scenes are there."""

    def prepare() -> None:
        time.sleep(HEAD_START_S)
        with contextlib.suppress(StageScopeError):  # the page shows the same sentence
            demo_scenes(settings.load().demo_dir).exception()
            queue.manager().warm_up()
        importlib.import_module("ui.charts.run_charts")

    threading.Thread(target=prepare, name="warm-up", daemon=True).start()
