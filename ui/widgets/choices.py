"""One of several names, as buttons beside each other or as a list; the choice is in the URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import streamlit as st

Name = TypeVar("Name", bound=str)


def buttons(
    title: str,
    names: Mapping[Name, str],
    key: str,
    default: Name | None = None,
    hidden: bool = False,
    help_: str | None = None,
    width: Literal["content", "stretch"] = "content",
) -> Name:
    """The pressed button, the first one at first; `hidden`: only screen readers get the title."""
    first = next(iter(names)) if default is None else default
    chosen = st.segmented_control(
        title,
        list(names),
        default=first,
        required=True,
        format_func=names.__getitem__,
        key=key,
        bind="query-params",
        help=help_,
        label_visibility="collapsed" if hidden else "visible",
        width=width,
    )
    return chosen or first


def listed(
    title: str,
    names: Mapping[Name, str],
    key: str,
    place: Any = st,
    default: Name | None = None,
    hidden: bool = False,
    **more: Any,
) -> Name:
    """The chosen line of a list, the first one at first; `more`: as st.selectbox takes it."""
    first = next(iter(names)) if default is None else default
    chosen: Name | None = place.selectbox(
        title,
        list(names),
        list(names).index(first),
        format_func=lambda name: names.get(name, name),
        key=key,
        bind="query-params",
        label_visibility="collapsed" if hidden else "visible",
        **more,
    )
    return chosen or first
