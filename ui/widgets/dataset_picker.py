"""The dataset picker: a root from the settings, the demo scenes, or a typed path; and the sample of
the Compare page: own files, or a dataset with its gallery."""

import concurrent.futures
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine import settings
from engine.demo import demo_dataset
from engine.errors import DatasetError
from engine.media import dataset
from engine.media.dataset import Dataset, search
from engine.models.checkpoint import ModelEntry, is_loopback
from engine.types import Sample
from ui.widgets import choices, contact_sheets, links, notices, uploads
from ui.widgets.preparation import SCENES_NOW, demo_scenes
from ui.widgets.text import count, escape, names_of

DEMO = "demo"
SOURCES = {"dataset": "Dataset", "files": "Own files"}
PICTURES = {"frames": "Camera frames", "events": "Event images"}
SAID = 5  # sentences about files that are shown at once
SAMPLE, INPUT, SOURCE = "compare_sample", "compare_input", "compare_source"
PER_PAGE = 24
WORDS, SEQUENCE = "compare_gallery_words", "compare_gallery_sequence"
USABLE, PAGE = "compare_gallery_usable", "compare_gallery_page"
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


def pick_sample(entries: Sequence[ModelEntry]) -> Sample | None:
    """The sample chosen in the sidebar; None, with a message, if there is none."""
    with st.popover("Dataset or own files", key=INPUT, width="stretch", on_change="rerun"):
        source = choices.buttons("Input", SOURCES, SOURCE, width="stretch", pressed=_fold)
        chosen = st.container()
    sample = None
    with notices.telling("sample", notices.problem):
        if source == "files":
            sample = _own()
        else:
            sample = _from_dataset(pick("compare_root", chosen), entries)
    if sample is None:
        return None
    if picture := contact_sheets.preview(sample):
        st.image(picture, width=200, alt=f"Preview of sample {sample.id}.")
    notices.each(sample.problems, "sample")
    return sample


def _fold() -> None:
    """Closes the box of inputs if it would cover the uploader."""
    st.session_state[INPUT] = st.session_state[SOURCE] != "files"


def _from_dataset(root: Path, entries: Sequence[ModelEntry]) -> Sample | None:
    found = read(root, first=True)
    if found is None:
        return None
    by_id = {sample.id: sample for sample in found.samples}
    labels = names_of(found.samples)
    if st.query_params.get(SAMPLE) not in (None, *labels.values()) and making():
        SCENES_NOW.set()  # a link may name one that is still to be made
        return None
    links.say_unknown("compare_sample", labels.values(), "sample")
    chosen = choices.listed(f"Sample ({len(by_id):,})", labels, SAMPLE)
    ids = list(by_id)
    place = ids.index(chosen) if chosen in by_id else 0
    with st.container(horizontal=True, gap="xsmall", key="compare_gallery_row"):
        choices.neighbours(ids, place, SAMPLE, st.session_state, "")
        _opener(found, labels, entries, place)
    return by_id.get(chosen)


def _own() -> Sample | None:
    files = st.file_uploader(
        "Your files",
        uploads.TYPES,
        accept_multiple_files=True,
        key="compare_files",
        max_upload_size=uploads.MAX_MB,
        help="One video (MP4, MOV, MKV, WebM, AVI, MPEG-TS or animated GIF), one recording of "
        "events (NPY, NPZ, RAW, DAT, AEDAT4, HDF5, BIN, CSV or TXT), pictures (PNG, JPEG or still "
        "GIF), or a mix. The content decides the file type.",
    )
    pictures = choices.buttons("Type of the pictures", PICTURES, "compare_pictures")
    st.caption(
        f"Up to {uploads.MAX_FILES} files of {uploads.MAX_MB} MB each. They are deleted after "
        "this visit and are not part of a link."
    )
    if not files:
        return None
    sample, rejected = uploads.gather(files, event_images=pictures == "events")
    notices.each(rejected[:SAID], "file", notices.problem)
    if rest := rejected[SAID:]:
        with st.expander(f"{count(len(rest), 'more file')} not used", key="compare_rejected"):
            for number, sentence in enumerate(rest, SAID):
                notices.small(sentence, f"file_{number}")
    if sample is None:
        notices.problem("None of these files can be used.", "no_file")
    return sample


