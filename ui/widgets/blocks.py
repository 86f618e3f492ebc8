"""Draws the engine's blocks on a page.  Texts of models and files stay plain text."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import streamlit as st

from engine.report.blocks import Block, Bullets, Contents, Heading, Paragraph, Table
from ui.widgets import notices
from ui.widgets.text import escape


def draw(blocks: Iterable[Block], key: str) -> None:
    """The blocks in order; a page needs no list of contents."""
    from engine.report import drawers  # imports much, which the first page lacks

    for number, block in enumerate(blocks):
        if isinstance(block, Table):
            st.html(drawers.table_html(block))
        elif isinstance(block, Heading):
            st.subheader(escape(block.text), anchor=False)
        elif isinstance(block, Bullets):
            lines = ([block.title] if block.title else []) + [f"• {one}" for one in block.items]
            notices.small("\n".join(lines), f"{key}_{number}")
        elif isinstance(block, Paragraph):
            notices.small(block.text, f"{key}_{number}")
        elif not isinstance(block, Contents):
            chart = block.draw()
            if isinstance(chart, str):
                st.html(chart)
            else:
                st.altair_chart(chart, alt=block.words)


def downloads(
    forms: Mapping[str, tuple[str, str, str]],
    write: Callable[[str], bytes | str],
    name: str,
    key: str,
) -> None:
    """A button per form (title, MIME type, content): its file is written on download."""
    for form, (title, mime, what) in forms.items():
        with st.container(horizontal=True, vertical_alignment="center"):
            data, file, key_of = partial(write, form), f"{name}.{form}", f"{key}_{form}"
            st.download_button(title, data, file, mime, key_of, on_click="ignore", width=260)
            st.caption(what)
