"""One of several names, as buttons or a list, two of them, numbers, questions; all in the URL."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import streamlit as st

from engine.prompts import DEFAULT_QUESTION
from ui.widgets import links

Name = TypeVar("Name", bound=str)


def buttons(
    title: str,
    names: Mapping[Name, str],
    key: str,
    default: Name | None = None,
    hidden: bool = False,
    help_: str | None = None,
    width: Literal["content", "stretch"] = "content",
    pressed: Callable[[], None] | None = None,
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
        on_change=pressed,
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


def number(
    title: str,
    key: str,
    low: float | None = None,
    high: float | None = None,
    value: Any = "min",
    help_: str | None = None,
    place: Any = st,
    **more: Any,
) -> Any:
    """A number; `more`: as st.number_input takes it."""
    links.check_number(key)
    more |= {"key": key, "bind": "query-params", "help": help_}
    return place.number_input(title, low, high, value, **more)


def question(title: str, key: str, **more: Any) -> str:
    """A question; `more`: as st.text_area takes it."""
    return st.text_area(title, DEFAULT_QUESTION, key=key, bind="query-params", **more) or ""


def two(
    names: Sequence[str],
    first: tuple[str, str],
    keys: tuple[str, str],
    titles: tuple[str, str] = ("Model A", "Model B"),
) -> tuple[str, str]:
    """Two of the names, from two lists side by side; `first`: those at first."""
    shown = {name: name for name in names}
    a, b = (
        listed(title, shown, key, place, default)
        for title, key, place, default in zip(titles, keys, st.columns(2), first, strict=True)
    )
    return a, b


def neighbours(
    names: Sequence[str], at: int | None, key: str, chosen: Any, noun: str = " sample"
) -> None:
    """Buttons to the names beside place `at` (None: hidden); `chosen` has the choice under `key`:
    the URL or the session."""
    before = names[at - 1] if at else None
    after = names[at + 1] if at is not None and at + 1 < len(names) else None
    for word, name in (("Previous", before), ("Next", after)):
        st.button(
            f"{word}{noun}",
            key=f"{key}_{word.lower()}",
            shortcut=word[0],
            on_click=chosen.update,
            args=({key: name},),
            disabled=name is None,
        )