@st.fragment  # the page behind the gallery is not drawn again
def _opener(
    found: Dataset, labels: Mapping[str, str], entries: Sequence[ModelEntry], place: int
) -> None:
    page = (place // PER_PAGE + 1,)
    if st.button("Gallery", key="compare_gallery", shortcut="G", on_click=_begin, args=page):
        _gallery(found, labels, entries)


def _begin(page: int) -> None:
    """At the page of the chosen sample, without the filters of the last time."""
    for key in (WORDS, SEQUENCE, USABLE):
        st.session_state.pop(key, None)
    _turn_to(page)


def _turn_to(page: int = 1) -> None:
    st.session_state[PAGE] = page


@st.dialog("Gallery", width="large")
def _gallery(found: Dataset, labels: Mapping[str, str], entries: Sequence[ModelEntry]) -> None:
    # The search field and both filters, and the samples that they leave.
    sequences = sorted({sample.sequence for sample in found.samples if sample.sequence})
    kinds = {entry.name: entry.kind for entry in entries}
    names = {entry.name: entry.label for entry in entries}
    left, middle, right = st.columns([2, 1.5, 2.5], vertical_alignment="bottom")
    hint = "Name, question or content"
    words = left.text_input("Search", key=WORDS, placeholder=hint, on_change=_turn_to)
    hint = f"All {len(sequences):,}" if sequences else "None"
    sequence = middle.selectbox(
        "Sequence", sequences, None, key=SEQUENCE, placeholder=hint, on_change=_turn_to
    )
    usable = right.multiselect(
        "Usable by",
        list(kinds),
        format_func=lambda name: names.get(name, name),
        key=USABLE,
        placeholder="Any model",
        on_change=_turn_to,
    )
    needed = [kinds[name] for name in usable if name in kinds]
    shown = search(found.samples, words or "", sequence or "", needed)
    if not shown:
        notices.hint("No sample matches: shorten the search or remove a filter.")
        return
    pages = -(-len(shown) // PER_PAGE)
    st.session_state[PAGE] = min(st.session_state.get(PAGE, 1), pages)
    with st.container(horizontal=True, vertical_alignment="center", key="gallery_pages"):
        every = f" of {len(found.samples):,}" * (len(shown) < len(found.samples))
        st.caption(f"{count(len(shown), 'sample')}{every}", width="content")
        page = st.pagination(pages, key=PAGE)
    part = shown[(page - 1) * PER_PAGE : page * PER_PAGE]
    with st.container(horizontal=True, gap="small", key="gallery_grid"):
        places = [_cell(number, sample, labels[sample.id]) for number, sample in enumerate(part)]
    for sample, place in zip(part, places, strict=True):  # names first, then picture by picture
        if picture := contact_sheets.preview(sample):
            alt = f"Preview of sample {labels[sample.id]}."
            place.image(picture, alt=alt, width="stretch")
        else:
            place.caption("No picture")


def _cell(number: int, sample: Sample, label: str) -> DeltaGenerator:
    """A frame with a button that chooses the sample; returns the picture's place."""
    with st.container(gap="xsmall", key=f"gallery_cell_{number}"):
        place = st.container(key=f"gallery_picture_{number}")
        pressed = st.button(
            escape(label),
            key=f"compare_gallery_choose_{number}",
            type="primary" if st.session_state.get(SAMPLE) == sample.id else "secondary",
            on_click=st.session_state.update,
            args=({SAMPLE: sample.id},),
            width="stretch",
        )
        if sample.missing:
            st.caption(f"No {', no '.join(sample.missing)}")
    if pressed:
        st.rerun()
    return place
