"""One of several names, as buttons or a list, two of them, numbers, questions; and the options of a
run, as RunOptions describes them.  All are in the URL.  The label of a chosen value is there under
the widget's key, so labels are part of links."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import streamlit as st

from engine.errors import BadInput
from engine.media_options import MAX_PARTS, Box, Option, Split, SplitRule
from engine.prompts import DEFAULT_QUESTION
from engine.types import OFFERED, OPTIONS, RunOptions, arranged, value_of
from ui.widgets import links, notices

Name = TypeVar("Name", bound=str)
BOXES: dict[Box, str] = {
    "decoding": "Decoding",
    "pipeline": "Pictures, cache, mode",
    "recording": "Window, split, perturb",
}
MANY = 40  # characters of all labels; longer ones are a list
SPLIT_LABELS: dict[SplitRule, str] = {
    "count": "Equal counts",
    "time": "Equal times",
    "densest": "Densest 25 ms",
}
PARTS_HELP = "The number of event images that are drawn from a recording."
SAMPLE_HELP = "Off: greedy decoding. On: tokens are sampled with the values below."
REPEATS_HELP = (
    "More than one: the models take turns, and the page shows the median and the range of each "
    "time. Cold runs do not count, nor do runs that computed what the others read from the cache: "
    "for the time of stage 3, set Feature cache to Off or Refresh."
)


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
        label, own, change = f"{word}{noun}", f"{key}_{word.lower()}", ({key: name},)
        st.button(
            label, own, shortcut=word[0], on_click=chosen.update, args=change, disabled=name is None
        )


def pick_run_options() -> tuple[RunOptions, str]:
    """Draw the widgets of the Compare page; the options, and what is wrong with a text, or ""."""
    values, problem = dict[str, Any](), ""
    for box, title in BOXES.items():
        st.markdown(f"**{title}**")
        found, wrong = pick_box("compare", box)
        values, problem = values | found, problem or wrong
    return RunOptions(**arranged(values)), problem


def pick_repeats() -> int:
    repeats = {number: number for number in ("1", "3", "5", "10")}
    return int(buttons("Runs of each model", repeats, "compare_repeat", help_=REPEATS_HELP))


def link_of(page: str, name: str) -> str:
    """The key of an option's widget, which is its name in page addresses."""
    if (page, name) == ("compare", "window"):  # "compare_window" is the scrubber's length
        return "compare_part"
    return f"{page}_{OPTIONS[name].link or name}"


def pick_box(
    page: str,
    box: Box,
    kind: type[RunOptions] = RunOptions,
    changed: Mapping[str, Option] | None = None,
) -> tuple[dict[str, Any], str]:
    """Draws the options of a box: the values by name, and what is wrong with a text, or "".  A text
    that is empty or cannot be read is left out, and so is what has no effect without it.  `kind`
    has the defaults; `changed` replaces the descriptions of some options."""
    values, problem = dict[str, Any](), ""
    for name, one in {**OFFERED, **(changed or {})}.items():
        if one.box != box:
            continue
        active = not one.needs or one.needs in values
        if name == "temperature":
            active = st.toggle(
                "Sample", key=f"{page}_sample_tokens", bind="query-params", help=SAMPLE_HELP
            )
        try:
            value = pick(page, name, value_of(kind, name), one, active)
        except BadInput as error:
            problem = problem or str(error)
            notices.problem(str(error), f"{page}_{name}")
            continue
        if active and value is not None:
            values[name] = value
    return values, problem


def pick(
    page: str, name: str, default: Any, changed: Option | None = None, active: bool = True
) -> Any:
    """Draws one option: its value, None for an empty text; BadInput for a text that is not one."""
    one, key = changed or OPTIONS[name], link_of(page, name)
    label = one.label or one.title
    if isinstance(default, Split):
        rule = buttons(label, SPLIT_LABELS, key, help_=one.help)
        parts = number("Parts", f"{key}_parts", 1, MAX_PARTS, Split.parts, PARTS_HELP)
        return Split(rule, int(parts))
    if one.choices:
        labels = {default: one.choices[default], **one.choices}
        if sum(map(len, labels.values())) <= MANY:
            return buttons(label, labels, key, help_=one.help)
        return listed(label, labels, key, help=one.help)
    if one.read:
        text = st.text_input(
            label, key=key, bind="query-params", placeholder=one.example, help=one.help
        )
        return one.read(text) if text and text.strip() else None
    if one.slider:
        links.check_number(key)
        return st.slider(
            label, *one.slider, one.step, key=key, bind="query-params", disabled=not active
        )
    more = {"step": one.step, "disabled": not active}
    return type(default)(number(label, key, one.low, one.high, default, one.help, **more))


def run_and_cancel(
    page: str, label: str, key: str, live: bool, ready: bool, cancel: Callable[[], None]
) -> bool:
    """The start button, or Cancel while something runs; whether it was pressed."""
    if live:
        st.button("Cancel", key=f"{page}_cancel", on_click=cancel)
        return False
    return st.button(label, type="primary", key=key, shortcut="Ctrl+Enter", disabled=not ready)
