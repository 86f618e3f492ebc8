"""A checkpoint's chat template, and the prompt that it makes for pictures and one question.

Boundary: finds the template's text without transformers.  It is rendered once, when a model loads,
in transformers' sandbox with limits on its size and work.  Only the text around the question is
kept, so no template runs while an answer is timed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from engine.errors import ModelUnavailable
from engine.models import checkpoint_files
from engine.quoting import cut

if TYPE_CHECKING:
    from collections.abc import Iterator

TEMPLATE_BYTES = 32 * 2**10
_STEPS = 20_000  # executed lines of one rendering
_TEXT = 16 * 2**10  # characters of one string in it
_NUMBER = 10_000  # the largest number in a template
_MARKS = ("QUESTION-ONE", "question-two?")


def find(folder: Path, name: str) -> str | None:
    """The text of the folder's chat template (the processor's, else the tokenizer's), or None."""
    if (folder / "chat_template.jinja").exists():
        data = checkpoint_files.read_bytes(folder / "chat_template.jinja", TEMPLATE_BYTES, name)
        return data.decode("utf-8", errors="replace")
    for file in ("chat_template.json", "processor_config.json", "tokenizer_config.json"):
        found = checkpoint_files.read_if_there(folder / file, name).get("chat_template")
        if text := _default(found):
            return text
    return None


def _default(found: Any) -> str | None:
    """The template named default, if there are several."""
    if isinstance(found, list):
        found = {one.get("name"): one.get("template") for one in found}
    text = found.get("default") if isinstance(found, dict) else found
    return text if isinstance(text, str) and text else None


def prompt(tokenizer: Any, template: str, placeholder: str, kind: str, name: str) -> str:
    """The prompt for one picture or clip, with {question} once; or ModelUnavailable.

    Content is passed as parts, or as a string if the template does not support parts.
    """
    try:
        _check_size(template)
        return _first(tokenizer, template, placeholder, (_parts(kind), _string(placeholder)))
    except _CannotUse as error:
        why = str(error) or f"its prompt does not hold {placeholder} once before the question"
        raise _refused(name, why) from error


def prompt_of_parts(tokenizer: Any, template: str, kind: str, count: int, name: str) -> str:
    """The prompt for `count` parts of this kind ("image", "video"), with {question} once; or
    ModelUnavailable.  The processor knows its own placeholders, so they are not looked for.
    """
    try:
        _check_size(template)
        return _first(tokenizer, template, "", (_parts(kind, count),))
    except _CannotUse as error:
        why = str(error) or f"it does not put a question after {count} {kind} parts once"
        raise _refused(name, why) from error


def _first(
    tokenizer: Any, template: str, placeholder: str, forms: Sequence[Callable[[str], Any]]
) -> str:
    """The text around the question with the first form of content that works.

    _CannotUse with the last form's error, or without words if the text is not as expected.
    """
    failure = _CannotUse()
    for content in forms:
        try:
            if found := _around(tokenizer, template, placeholder, content):
                return found
            failure = _CannotUse()
        except _TooMuch:
            raise
        except _CannotUse as error:
            failure = error
    raise failure


def _refused(name: str, why: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"{name}: its chat template cannot be used ({why}): correct chat_template in its folder."
    )


def _parts(kind: str, count: int = 1) -> Callable[[str], Any]:
    return lambda question: [{"type": kind}] * count + [{"type": "text", "text": question}]


def _string(placeholder: str) -> Callable[[str], Any]:
    return lambda question: f"{placeholder}\n{question}"


def _around(
    tokenizer: Any, template: str, placeholder: str, content: Callable[[str], Any]
) -> str | None:
    """The text around the question; None unless the question and the placeholder occur once.

    No placeholder is looked for if it is "".
    """
    one, two = (_rendered(tokenizer, template, content(mark)) for mark in _MARKS)
    if one.count(_MARKS[0]) != 1:
        return None
    if placeholder and one.count(placeholder) != 1:
        return None
    before, after = one.split(_MARKS[0])
    if placeholder not in before or two != f"{before}{_MARKS[1]}{after}":
        return None
    return f"{_braced(before)}{{question}}{_braced(after)}"


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _rendered(tokenizer: Any, template: str, content: Any) -> str:
    """The rendered text; _CannotUse if the template does not accept such content."""
    messages = [{"role": "user", "content": content}]
    try:
        with _bounded():
            text = tokenizer.apply_chat_template(
                messages, chat_template=template, tokenize=False, add_generation_prompt=True
            )
    except _TooMuch:
        raise
    except Exception as error:  # a template may raise anything
        raise _CannotUse(f"{type(error).__name__}: {cut(str(error).rstrip('.'))}") from error
    return text if isinstance(text, str) else ""


class _CannotUse(Exception):
    """A template cannot be rendered, and why."""


class _TooMuch(_CannotUse):
    """A template is too large or takes too many steps."""


def _check_size(template: str) -> None:
    """_TooMuch for a long text, large numbers, or operators that can multiply text."""
    from jinja2 import Environment, TemplateError

    if len(template) > TEMPLATE_BYTES:
        raise _TooMuch(f"it has {len(template):,} characters; {TEMPLATE_BYTES:,} are allowed")
    try:
        tokens = list(Environment(autoescape=True).lex(template))
    except TemplateError as error:
        raise _TooMuch(cut(str(error))) from error
    for _, kind, value in tokens:
        if kind == "operator" and value in ("*", "**"):
            raise _TooMuch(f"it multiplies ({value})")
        if kind == "integer" and (len(value) > 9 or int(value, 0) > _NUMBER):
            raise _TooMuch(f"it holds the number {cut(value)}")


@contextmanager
def _bounded() -> Iterator[None]:
    """Limits the lines that a template executes and the texts it creates."""
    done, before = 0, sys.gettrace()

    def line(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal done
        done += 1
        if done > _STEPS or any(len(text) > _TEXT for text in _texts(frame)):
            raise _TooMuch("it takes too many steps or makes too long a text")
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        return line if frame.f_code.co_filename == "<template>" else None

    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(before)


def _texts(frame: FrameType) -> Iterator[str]:
    for value in frame.f_locals.values():
        held = getattr(value, "_Namespace__attrs", None) or {"": value}
        yield from (text for text in held.values() if isinstance(text, str))
