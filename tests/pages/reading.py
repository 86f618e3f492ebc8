"""What a page says, as a person would read it: its texts, captions and own HTML."""

from __future__ import annotations

from html import unescape

from streamlit.testing.v1 import AppTest


def texts(at: AppTest) -> str:
    return "\n".join(element.value for element in at.text)


def captions(at: AppTest) -> str:
    return "\n".join(element.value for element in at.caption)


def html(at: AppTest) -> str:
    return unescape("\n".join(element.proto.body for element in at.get("html")))


def badges(at: AppTest) -> str:
    return " ".join(element.value for element in at.markdown if "badge[" in element.value)
