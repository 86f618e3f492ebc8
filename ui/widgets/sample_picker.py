"""The sample (from a dataset or own files) and the models of the Compare page.

All widgets except the files are in the URL under their keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from engine.errors import BadInput, ModelUnavailable
from engine.models import checkpoint, registry
from engine.models.checkpoint import ModelEntry
from engine.types import Sample
from ui.widgets import (
    choices,
    contact_sheets,
    dataset_picker,
    gallery,
    links,
    notices,
    uploads,
    variant_picker,
)
from ui.widgets.followed_runs import MAX_MODELS
from ui.widgets.text import count, names_of

DEFAULT_MODELS = 3
SOURCES = {"dataset": "Dataset", "files": "Own files"}
PICTURES = {"frames": "Camera frames", "events": "Event images"}
NOTHING: Mapping[str, str] = {}
SAID = 5  # sentences about files that are shown at once


def pick_sample(entries: Sequence[ModelEntry]) -> Sample | None:
    """The sample chosen in the sidebar; None, with a message, if there is none."""
    source = choices.buttons("Input", SOURCES, "compare_source", width="stretch")
    try:
        sample = _own() if source == "files" else _from_dataset(entries)
    except BadInput as error:
        notices.problem(str(error), "sample")
        return None
    if sample is None:
        return None
    picture = contact_sheets.preview(sample)
    if picture is not None:
        st.image(picture, width=200, alt=f"Preview of sample {sample.id}.")
    for number, sentence in enumerate(sample.problems):
        notices.notice(sentence, f"sample_{number}")
    return sample


def _from_dataset(entries: Sequence[ModelEntry]) -> Sample | None:
    found = dataset_picker.read(dataset_picker.pick("compare_root"))
    if found is None:
        return None
    by_id = {sample.id: sample for sample in found.samples}
    labels = names_of(found.samples)
    links.say_unknown("compare_sample", labels.values(), "sample")
    chosen = st.selectbox(
        f"Sample ({len(by_id):,})",
        list(by_id),
        format_func=lambda name: labels.get(name, name),
        key=gallery.SAMPLE,
        bind="query-params",
    )
    gallery.controls(found, labels, entries)
    return by_id.get(str(chosen))


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
    found = uploads.gather(files, event_images=pictures == "events")
    for number, sentence in enumerate(found.rejected[:SAID]):
        notices.problem(sentence, f"file_{number}")
    if rest := found.rejected[SAID:]:
        with st.expander(f"{count(len(rest), 'more file')} not used", key="compare_rejected"):
            for number, sentence in enumerate(rest, SAID):
                notices.small(sentence, f"file_{number}")
    if found.sample is None:
        notices.problem("None of these files can be used.", "no_file")
    return found.sample


def pick_models(entries: Sequence[ModelEntry], sample: Sample | None) -> tuple[ModelEntry, ...]:
    """Up to six models or variants of them for this sample."""
    missing = sample.missing if sample is not None else {}
    return pick_loadable_models(entries, "compare", DEFAULT_MODELS, MAX_MODELS, missing)


def pick_loadable_models(
    entries: Sequence[ModelEntry],
    page: str,
    default: int | None = None,
    most: int | None = None,
    missing: Mapping[str, str] = NOTHING,
) -> tuple[ModelEntry, ...]:
    """The chosen models, each followed by its chosen variants; the default is the first `default`
    that can be loaded, or all.

    Without those whose kind of input is `missing`: they stay in the list, for the next sample.
    """
    listed = variant_picker.in_list(page, entries)
    shown = [one for entry in entries
             for one in (entry, *(item for item in listed if item.of == entry))]  # fmt: skip
    reasons = {entry: registry.unavailable(entry) for entry in shown}
    able = [entry.name for entry in entries if reasons[entry] is None]
    if most and not able:
        able = [entry.name for entry in entries]
    labels = {entry.name: entry.label for entry in shown}
    links.say_unknown(f"{page}_models", labels.values(), "model")
    if most:
        links.say_more(f"{page}_models", most)
    chosen = st.multiselect(
        f"Models (up to {most})" if most else "Models",
        list(labels),
        default=able[:default],
        format_func=lambda name: labels.get(name, name),
        max_selections=most,
        key=f"{page}_models",
        bind="query-params",
        placeholder="Choose models",
    )
    variant_picker.draw(page, entries, chosen, most)
    left_out = [entry for entry in shown if entry.name in chosen and entry.kind in missing]
    for entry in left_out:
        notices.notice(f"{entry.label} is left out. {missing[entry.kind]}", f"left_{entry.name}")
    others = [entry for entry in shown if entry not in left_out]
    why_not = {one: why for one in others if (why := missing.get(one.kind) or reasons[one])}
    if why_not:
        state = "cannot run" if any(map(installed, why_not)) else "not installed"
        with st.expander(f"{count(len(why_not), 'model')} {state}", key=f"{page}_why_not"):
            for entry, reason in why_not.items():
                st.text(entry.label)
                notices.small(reason, f"why_{entry.name}")
    return tuple(entry for entry in others if entry.name in chosen)


def installed(entry: ModelEntry) -> bool:
    """Whether the checkpoint's files are on this machine."""
    try:
        checkpoint.locate(entry)
    except ModelUnavailable:
        return False
    return True
