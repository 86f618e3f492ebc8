"""The dataset picker: a root from the settings, the demo scenes, or a typed path."""

import concurrent.futures
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import streamlit as st

from engine import settings
from engine.demo import demo_dataset
from engine.errors import DatasetError
from engine.media import dataset
from engine.media.dataset import Dataset
from engine.models.checkpoint import is_loopback
from ui.widgets import links, notices
from ui.widgets.preparation import SCENES_NOW, demo_scenes

DEMO = "demo"
GLANCE_S = 0.3  # wait this long before showing a notice: the scenes may exist already


def pick(key: str, place: Any = st) -> Path:
    """The root chosen in `place`; a path outside the settings works on localhost only."""
    current = settings.load()
    known = [DEMO, *(str(path) for path in current.datasets)]
    if not on_loopback():
        links.say_unknown(key, ["Demo scenes", *known], "dataset")
    chosen = place.selectbox(
        "Dataset",
        known,
        format_func=lambda name: "Demo scenes" if name == DEMO else name,
        accept_new_options=on_loopback(),
        key=key,
        bind="query-params",
        help="A dataset from the settings"
        + (", or the path of a dataset folder." if on_loopback() else "."),
    )
    if chosen == DEMO or chosen is None:
        return current.demo_dir
    if chosen not in known and not on_loopback():
        raise DatasetError("Typed paths work only while the server listens on localhost.")
    return settings.expand(str(chosen))


def choose(page: str) -> Dataset | None:
    """The dataset chosen on a page; None, with a message, if it cannot be read."""
    found = None
    with notices.telling(f"{page}_dataset", notices.problem):
        found = read(pick(f"{page}_root"))
    return found


def on_loopback() -> bool:
    """Whether only this machine can reach the server."""
    return is_loopback(st.get_option("server.address") or "")


def read(root: Path, first: bool = False) -> Dataset | None:
    """The dataset of a root, with notices of its problems; None while demo scenes are made, or, for
    the `first` scenes, those that ship."""
    if root == settings.load().demo_dir and making() and not _made(root, first):
        return None
    found = _read_once(root, _stamp(root))
    notices.each(found.problems[:3], "dataset")
    if not found.samples:
        raise DatasetError(f"{found.root} has no samples: choose another dataset.")
    return found


def making() -> bool:
    return demo_dataset.version(settings.load().demo_dir) != demo_dataset.VERSION


def _made(root: Path, first: bool) -> bool:
    """Says while others are made; DatasetError if those that are asked for cannot be made."""
    if first:
        demo_dataset.first_scenes(root)
    work = demo_scenes(root)
    if not first:
        SCENES_NOW.set()
        concurrent.futures.wait([work], GLANCE_S)
    if not work.done():
        _wait(work, "More demo scenes" if first else "The demo scenes")
        return first
    demo_scenes.clear()  # for the next try: it failed, or the cache folder was emptied
    if (error := work.exception()) is None:
        return not making() or _made(root, first)
    sentence = f"The demo scenes could not be made in {root} ({error})."
    if not first:
        raise DatasetError(sentence)
    notices.notice(sentence, "demo_scenes")
    return True


def read_quietly(root: Path) -> Dataset:
    """The dataset of a root without notices; DatasetError if it cannot be read."""
    return _read_once(root, _stamp(root))


@st.fragment(run_every=0.4)
def _wait(work: Future[Path], what: str) -> None:
    if work.done():
        st.rerun()
    st.caption(f"{what} are being made (once, a few seconds) …")


@st.cache_resource(show_spinner="Reading the dataset …", max_entries=8)
def _read_once(root: Path, changed: str) -> Dataset:
    return dataset.read(root)


def _stamp(root: Path) -> str:
    """Changes with the lists, and when a file is added to or removed from a folder."""
    lists = [*root.glob("*.json"), *root.glob("questions/*.json"), *root.glob("windows.csv")]
    paths = [root, *lists, *root.glob("*/"), *root.glob("*/*/")]
    try:
        return "\n".join(sorted(f"{path} {path.stat().st_mtime_ns}" for path in paths))
    except OSError:
        return ""
