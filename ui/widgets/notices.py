"""Messages on a page, and answers in bordered cards.  All text goes through st.text, which shows
every character literally."""

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import StageScopeError
from engine.palette import TONES
from engine.prompts import OFF_SCRIPT
from engine.report.answer_part import STOPS

Show = Callable[[str, str], None]  # of a text under a key


def small(text: str, key: str) -> None:
    st.container(key=f"small_{key}").text(text)


def problem(text: str, key: str) -> None:
    st.container(key=f"problem_{key}").text(text)


def notice(text: str, key: str) -> None:
    st.container(key=f"notice_{key}").text(text)


def each(texts: Iterable[str], key: str, show: Show = notice) -> None:
    for number, text in enumerate(texts):
        show(text, f"{key}_{number}")


def ended(state: str, text: str, key: str) -> None:
    """Why a job has no result: an error if it failed, otherwise a note."""
    (problem if state == "failed" else notice)(text, key)


@contextmanager
def telling(key: str, show: Show = notice) -> Iterator[None]:
    """Shows what goes wrong inside, whose rest is left out."""
    try:
        yield
    except StageScopeError as error:
        show(str(error), key)


def attempt(key: str, change: Callable[..., object], *given: object) -> None:
    """For callbacks: makes a change; what goes wrong is kept for said()."""
    with telling(key, keep):
        change(*given)


def keep(text: str, key: str) -> None:
    st.session_state[f"said_{key}"] = text


def said(key: str, show: Show = notice) -> None:
    """What came of the last change under this key, once."""
    if text := st.session_state.pop(f"said_{key}", ""):
        show(text, f"said_{key}")


def hint(text: str) -> None:
    """What to do on a page that has nothing to show yet."""
    st.container(border=True, key="hint").text(text)


def frame(tone: str, key: str) -> DeltaGenerator:
    """A bordered box with the column's colour at its upper edge; gray for an unknown tone."""
    return st.container(border=True, key=f"card_{tone if tone in TONES else 'other'}_{key}")


def answer(words: str, key: str) -> None:
    """The whole answer; a long one scrolls."""
    st.container(key=f"answer_{key}").text(words or " ")


def remarks(stop: str, off_script: bool | None, key: str, more: Iterable[str] = ()) -> None:
    """What has to be known to read the answer: whether it means anything and why it ended."""
    if off_script:
        notice(OFF_SCRIPT, f"off_script_{key}")
    each(filter(None, (STOPS.get(stop, ""), *more)), f"note_{key}", small)


def copied(text: str, name: str) -> None:
    """Puts a text into the clipboard; where the browser refuses, saves it as the file `name`."""
    link = f"data:text/plain;base64,{b64encode(text.encode()).decode()}"
    script = f"""const say = text => document.querySelector(".copied").textContent = text;
fetch("{link}").then(answer => answer.blob())
  .then(blob => navigator.clipboard.write([new ClipboardItem({{"text/plain": blob}})]))
  .then(() => say("Copied."), () => {{
    Object.assign(document.createElement("a"), {{href: "{link}", download: "{name}"}}).click();
    say("Saved as {name}: this browser allows no copy."); }});"""
    said = '<span class="copied" role="status"></span>'
    st.html(f"{said}<script>{script}</script>", unsafe_allow_javascript=True)
