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
from ui.widgets import choices, dataset_picker
from ui.widgets.model_picker import pick_loadable_models
from ui.widgets.run_settings import pick

SAMPLES = 3
SAMPLES_HELP = "Evenly spread over the dataset, because neighbouring samples overlap."
RUNS_HELP = "Timed warm runs of each kind, after a first run that is kept apart."
TOKENS_HELP = "Longer answers compare more tokens and take longer."


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
    dataset = dataset_picker.choose("verify")
    models = pick_loadable_models(entries, "verify")
    samples = 0
    if dataset is None:  # keeps a link's number while the demo scenes are made
        st.number_input("Samples", value=None, key="verify_no_samples", disabled=True)
    else:
        most = len(dataset.samples)
        label, usual = f"Samples (of {most:,})", min(SAMPLES, most)
        samples = int(choices.number(label, "verify_samples", 1, most, usual, SAMPLES_HELP))
    usual = VerifyRequest.runs
    runs = int(choices.number("Warm runs", "verify_runs", 1, MAX_RUNS, usual, RUNS_HELP))
    with st.expander("Question, length, pictures", key="verify_question_box"):
        key = "verify_question"
        question = st.text_area("Question", DEFAULT_QUESTION, max_chars=MAX_QUESTION_CHARS, key=key,
                                bind="query-params")  # fmt: skip
        usual = VerifyRequest.max_new_tokens
        title, key = "Max new tokens", "verify_tokens"
        ends = MIN_TOKENS, MAX_TOKENS
        tokens = int(choices.number(title, key, *ends, usual, TOKENS_HELP, step=16))
        extent = pick("verify", "extent", VerifyRequest.extent)
    asked = {"prompt": question or "", "max_new_tokens": tokens, "runs": runs, "extent": extent}
    return VerifyChoice(dataset, models, samples, asked)
