"""What a screen reader says when a model has finished: "EventGPT answered in 458 ms".

A live region speaks only if it was on the page before its words.  Streamlit keeps a container with
a key in the document, and a constant script makes it the live region; sentences go through st.text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from engine.jobs.run_job import RunView
from ui.widgets.followed_runs import MAX_MODELS
from ui.widgets.text import ms

_POLITE = """<span></span><script>
for (const region of document.querySelectorAll('[class*="st-key-spoken"]')) {
  region.setAttribute("role", "status");
  region.setAttribute("aria-live", "polite");
}
</script>"""


class Spoken:
    """The live region, with a place per model: a reader says only the place that changes."""

    def __init__(self) -> None:
        with st.container(key="spoken_runs"):
            st.html(_POLITE, unsafe_allow_javascript=True)
            self._places = [st.container() for _ in range(MAX_MODELS)]
        self._said: set[str] = set()

    def say(self, views: Sequence[RunView], labels: Mapping[str, str]) -> None:
        """The end of each run, once."""
        for place, view in zip(self._places, views, strict=False):
            if view.ended and view.id not in self._said:
                self._said.add(view.id)
                place.text(sentence(view, labels.get(view.model, view.model)))


def sentence(view: RunView, label: str) -> str:
    """How the run ended, with its total; of several, its number, because cards show medians."""
    if view.result is not None and view.state == "done":
        one = f" (run {view.repeat:,} of {view.repeats:,})" if view.repeats > 1 else ""
        return f"{label} answered in {ms(view.result.total_ms)}{one}"
    return f"{label}: {view.state}"
