"""What is compared: a dataset and its sample, or own files; and the models that answer.

Boundary: widgets in, Samples and ModelEntries out.  Every widget but the files lives in the URL
under its key.  Sentences of the engine are shown as they are.
"""

from __future__ import annotations

import concurrent.futures
import ipaddress
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

import streamlit as st

from engine import dataset, settings
from engine.dataset import Dataset
from engine.errors import BadInput, DatasetError
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.types import Sample
from ui import cards, links, media, runs, uploads
from ui.background import demo_scenes
from ui.text import count, names_of

DEMO = "demo"
MAX_MODELS = 3
GLANCE_S = 0.3  # scenes that are there already are not worth a notice
SOURCES = {"dataset": "Dataset", "files": "Own files"}
PICTURES = {"frames": "Camera frames", "events": "Event images"}


def pick_sample() -> Sample | None:
    """The sample chosen in the sidebar; None, with a sentence beside it, when there is none."""
    source = st.segmented_control(
        "Input",
        list(SOURCES),
        default="dataset",
        required=True,
        format_func=SOURCES.__getitem__,
        key="compare_source",
        bind="query-params",
        width="stretch",
    )
    try:
        sample = _own() if source == "files" else _from_dataset()
    except BadInput as error:
        cards.problem(str(error), "sample")
        return None
    if sample is not None:
        _show(sample)
    return sample


def _from_dataset() -> Sample | None:
    found = _read(_root())
    if found is None:
        return None
    for number, sentence in enumerate(found.problems[:3]):
        cards.notice(sentence, f"dataset_{number}")
    if not found.samples:
        raise DatasetError(f"{found.root} holds no sample: choose another dataset.")
    by_id = {sample.id: sample for sample in found.samples}
    labels = names_of(found.samples)
    links.say_unknown("compare_sample", labels.values(), "sample")
    chosen = st.selectbox(
        f"Sample ({len(by_id):,})",
        list(by_id),
        format_func=lambda name: labels.get(name, name),
        key="compare_sample",
        bind="query-params",
    )
    return by_id.get(str(chosen))


def _root() -> Path:
    """The chosen root; a path that is not in the settings counts on a loopback server only."""
    current = settings.load()
    known = [DEMO, *(str(path) for path in current.datasets)]
    if not on_loopback():
        links.say_unknown("compare_root", ["Demo scenes", *known], "dataset")
    chosen = st.selectbox(
        "Dataset",
        known,
        format_func=lambda name: "Demo scenes" if name == DEMO else name,
        accept_new_options=on_loopback(),
        key="compare_root",
        bind="query-params",
        help="Pick a dataset of the settings"
        + (", or type the path of a dataset's folder." if on_loopback() else "."),
    )
    if chosen == DEMO or chosen is None:
        return current.demo_dir
    if chosen not in known and not on_loopback():
        raise DatasetError("A path can be typed only while the server listens on this machine.")
    return settings.expand(str(chosen))


def on_loopback() -> bool:
    """Whether nobody but this machine can reach the server."""
    address = st.get_option("server.address")
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address or "").is_loopback
    except ValueError:
        return False


def _read(root: Path) -> Dataset | None:
    """The dataset of a root; None while the demo scenes are being made."""
    if root == settings.load().demo_dir:
        making = demo_scenes(root)
        if making.done() and not (root / f"{dataset.STEM}.json").is_file():
            demo_scenes.clear()  # somebody has emptied the cache folder
            making = demo_scenes(root)
        if not concurrent.futures.wait([making], GLANCE_S).done:
            _wait(making)
            return None
        if (error := making.exception()) is not None:
            demo_scenes.clear()
            raise DatasetError(f"The demo scenes could not be made in {root} ({error}).")
    return _read_once(root, _stamp(root))


@st.fragment(run_every=0.4)
def _wait(making: Future[Path]) -> None:
    if making.done():
        st.rerun()
    st.caption("Making the demo scenes: once, a few seconds …")


@st.cache_resource(show_spinner="Reading the dataset …", max_entries=8)
def _read_once(root: Path, changed: tuple[tuple[str, int], ...]) -> Dataset:
    return dataset.read(root)


def _stamp(root: Path) -> tuple[tuple[str, int], ...]:
    """Changes with the JSON, and with any file put into or taken out of a sequence's folder."""
    paths = [*root.glob("*.json"), *root.glob("*/"), *root.glob("*/*/")]
    try:
        return tuple(sorted((str(path), path.stat().st_mtime_ns) for path in paths))
    except OSError:
        return ()


def _own() -> Sample | None:
    files = st.file_uploader(
        "Your files",
        uploads.TYPES,
        accept_multiple_files=True,
        key="compare_files",
        max_upload_size=uploads.MAX_MB,
        help="One MP4, one raw .npy of events, PNG or JPEG pictures, or some of each.",
    )
    pictures = st.segmented_control(
        "The pictures are",
        list(PICTURES),
        default="frames",
        required=True,
        format_func=PICTURES.__getitem__,
        key="compare_pictures",
        bind="query-params",
    )
    st.caption(
        f"Up to {uploads.MAX_FILES} files of {uploads.MAX_MB} MB each. They are kept for this "
        "visit only, and a link does not carry them."
    )
    if not files:
        return None
    busy = any(not view.ended for view in runs.views())
    kept = uploads.visit().keep(files, busy)
    cards.small("\n".join(f"{path.name}: {name}" for name, path in kept), "kept_files")
    return dataset.own(kept, event_images=pictures == "events")


def _show(sample: Sample) -> None:
    picture = media.preview(sample)
    if picture is not None:
        st.image(picture, width=200, alt=f"Preview of sample {sample.id}.")
    for number, sentence in enumerate(sample.problems):
        cards.notice(sentence, f"sample_{number}")


def pick_models(entries: Sequence[ModelEntry], sample: Sample | None) -> tuple[ModelEntry, ...]:
    """Up to three entries, in the order of models.toml."""
    by_name = {entry.name: entry for entry in entries}
    reasons = {entry.name: _why_not(entry, sample) for entry in entries}
    links.say_unknown("compare_models", [entry.label for entry in entries], "model")
    able = [name for name, item in by_name.items() if registry.unavailable(item) is None]
    chosen = st.multiselect(
        f"Models (up to {MAX_MODELS})",
        list(by_name),
        default=(able or list(by_name))[:MAX_MODELS],
        format_func=lambda name: by_name[name].label if name in by_name else name,
        max_selections=MAX_MODELS,
        key="compare_models",
        bind="query-params",
        placeholder="Choose the models that answer",
    )
    _say_why_not([(by_name[name], reason) for name, reason in reasons.items() if reason])
    return tuple(entry for entry in entries if entry.name in chosen)


def _why_not(entry: ModelEntry, sample: Sample | None) -> str | None:
    return registry.unavailable(entry) if sample is None else registry.cannot_run(entry, sample)


def _say_why_not(pairs: Sequence[tuple[ModelEntry, str]]) -> None:
    if not pairs:
        return
    with st.expander(f"{count(len(pairs), 'model')} cannot run here", key="compare_why_not"):
        for entry, reason in pairs:
            st.text(entry.label)
            cards.small(reason, f"why_{entry.name}")
