"""The sample (from a dataset or own files) and the models of the Compare page.

Boundary: widgets in, Samples and ModelEntries out.  All widgets except the files are in the URL
under their keys.  Messages of the engine are shown unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from engine.errors import BadInput, ModelUnavailable
from engine.models import checkpoint, registry
from engine.models.checkpoint import ModelEntry
from engine.types import Sample
from ui.widgets import (
    contact_sheets,
    dataset_picker,
    gallery,
    links,
    notices,
    uploads,
    variant_picker,
)
from ui.widgets.text import count, names_of

MAX_MODELS = 6
DEFAULT_MODELS = 3
SOURCES = {"dataset": "Dataset", "files": "Own files"}
PICTURES = {"frames": "Camera frames", "events": "Event images"}
NOTHING: Mapping[str, str] = {}
SAID = 5  # sentences about files that are shown at once


def pick_sample(entries: Sequence[ModelEntry]) -> Sample | None:
    """The sample chosen in the sidebar; None, with a message, if there is none."""
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
        sample = _own() if source == "files" else _from_dataset(entries)
    except BadInput as error:
        notices.problem(str(error), "sample")
        return None
    if sample is not None:
        _show(sample)
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
    pictures = st.segmented_control(
        "Type of the pictures",
        list(PICTURES),
        default="frames",
        required=True,
        format_func=PICTURES.__getitem__,
        key="compare_pictures",
        bind="query-params",
    )
    st.caption(
        f"Up to {uploads.MAX_FILES} files of {uploads.MAX_MB} MB each. They are deleted after "
        "this visit and are not part of a link."
    )
    if not files:
        return None
    found = uploads.gather(files, event_images=pictures == "events")
    _say_rejected(found.rejected)
    if found.sample is None:
        notices.problem("None of these files can be used.", "no_file")
    return found.sample


def _say_rejected(sentences: Sequence[str]) -> None:
    """What is wrong with files; many sentences are folded."""
    for number, sentence in enumerate(sentences[:SAID]):
        notices.problem(sentence, f"file_{number}")
    if rest := sentences[SAID:]:
        with st.expander(f"{count(len(rest), 'more file')} not used", key="compare_rejected"):
            for number, sentence in enumerate(rest, SAID):
                notices.small(sentence, f"file_{number}")


def _show(sample: Sample) -> None:
    picture = contact_sheets.preview(sample)
    if picture is not None:
        st.image(picture, width=200, alt=f"Preview of sample {sample.id}.")
    for number, sentence in enumerate(sample.problems):
        notices.notice(sentence, f"sample_{number}")


def pick_models(entries: Sequence[ModelEntry], sample: Sample | None) -> tuple[ModelEntry, ...]:
    """Up to six models or variants of them for this sample."""
    reasons = {entry: registry.unavailable(entry) for entry in entries}
    able = [entry.name for entry, why in reasons.items() if why is None]
    default = (able or [entry.name for entry in entries])[:DEFAULT_MODELS]
    missing = sample.missing if sample is not None else {}
    return choose_models("compare", reasons, default, MAX_MODELS, missing)


def pick_loadable_models(
    entries: Sequence[ModelEntry], page: str, default: int | None = None
) -> tuple[ModelEntry, ...]:
    """Any number of models; the default is the first `default` that can be loaded, or all."""
    reasons = {entry: registry.unavailable(entry) for entry in entries}
    able = [entry.name for entry, reason in reasons.items() if reason is None]
    return choose_models(page, reasons, able[:default])


def choose_models(
    page: str,
    reasons: Mapping[ModelEntry, str | None],
    default: list[str],
    most: int | None = None,
    missing: Mapping[str, str] = NOTHING,
) -> tuple[ModelEntry, ...]:
    """The chosen models and variants in the order of `reasons`, which says why one cannot run, if
    so; variants follow their model.

    Without those whose kind of input is `missing`: they stay in the list, for the next sample.
    """
    entries = tuple(reasons)
    reasons = _with_variants(page, reasons)
    labels = {entry.name: entry.label for entry in reasons}
    links.say_unknown(f"{page}_models", labels.values(), "model")
    if most:
        links.say_more(f"{page}_models", most)
    chosen = st.multiselect(
        f"Models (up to {most})" if most else "Models",
        list(labels),
        default=default,
        format_func=lambda name: labels.get(name, name),
        max_selections=most,
        key=f"{page}_models",
        bind="query-params",
        placeholder="Choose models",
    )
    variant_picker.draw(page, entries, chosen, most)
    left_out = [entry for entry in reasons if entry.name in chosen and entry.kind in missing]
    for entry in left_out:
        notices.notice(f"{entry.label} is left out. {missing[entry.kind]}", f"left_{entry.name}")
    others = [(entry, missing.get(entry.kind) or why) for entry, why in reasons.items()]
    _say_why_not([(entry, why) for entry, why in others if why and entry not in left_out], page)
    return tuple(entry for entry in reasons if entry.name in chosen and entry not in left_out)


def _with_variants(
    page: str, reasons: Mapping[ModelEntry, str | None]
) -> dict[ModelEntry, str | None]:
    """Each model, then its variants in the page's list."""
    listed = variant_picker.in_list(page, tuple(reasons))
    found = dict[ModelEntry, str | None]()
    for entry, reason in reasons.items():
        found[entry] = reason
        found |= {item: registry.unavailable(item) for item in listed if item.of == entry}
    return found


def installed(entry: ModelEntry) -> bool:
    """Whether the checkpoint's files are on this machine."""
    try:
        checkpoint.locate(entry)
    except ModelUnavailable:
        return False
    return True


def _say_why_not(pairs: Sequence[tuple[ModelEntry, str]], page: str) -> None:
    """An expander with the models that cannot run and their reasons."""
    if not pairs:
        return
    state = "cannot run" if any(installed(entry) for entry, _ in pairs) else "not installed"
    with st.expander(f"{count(len(pairs), 'model')} {state}", key=f"{page}_why_not"):
        for entry, reason in pairs:
            st.text(entry.label)
            notices.small(reason, f"why_{entry.name}")
