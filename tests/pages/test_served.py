"""A served column on the pages: nothing is sent unasked, the card says who answered."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine.models import registry
from tests.pages.conftest import Open
from tests.pages.reading import html, press_run, results, tables, texts
from tests.served.fake_server import FakeServer, serving, streams, whole

AWAY = "http://192.0.2.7:8000/v1"  # no machine has such an address


@pytest.fixture
def fake(
    app: Open, tiny_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeServer]:
    """A server beside the tiny models, as "Served"; "Away" is on another machine."""
    with serving() as server:
        text = (tiny_models / "models.toml").read_text(encoding="utf-8")
        text = text.replace('checkpoint = "./', f'checkpoint = "{tiny_models}/')
        for name, url in (("Served", server.url), ("Away", AWAY)):
            text += f'\n[[model]]\nname = "{name.lower()}"\nlabel = "{name}"\n'
            text += f'server = "{url}"\nmodel = "served-model"\n'
        file = tmp_path / "served.toml"
        file.write_text(text, encoding="utf-8")
        monkeypatch.setenv("STAGESCOPE_MODELS", str(file))
        yield server


def test_a_server_answers_beside_a_local_model(app: Open, fake: FakeServer) -> None:
    at = app(tokens="5")
    assert "Served" not in at.multiselect(key="compare_models").value  # nobody has chosen it
    at = press_run(app(models=["Served", "Tiny llava"], tokens="5"))
    assert [view.state for view in results(at)] == ["done", "done"] and len(fake.asked) == 1
    assert "A road ahead, a car." in texts(at)
    assert f"at {fake.url.split('/')[2]}" in html(at) and "9 tokens" in html(at)
    assert "rest of the answer" in html(at) and html(at).count('class="run-bar"') == 2
    assert "not visible at a server" in str(tables(at))
    assert "the runs differ in device." in html(at)  # no winner between here and there
    fake.answer = streams(*whole(usage=None))
    at = press_run(at)
    assert "tokens not told" in html(at)


def test_nothing_goes_to_another_machine_before_it_is_allowed(app: Open, fake: FakeServer) -> None:
    at = app(models=["Away"])
    assert at.button(key="compare_run").disabled and "192.0.2.7:8000" in texts(at)
    at.button(key="compare_allow").click().run()
    assert not at.button(key="compare_run").disabled
    at = app("pages/benchmark.py", models=["Away"])
    assert at.button(key="benchmark_start").disabled
    at.button(key="benchmark_allow").click().run()
    assert not at.button(key="benchmark_start").disabled
    at = app(models=["Served"])  # control: this machine
    assert not at.button(key="compare_run").disabled
    assert "compare_allow" not in [one.key for one in at.button]


def test_the_models_page_asks_a_server_and_says_what_it_is(app: Open, fake: FakeServer) -> None:
    at = app("pages/models.py")
    words = " ".join(element.value for element in at.markdown)
    assert "not asked yet" in words and fake.url.split("/")[2] in html(at)
    at.button(key="models_ask_served").click().run()
    assert "vLLM 0.30.1" in html(at) and not at.exception
    fake.pages["/v1/models"] = {"data": [{"id": "another"}]}
    at.button(key="models_ask_served").click().run()
    assert "It lists no model served-model, but another." in texts(at)
    fake.pages["/v1/models"] = "<html>"
    at = app("pages/verify.py")
    assert "Served" in at.multiselect(key="verify_models").options


def test_a_server_is_added_on_the_models_page(
    app: Open, fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add(at: AppTest, address: str) -> AppTest:
        at.text_input(key="add_server_url").set_value(address)
        return at.button(key="add_server").click().run()

    at = add(app("pages/models.py"), "http://127.0.0.1:9/v1")
    assert "127.0.0.1:9 refuses connections" in texts(at)
    assert "is no address of a server" in texts(add(at, "nonsense"))
    assert "served-model" not in [entry.name for entry in registry.entries()]
    at = add(at, fake.url)
    entry = registry.entry("served-model")
    assert entry.server is not None and entry.server.url == fake.url and entry.kind == "image"
    assert not at.exception and "Ask the server" in [one.label for one in at.button]
    assert "holds 'served-model' already" in texts(add(at, fake.url))
    option = st.get_option
    monkeypatch.setattr(
        st, "get_option", lambda name: "0.0.0.0" if name == "server.address" else option(name)
    )
    at = app("pages/models.py")  # other machines can open the page
    assert "add_server" not in [one.key for one in at.button]
