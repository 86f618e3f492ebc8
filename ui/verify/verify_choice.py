"""The sidebar of the Verify page: dataset, samples, models, number of runs.

All widgets are in the URL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import streamlit as st

from engine.media.dataset import Dataset
from engine.models.checkpoint import ModelEntry
from engine.prompts import DEFAULT_QUESTION, MAX_QUESTION_CHARS
from engine.verify.verdict import MAX_RUNS, MAX_TOKENS, MIN_TOKENS, VerifyRequest, choose
from ui.widgets import dataset_picker
from ui.widgets.model_picker import pick_loadable_models
from ui.widgets.run_settings import pick

SAMPLES = 3
SAMPLES_HELP = "Evenly spread over the dataset, because neighbouring samples overlap."
RUNS_HELP = "Timed warm runs of each kind, after a first run that is kept apart."


class VerifyChoice(NamedTuple):
    """The current values of all widgets; `asked`: those of the question and the runs."""

    dataset: Dataset | None
    models: tuple[ModelEntry, ...]
    samples: int
    asked: dict[str, Any]

    @property
    def ready(self) -> bool:
        return self.dataset is not None and bool(self.models)

    def request(self) -> VerifyRequest:
        """The request; BadInput if a value is invalid."""
        held = self.dataset.samples if self.dataset else ()
        names = tuple(model.name for model in self.models)
        return VerifyRequest(names, choose(held, self.samples), **self.asked)


def choose_all(entries: Sequence[ModelEntry]) -> VerifyChoice:
    found = dataset_picker.choose("verify")
    models = pick_loadable_models(entries, "verify")
    samples = _samples(found)
    runs = st.number_input(
        "Warm runs",
        1,
        MAX_RUNS,
        VerifyRequest.runs,
        key="verify_runs",
        bind="query-params",
        help=RUNS_HELP,
    )
    with st.expander("Question, length, pictures", key="verify_question_box"):
        question = st.text_area(
            "Question",
            DEFAULT_QUESTION,
            max_chars=MAX_QUESTION_CHARS,
            key="verify_question",
            bind="query-params",
        )
        tokens = st.number_input(
            "Max new tokens",
            MIN_TOKENS,
            MAX_TOKENS,
            VerifyRequest.max_new_tokens,
            step=16,
            key="verify_tokens",
            bind="query-params",
            help="Longer answers compare more tokens and take longer.",
        )
        pixels = pick("verify", "pixels", VerifyRequest.pixels)
        extent = pick("verify", "extent", VerifyRequest.extent)
    asked = {"prompt": question or "", "max_new_tokens": int(tokens), "runs": int(runs)}
    return VerifyChoice(found, models, samples, asked | {"pixels": pixels, "extent": extent})


def _samples(found: Dataset | None) -> int:
    if found is None:  # keeps a link's number while the demo scenes are made
        st.number_input("Samples", value=None, key="verify_no_samples", disabled=True)
        return 0
    held = len(found.samples)
    chosen = st.number_input(
        f"Samples (of {held:,})",
        1,
        held,
        min(SAMPLES, held),
        key="verify_samples",
        bind="query-params",
        help=SAMPLES_HELP,
    )
    return int(chosen)
