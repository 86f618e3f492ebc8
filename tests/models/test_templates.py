"""Chat templates: the text is transformers' own, and no template takes much time or memory."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
import pytest
from transformers import AutoTokenizer

from engine.errors import ModelUnavailable
from engine.models import registry, templates
from tests.conftest import slow_unless
from tests.models import family_checkpoints, published_folders
from tests.models.conftest import entry_for, loaded
from tests.models.test_supported import RELEASED, TEXT_ONLY, place

pytestmark = [pytest.mark.loads, pytest.mark.usefixtures("cache_dir")]
DEMO = Path("engine/demo/checkpoints/qwen2_5_vl")
# What transformers adds to Jinja, and its settings.
DIALECT = """
{%- set seen = namespace(parts=0) -%}
{% for message in messages %}
    {% for part in message.content %}
        {% if part.type == 'skipped' %}
            {% continue %}
        {% endif %}
        {% set seen.parts = seen.parts + 1 %}
        {% if seen.parts > 3 %}{% break %}{% endif %}
{{ part | tojson }}{{ dict(type=part.type) | tojson(indent=1) }}
        {% generation %}{{ part.text | default('<p>"é"') }}{% endgeneration %}

    {% endfor %}
{% endfor %}
{{ bos_token }}{{ eos_token }}{{ pad_token }}{{ strftime_now('%Y') }}{{ tools }}{{ documents }}
{% if add_generation_prompt and messages | length > 1 %}{{ raise_exception('no') }}{% endif %}"""


@pytest.fixture
def in_a_process(
    templates_in_this_process: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Templates are rendered as in the product."""
    monkeypatch.setattr(templates, "_rendered", templates_in_this_process)


def contents(most: int = 2) -> list[Any]:
    forms: list[Any] = ["What is <b>this</b>? {x} é 𝄞"]
    for kind in ("image", "video"):
        for count in range(most + 1):
            forms.append([{"type": kind}] * count + [{"type": "text", "text": "What?"}])
    return forms


def theirs(tokenizer: Any, template: str, content: Any) -> str:
    try:
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": content}],
            chat_template=template,
            tokenize=False,
            add_generation_prompt=True,
        )
    except Exception as error:  # noqa: BLE001 - whatever it raises, both must
        return f"{type(error).__name__}: {error}"
    assert isinstance(text, str)
    return text


def known_templates() -> dict[str, str]:
    families = {
        name: family_checkpoints._template(row) for name, row in family_checkpoints.ROWS.items()
    }
    demo = (DEMO / "chat_template.jinja").read_text(encoding="utf-8")
    others = {"released": RELEASED, "text only": TEXT_ONLY, "demo": demo, "dialect": DIALECT}
    return families | others | {"published": published_folders.TEMPLATE}


@pytest.mark.usefixtures("in_a_process")
def test_the_text_is_that_of_transformers_own_method() -> None:
    """In the process for one template, and with its function for those of all families."""
    tokenizer = AutoTokenizer.from_pretrained(DEMO)
    for name, template in known_templates().items():
        for content in contents():
            text, why = templates.rendered(template, tokenizer.special_tokens_map, content)
            assert (text or why) == theirs(tokenizer, template, content), (name, content)
    request = {"template": DIALECT, "variables": tokenizer.special_tokens_map}
    found = templates._rendered(json.dumps(request | {"contents": contents()}))
    assert [text or why for text, why in found] == [
        theirs(tokenizer, DIALECT, content) for content in contents()
    ]
    plain = jinja2.Environment(extensions=["jinja2.ext.loopcontrols"])  # the control
    plain.globals["strftime_now"] = lambda _: str(time.localtime().tm_year)
    without = DIALECT.replace("{% generation %}", "").replace("{% endgeneration %}", "")
    message = {"role": "user", "content": contents()[-1]}
    other = plain.from_string(without).render(messages=[message], **tokenizer.special_tokens_map)
    assert other != theirs(tokenizer, without, contents()[-1])


ENDLESS = (
    "{% for i in range(9999) %}{% for j in range(9999) %}{{ messages | tojson | upper | lower }}"
    "{% endfor %}{% endfor %}"
)
REFUSED = {
    "no question": "does not write the question once",
    "{{ messages[0]['content'] }}<image>": "does not write <image> once before the question",
    "{{ messages[0]['content'].upper() }}": "does not write the question once",
    "{{ messages[0]['content'] * 9 }}": "does not write the question once",
    "{{ raise_exception('not today.') }}": "TemplateError: not today",
    "{% if %}": "TemplateSyntaxError: Expected an expression",
    "{{ cycler.__init__.__globals__.os.system('true') }}": "SecurityError: access to attribute",
    "{{ range(10**9) | list }}": "OverflowError: Range too big",
    "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}": "RecursionError: maximum recursion",
    "{{ 'x' * 10000000 }}": "makes 10,000,000 characters; 100,000 are allowed",
    "{{ ('%2000000000d' % 1) | length }}": "more than (5 seconds or )?256 MB of memory",
}
LONG = {  # the last ones end at the same limit as the last of REFUSED
    ENDLESS: "more than 5 seconds or 256 MB of memory",
    "{{ 'x' * 100000000 }}": "makes 100,000,000 characters|more than (5 seconds or )?256 MB",
    "{{ '%300000000d' % 1 }}": "more than (5 seconds or )?256 MB of memory",
    "{{ '{:>999999999}'.format(1) }}": "more than (5 seconds or )?256 MB",
    "{% set x = namespace(t='aaaaaaaaaa') %}{% for i in range(99) %}{% set x.t = x.t ~ x.t %}"
    "{% endfor %}": "more than (5 seconds or )?256 MB",
}


@pytest.mark.parametrize(
    ("template", "why"), slow_unless(REFUSED.items(), (REFUSED | LONG).items())
)
def test_a_template_that_makes_no_prompt_is_refused(
    template: str,
    why: str,
    tiny_copy: Callable[..., Path],
    request: pytest.FixtureRequest,
) -> None:
    if "256 MB" in why:
        request.getfixturevalue("in_a_process")
    path = tiny_copy("llava")
    place(path, "tokenizer_config.json", template)
    start = time.monotonic()
    with pytest.raises(ModelUnavailable, match=f"chat template cannot be used .*({why})") as error:
        loaded(path, "llava")
    assert time.monotonic() - start < 60
    assert "tokenizer_config.json, or copy this file again." in str(error.value)


@pytest.mark.slow
@pytest.mark.usefixtures("in_a_process")
def test_an_endless_template_is_refused_without_limits_of_the_system(
    tiny_copy: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tiny_copy("llava")
    place(path, "chat_template.jinja", ENDLESS)
    monkeypatch.setattr(templates, "_WALL_S", 2)
    with pytest.raises(ModelUnavailable, match=r"5 seconds or 256 MB of memory.*correct .*\.jinja"):
        loaded(path, "llava")
    assert registry.unavailable(entry_for(path, "llava")) is None  # nothing is rendered for a list
